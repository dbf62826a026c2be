//! Decides which web pages may open a WebSocket (RFC 6455 §10.2, RFC 6454).

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use super::authority::Authority;
use super::{BuildError, HandshakeError, Request};

/// How a request was transported; together with `Host` it determines our own origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "an origin of a browser that may open a WebSocket has one of these two"
)]
pub enum Scheme {
    /// Without encryption.
    Http,
    /// Over TLS, which either we or a proxy in front of us terminated.
    Https,
}

impl Scheme {
    fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    fn port_default(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// The origin of a page: `https://example.com` or `http://localhost:8080`.
///
/// ```
/// use linerate_proto::handshake::Origin;
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let origin: Origin = "HTTPS://Example.com:443".parse()?;
/// assert_eq!(origin, "https://example.com".parse()?);
/// assert_ne!(origin, "http://example.com".parse()?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    scheme: Scheme,
    /// In lower case.
    host: String,
    port: u16,
}

impl Origin {
    fn parse(value: &[u8]) -> Option<Self> {
        let colon = value.iter().position(|&byte| byte == b':')?;
        let (scheme, rest) = value.split_at(colon);
        let scheme = [Scheme::Http, Scheme::Https]
            .into_iter()
            .find(|known| scheme.eq_ignore_ascii_case(known.as_str().as_bytes()))?;
        Self::of(scheme, rest.strip_prefix(b"://")?)
    }

    fn of(scheme: Scheme, authority: &[u8]) -> Option<Self> {
        let Authority { host, port } = Authority::parse(authority)?;
        let port = port.unwrap_or(scheme.port_default());
        Some(Self {
            scheme,
            host: host.to_ascii_lowercase(),
            port,
        })
    }
}

impl FromStr for Origin {
    type Err = BuildError;

    fn from_str(text: &str) -> Result<Self, BuildError> {
        Self::parse(text.as_bytes()).ok_or(BuildError::OriginInvalid)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.as_str(), self.host)?;
        if self.port != self.scheme.port_default() {
            write!(f, ":{}", self.port)?;
        }
        Ok(())
    }
}

/// Which pages may open a WebSocket on this server.
///
/// Browsers let any page open a WebSocket to any server, and send the server's cookies with the
/// request. A server that does not check `Origin` therefore gives every page that its users visit
/// access to their sessions. A request without `Origin` does not come from a browser and is
/// allowed; `null`, the origin of sandboxed pages and local files, is not.
///
/// ```
/// use linerate_proto::handshake::{
///     HandshakeError, HandshakeLimits, OriginPolicy, RequestReader, Scheme,
/// };
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let mut reader = RequestReader::new(HandshakeLimits::default());
/// let input = b"GET / HTTP/1.1\r\nHost: app.example\r\nOrigin: https://admin.example\r\n\r\n";
/// let (request, _) = reader.handle_input(input)?.ok_or("the head is whole")?;
/// let denied = OriginPolicy::SameOrigin.check(&request, Scheme::Https);
/// assert_eq!(denied, Err(HandshakeError::OriginDenied));
/// OriginPolicy::List(vec!["https://admin.example".parse()?]).check(&request, Scheme::Https)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OriginPolicy {
    /// Allows every page. Use this only if nothing depends on the identity of the browser's user.
    DangerAny,
    /// Allows pages from these origins. Pages from this server must be listed as well.
    List(Vec<Origin>),
    /// Allows pages from this server: their scheme, host and port must be those to which the
    /// request was sent.
    #[default]
    SameOrigin,
}

impl OriginPolicy {
    /// Checks a request that was transported by `scheme`.
    ///
    /// # Errors
    ///
    /// Fails with [`HandshakeError::OriginDenied`], or with [`HandshakeError::HeaderDuplicate`] if
    /// there are two `Origin` headers.
    pub fn check(&self, request: &Request, scheme: Scheme) -> Result<(), HandshakeError> {
        let Some(value) = request.headers().single("Origin")? else {
            return Ok(());
        };
        let is_allowed = match self {
            Self::DangerAny => true,
            Self::List(origins) => {
                Origin::parse(value).is_some_and(|origin| origins.contains(&origin))
            }
            Self::SameOrigin => {
                let own = request
                    .header("Host")
                    .and_then(|host| Origin::of(scheme, host));
                own.is_some() && own == Origin::parse(value)
            }
        };
        if is_allowed {
            Ok(())
        } else {
            Err(HandshakeError::OriginDenied)
        }
    }
}
