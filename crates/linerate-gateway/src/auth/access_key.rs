//! Keys of the server API and of the admin page.

use std::fmt;

use subtle::ConstantTimeEq;

use super::AuthSetupError;
use crate::config::Secret;

/// A shorter key can be found by trying.
const BYTES_MIN: usize = 16;

/// A key that requests have to show.
#[derive(Clone)]
pub struct AccessKey(String);

impl AccessKey {
    /// Reads the key, if one is configured under `name`.
    ///
    /// # Errors
    /// The file that it is in can't be read, or it has fewer than 16 bytes.
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

    /// Returns whether `presented` is this key. The time it takes tells its length at most.
    pub fn matches(&self, presented: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(presented).into()
    }
}

impl fmt::Debug for AccessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessKey(secret)")
    }
}
