//! Parsing WebSocket URLs (RFC 6455 §3).

use url::{Host, Url};

use super::Credentials;
use crate::{Result, error::UrlError};

/// The server and the path that a URL refers to.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) is_secure: bool,
    pub(crate) host: Host<String>,
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
    pub(crate) fn parse(url: &str) -> Result<Self> {
        Ok(Self::of(Url::parse(url).map_err(UrlError::Malformed)?)?)
    }

    pub(super) fn of(url: Url) -> Result<Self, UrlError> {
        let is_secure = match url.scheme() {
            "ws" => false,
            "wss" => true,
            _ => return Err(UrlError::Scheme),
        };
        // RFC 6455 §3: "fragment identifiers are meaningless in the context of WebSocket URIs and
        // MUST NOT be used on these URIs".
        if url.fragment().is_some() {
            return Err(UrlError::Fragment);
        }
        let host = url.host().ok_or(UrlError::HostMissing)?.to_owned();
        let authority = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_string(),
        };
        let path_and_query = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        let port = url.port().unwrap_or(if is_secure { 443 } else { 80 });
        Ok(Self {
            is_secure,
            host,
            port,
            authority,
            path_and_query,
            credentials: Credentials::of(&url),
            url,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn a_url_names_host_port_and_path() {
        let target = Target::parse("ws://example.com/chat?room=1").unwrap();
        assert_eq!((target.is_secure, target.port), (false, 80));
        assert_eq!(target.authority, "example.com");
        assert_eq!(target.path_and_query, "/chat?room=1");

        let target = Target::parse("wss://[::1]:8443").unwrap();
        assert_eq!((target.is_secure, target.port), (true, 8443));
        assert_eq!(target.authority, "[::1]:8443");
        assert_eq!(target.path_and_query, "/");
    }

    #[test]
    fn other_urls_are_refused() {
        let error = |url| match Target::parse(url) {
            Err(Error::Url(error)) => error,
            _ => panic!("{url} was accepted"),
        };
        assert_eq!(error("http://example.com/"), UrlError::Scheme);
        assert_eq!(error("ws://example.com/#top"), UrlError::Fragment);
        assert!(matches!(error("example.com"), UrlError::Malformed(_)));
    }
}
