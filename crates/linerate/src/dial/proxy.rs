//! Proxies for clients: HTTP CONNECT and SOCKS5.
//!
//! hyper-util has connectors for both and a matcher for the environment variables, which we do not
//! use. The connectors do not export their errors, so that a refusal has no status and could not be
//! told from a failure worth retrying, and they lose bytes that arrive after the proxy's response.
//! The matcher ignores a malformed variable and connects directly. Together they would add 13
//! crates to a default build, to replace about 200 lines.

mod env;
mod error;
mod http;
mod socks5;

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr},
    str::FromStr,
    sync::Arc,
};

use linerate_proto::url::{Authority, Credentials, Host};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};

use super::Target;
use crate::transport::Transport;
pub use error::{ProxyError, ProxyUrlError};

/// A proxy server, given by a URL.
///
/// - `http://` and `https://`: a tunnel with CONNECT (RFC 9110 §9.3.6); the connection to the proxy
///   is plain TCP or TLS. The proxy resolves host names.
/// - `socks5://`: SOCKS5 (RFC 1928). The client resolves host names, and the proxy gets an address.
/// - `socks5h://`: SOCKS5. The proxy resolves host names.
///
/// As with curl, the default scheme is `http://`, and the default port is 443 for `https://` and
/// 1080 for everything else. A percent-encoded user and password in the URL are sent to the proxy:
/// with Basic authentication (RFC 7617) to an HTTP proxy, or according to RFC 1929 to a SOCKS5
/// proxy.
///
/// ```
/// use linerate::{Client, dial::Proxy};
///
/// # fn main() -> Result<(), linerate::dial::ProxyUrlError> {
/// let proxy: Proxy = "socks5h://user:pa%24%24@proxy.example:1080".parse()?;
/// let client = Client::new().with_proxy(proxy);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Proxy {
    kind: Kind,
    pub(super) host: Host,
    pub(super) port: u16,
    credentials: Option<Credentials>,
    #[cfg(feature = "rustls")]
    tls: Option<Arc<rustls::ClientConfig>>,
}

/// The protocol of a proxy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Http,
    Https,
    /// SOCKS5; the proxy gets an address.
    Socks5,
    /// SOCKS5; the proxy gets a host name.
    Socks5Names,
}

/// The destination that a proxy is asked to connect to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Destination {
    pub(super) host: Host,
    pub(super) port: u16,
}

/// Which proxy a client uses.
#[derive(Clone, Debug, Default)]
pub(crate) enum ProxyChoice {
    /// The one that the environment variables select for each URL.
    #[default]
    Environment,
    /// Always this one.
    Fixed(Arc<Proxy>),
    /// No proxy.
    Nothing,
}

impl ProxyChoice {
    /// Returns the proxy for `target`.
    ///
    /// # Errors
    /// The environment variable has an invalid proxy URL.
    pub(super) fn proxy_for(&self, target: &Target) -> Result<Option<Arc<Proxy>>, ProxyError> {
        match self {
            Self::Environment => {
                let variable = |name: &str| Some(std::env::var_os(name)?.to_string_lossy().into());
                Ok(env::proxy_for(target, variable)?.map(Arc::new))
            }
            Self::Fixed(proxy) => Ok(Some(proxy.clone())),
            Self::Nothing => Ok(None),
        }
    }
}

impl Proxy {
    /// Sets the TLS configuration for an `https://` proxy. The default trusts the same root
    /// certificates as for servers.
    #[cfg(feature = "rustls")]
    pub fn with_tls(mut self, config: Arc<rustls::ClientConfig>) -> Self {
        self.tls = Some(config);
        self
    }

    /// Returns whether the proxy resolves host names.
    pub(super) fn takes_names(&self) -> bool {
        self.kind != Kind::Socks5
    }

    /// Asks the proxy at the other end of `stream` to connect to `destination`.
    ///
    /// # Errors
    /// The proxy refuses, or violates the protocol.
    pub(super) async fn connect(
        &self,
        stream: TcpStream,
        destination: &Destination,
    ) -> Result<Transport, ProxyError> {
        let io = Transport::Tcp(stream);
        let mut io = match self.kind {
            Kind::Https => self.secure(io).await?,
            Kind::Http | Kind::Socks5 | Kind::Socks5Names => io,
        };
        self.ask(&mut io, destination).await?;
        Ok(io)
    }

    async fn ask<S>(&self, io: &mut S, destination: &Destination) -> Result<(), ProxyError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let credentials = self.credentials.as_ref();
        match self.kind {
            Kind::Http | Kind::Https => http::tunnel(io, destination, credentials).await,
            Kind::Socks5 | Kind::Socks5Names => socks5::connect(io, destination, credentials).await,
        }
    }

    #[cfg(feature = "rustls")]
    async fn secure(&self, io: Transport) -> Result<Transport, ProxyError> {
        let config = self.tls.clone();
        let config = config.unwrap_or_else(crate::tls::default_client_config);
        let (io, _) = crate::tls::connect(config, &self.host, io).await?;
        Ok(io)
    }

    #[cfg(not(feature = "rustls"))]
    async fn secure(&self, _io: Transport) -> Result<Transport, ProxyError> {
        Err(std::io::Error::from(std::io::ErrorKind::Unsupported).into())
    }
}

impl FromStr for Proxy {
    type Err = ProxyUrlError;

