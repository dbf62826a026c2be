//! Secret texts that must not appear in logs.

use std::{fmt, fs, io, path::Path};

use serde::Deserialize;

/// Prefix of the path of a file that contains the secret.
const FILE: &str = "file:";
/// Maximum size of a file with a secret, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A key, or a URL with a password. It never appears in logs or errors.
///
/// `file:/run/secrets/key` refers to the content of that file. White space around a secret is
/// ignored, wherever the secret comes from, because shells and editors add invisible line ends.
#[derive(Clone, Deserialize, PartialEq)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Creates a secret with a copy of `text`.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// Returns the text as configured.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the text, or the content of the file that it names, without surrounding white space.
    ///
    /// # Errors
    /// Fails if the file cannot be read, is not UTF-8, or is larger than 1 MiB.
    pub(crate) fn read(&self) -> io::Result<String> {
        let Some(path) = self.0.strip_prefix(FILE) else {
            return Ok(self.0.trim().to_owned());
        };
        let bytes = fs::metadata(Path::new(path))?.len();
        if bytes > FILE_BYTES_MAX {
            let message = format!("{path} has {bytes} bytes; at most {FILE_BYTES_MAX} are allowed");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        let text = fs::read_to_string(path)?;
        Ok(text.trim().to_owned())
    }

    /// Returns whether the secret is stored in a file.
    pub(crate) fn is_file(&self) -> bool {
        self.0.starts_with(FILE)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}
