//! The servers that WebSocket URLs refer to.

use base64::{Engine, prelude::BASE64_STANDARD};
use linerate_proto::url::{Credentials, Host, Url, UrlError};

/// The server and the path that a URL refers to.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) is_secure: bool,
    pub(crate) host: Host,
    pub(crate) port: u16,
    /// The host, followed by the port unless it is the default of the scheme.
    pub(crate) authority: String,
    pub(crate) path_and_query: String,
    /// The user and password in the URL, if any.
    pub(crate) credentials: Option<Credentials>,
    pub(super) url: Url,
}

impl Target {
    /// # Errors
    /// `url` is not a WebSocket URL.
    pub(crate) fn parse(url: &str) -> Result<Self, UrlError> {
        Url::parse(url).map(Self::from)
    }
}

impl From<Url> for Target {
    fn from(url: Url) -> Self {
        Self {
            is_secure: url.is_secure(),
            host: url.host().clone(),
            port: url.port(),
            authority: url.authority(),
            path_and_query: url.path_and_query(),
            credentials: url.credentials().cloned(),
            url,
        }
    }
}

/// Returns the header value for Basic authentication (RFC 7617 §2).
pub(crate) fn basic(credentials: &Credentials) -> String {
    let pair = [&credentials.user[..], b":", &credentials.password].concat();
    format!("Basic {}", BASE64_STANDARD.encode(pair))
}