    fn from_str(text: &str) -> Result<Self, ProxyUrlError> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        let kind = match scheme.to_ascii_lowercase().as_str() {
            "http" => Kind::Http,
            "https" if cfg!(feature = "rustls") => Kind::Https,
            "socks5" => Kind::Socks5,
            "socks5h" => Kind::Socks5Names,
            _ => return Err(ProxyUrlError::Scheme),
        };
        let server = Authority::parse(rest)?;
        check_length(server.credentials.as_ref())?;
        Ok(Self {
            kind,
            host: server.host,
            port: server.port.unwrap_or(kind.port_default()),
            credentials: server.credentials,
            #[cfg(feature = "rustls")]
            tls: None,
        })
    }
}

impl fmt::Debug for Proxy {
    /// Omits the credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("kind", &self.kind)
            .field("host", &self.host)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

impl Kind {
    fn port_default(self) -> u16 {
        match self {
            Self::Https => 443,
            Self::Http | Self::Socks5 | Self::Socks5Names => 1080,
        }
    }
}

/// The maximum length of a user and of a password in bytes (RFC 1929 §2).
const CREDENTIALS_BYTES_MAX: usize = 255;

fn check_length(credentials: Option<&Credentials>) -> Result<(), ProxyUrlError> {
    let bytes = credentials.map_or(0, |known| known.user.len().max(known.password.len()));
    if bytes > CREDENTIALS_BYTES_MAX {
        return Err(ProxyUrlError::CredentialsTooLong {
            bytes,
            bytes_max: CREDENTIALS_BYTES_MAX,
        });
    }
    Ok(())
}

impl Destination {
    pub(super) fn new(host: Host, port: u16) -> Self {
        Self { host, port }
    }
}

impl From<std::net::SocketAddr> for Destination {
    fn from(address: std::net::SocketAddr) -> Self {
        let host = match address.ip() {
            IpAddr::V4(address) => Host::Ipv4(address),
            IpAddr::V6(address) => Host::Ipv6(address),
        };
        Self::new(host, address.port())
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Returns whether a host refers to the local machine by name or by address (RFC 6761 §6.3).
fn is_this_machine(host: &Host) -> bool {
    match host {
        Host::Name(name) => {
            let name = name.trim_end_matches('.');
            name.eq_ignore_ascii_case("localhost")
                || name.to_ascii_lowercase().ends_with(".localhost")
        }
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => {
            address.is_loopback()
                || address
                    .to_ipv4_mapped()
                    .is_some_and(|address: Ipv4Addr| address.is_loopback())
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_proto::url::UrlError;

    use super::*;

    fn parsed(text: &str) -> (Kind, String, u16, Option<(String, String)>) {
        let proxy: Proxy = text.parse().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let credentials = proxy
            .credentials
            .map(|credentials| (text(credentials.user), text(credentials.password)));
        (proxy.kind, proxy.host.to_string(), proxy.port, credentials)
    }

    #[test]
    fn a_proxy_has_the_scheme_and_the_port_that_curl_gives_it() {
        for (text, kind, host, port) in [
            ("proxy", Kind::Http, "proxy", 1080),
            ("proxy:3128", Kind::Http, "proxy", 3128),
            ("http://proxy", Kind::Http, "proxy", 1080),
            ("http://proxy:80/", Kind::Http, "proxy", 80),
            (
                "HTTP://Proxy.Example:8080",
                Kind::Http,
                "proxy.example",
                8080,
            ),
            ("https://proxy", Kind::Https, "proxy", 443),
            ("socks5://127.0.0.1", Kind::Socks5, "127.0.0.1", 1080),
            ("socks5h://[::1]:9", Kind::Socks5Names, "[::1]", 9),
        ] {
            if kind == Kind::Https && !cfg!(feature = "rustls") {
                continue;
            }
            assert_eq!(parsed(text), (kind, host.into(), port, None), "{text}");
        }
    }

    #[test]
    fn credentials_are_decoded_and_not_shown() {
        let expected = Some(("a@b".into(), "p:/\u{e4}".into()));
        assert_eq!(parsed("http://a%40b:p%3A%2F%C3%A4@proxy:1").3, expected);
        assert_eq!(parsed("user@proxy:1").3, Some(("user".into(), "".into())));
        let proxy: Proxy = "http://user:secret@proxy".parse().unwrap();
        let shown = format!("{proxy:?}");
        assert!(
            !shown.contains("secret") && !shown.contains("user"),
            "{shown}"
        );
    }

    #[test]
    fn what_names_no_proxy_is_refused() {
        let error = |text: &str| text.parse::<Proxy>().unwrap_err();
        assert_eq!(error("socks4://proxy"), ProxyUrlError::Scheme);
        assert_eq!(error("ftp://proxy"), ProxyUrlError::Scheme);
        for (text, expected) in [
            ("http://", UrlError::HostMissing),
            ("", UrlError::HostMissing),
            ("http://proxy:port", UrlError::Malformed),
            ("http://proxy:65536", UrlError::PortInvalid),
            ("http://[::1", UrlError::Malformed),
        ] {
            assert_eq!(error(text), ProxyUrlError::Url(expected), "{text}");
        }
        let longest = "x".repeat(255);
        assert!(
            format!("http://{longest}:{longest}@proxy")
                .parse::<Proxy>()
                .is_ok()
        );
        assert_eq!(
            error(&format!("http://u:{longest}x@proxy")),
            ProxyUrlError::CredentialsTooLong {
                bytes: 256,
                bytes_max: 255
            }
        );
    }
}
