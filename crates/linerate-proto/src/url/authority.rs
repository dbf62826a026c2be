//! The server in a URL (RFC 3986 §3.2).

use alloc::format;
use alloc::vec::Vec;
use core::fmt;

use iri_string::components::AuthorityComponents;
use iri_string::percent_encode::decode::decode_whatwg_bytes;
use iri_string::types::UriReferenceStr;

use super::{Host, UrlError, encode};

/// The part of a URL between `//` and the path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "RFC 3986 §3.2 has these parts")]
pub struct Authority {
    /// The user and the password, if any.
    pub credentials: Option<Credentials>,
    /// The host.
    pub host: Host,
    /// The port; `None` if it is absent or empty.
    pub port: Option<u16>,
}

/// A user and a password, without percent-encoding.
#[derive(Clone, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "callers build it from a user and a password"
)]
pub struct Credentials {
    /// The user.
    pub user: Vec<u8>,
    /// The password, which is empty if the URL has none.
    pub password: Vec<u8>,
}

impl Authority {
    /// Parses `user:password@host:port`, of which only the host is required. A path after it is
    /// ignored.
    ///
    /// # Errors
    ///
    /// Fails if `text` does not start with an authority.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let reference = encode(&format!("//{text}"));
        let reference = UriReferenceStr::new(&reference).map_err(|_| UrlError::Malformed)?;
        Self::of(reference.authority_components())
    }

    pub(super) fn of(parts: Option<AuthorityComponents<'_>>) -> Result<Self, UrlError> {
        let parts = parts.ok_or(UrlError::HostMissing)?;
        let port = parts.port().filter(|digits| !digits.is_empty());
        let port = port.map(|digits| digits.parse().map_err(|_| UrlError::PortInvalid));
        Ok(Self {
            credentials: Credentials::of(parts.userinfo().unwrap_or_default()),
            host: Host::parse(parts.host())?,
            port: port.transpose()?,
        })
    }
}

impl Credentials {
    fn of(userinfo: &str) -> Option<Self> {
        let (user, password) = userinfo.split_once(':').unwrap_or((userinfo, ""));
        let decode = |text: &str| {
            decode_whatwg_bytes(text.as_bytes())
                .into_bytes()
                .into_owned()
        };
        (!userinfo.is_empty()).then(|| Self {
            user: decode(user),
            password: decode(password),
        })
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}
