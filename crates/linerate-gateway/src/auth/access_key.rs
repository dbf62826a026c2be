//! Keys of the server API, the admin page and the log page.

use std::fmt;

use subtle::ConstantTimeEq;

use super::AuthSetupError;
use crate::config::Secret;

/// Minimum length of a key, in bytes; a shorter one could be found by brute force.
const BYTES_MIN: usize = 16;

/// A key that requests must present.
#[derive(Clone)]
pub(crate) struct AccessKey(String);

impl AccessKey {
    /// Reads the key, if one is configured under `name`.
    ///
    /// # Errors
    /// Fails if its file cannot be read, or if it has fewer than 16 bytes.
    pub(super) fn read(
        name: &'static str,
        secret: Option<&Secret>,
    ) -> Result<Option<Self>, AuthSetupError> {
        let Some(secret) = secret else {
            return Ok(None);
        };
        let text = secret
            .read()
            .map_err(|source| AuthSetupError::File { name, source })?;
        if text.len() < BYTES_MIN {
            let bytes = text.len();
            let reason = format!("has {bytes} bytes; at least {BYTES_MIN} are required");
            return Err(AuthSetupError::Key { name, reason });
        }
        Ok(Some(Self(text)))
    }

    /// Returns the key.
    pub(super) fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Returns whether `presented` is this key. The time taken reveals at most the length of the
    /// key.
    pub(crate) fn matches(&self, presented: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(presented).into()
    }
}

impl fmt::Debug for AccessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessKey(secret)")
    }
}
