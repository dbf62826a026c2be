//! Users and passwords in URLs (RFC 3986 §3.2.1).

use base64::{Engine, prelude::BASE64_STANDARD};
use percent_encoding::percent_decode_str;
use url::Url;

/// The user and password for a server or a proxy.
#[derive(Clone, Eq, PartialEq)]
pub(crate) struct Credentials {
    pub(super) user: Vec<u8>,
    pub(super) password: Vec<u8>,
}

impl Credentials {
    /// Decodes the user and the password in `url`; returns `None` if it has neither.
    pub(super) fn of(url: &Url) -> Option<Self> {
        if url.username().is_empty() && url.password().is_none() {
            return None;
        }
        Some(Self {
            user: percent_decode_str(url.username()).collect(),
            password: percent_decode_str(url.password().unwrap_or_default()).collect(),
        })
    }

    /// Returns the header value for Basic authentication (RFC 7617 §2).
    pub(crate) fn to_basic(&self) -> String {
        let pair = [&self.user[..], b":", &self.password].concat();
        format!("Basic {}", BASE64_STANDARD.encode(pair))
    }
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}
