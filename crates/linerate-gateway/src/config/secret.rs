//! Texts that must not be seen in logs.

use std::{fmt, fs, io, path::Path};

use serde::Deserialize;

/// What stands before the path of a file that holds the secret.
const FILE: &str = "file:";
/// The most bytes of a file with a secret.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A key or an address with a password: shown to nobody, neither in logs nor in errors.
///
/// `file:/run/secrets/key` stands for what is in that file. White space around a secret does not count, wherever it
/// comes from: shells and editors add line ends that nobody sees.
#[derive(Clone, Deserialize, PartialEq)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Takes a copy of `text`.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// Returns the text as configured.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the text, or that of the file that it names.
    ///
    /// # Errors
    /// The file can't be read, is no text, or has more than 1 MiB.
    pub fn read(&self) -> io::Result<String> {
        let Some(path) = self.0.strip_prefix(FILE) else {
            return Ok(self.0.trim().to_owned());
        };
        let bytes = fs::metadata(Path::new(path))?.len();
        if bytes > FILE_BYTES_MAX {
            let message = format!("{path} has {bytes} bytes; at most {FILE_BYTES_MAX} are read");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        let text = fs::read_to_string(path)?;
        Ok(text.trim().to_owned())
    }

    /// Returns whether a file holds the secret.
    pub fn is_file(&self) -> bool {
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
