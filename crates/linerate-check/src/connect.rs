//! Connects to the server under test: over TCP, with TLS for `wss:` URLs.

use std::{future::Future, io, sync::Arc, time::Duration};

use rustls::{ClientConfig, pki_types::ServerName};
use thiserror::Error;
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::TlsConnector;
use url::Url;

use crate::{
    connection::Connection,
    http2,
    tls::{Segments, Shape, ShapedStream, tls12},
};

/// The server under test.
#[derive(Clone)]
pub struct Target {
    host: String,
    port: u16,
    /// The value of the `Host` field.
    authority: String,
    path: String,
    fields: String,
    headers: Vec<(String, String)>,
    tls: Option<Tls>,
}

#[derive(Clone)]
struct Tls {
    name: ServerName<'static>,
    config: Arc<ClientConfig>,
    connector: TlsConnector,
    http2: TlsConnector,
}

impl Tls {
    fn new(name: ServerName<'static>, config: Arc<ClientConfig>) -> Self {
        let mut http2 = (*config).clone();
        http2.alpn_protocols = vec![ALPN_HTTP2.into()];
        Self {
            name,
            connector: config.clone().into(),
            config,
            http2: TlsConnector::from(Arc::new(http2)),
        }
    }
}

/// The ALPN protocol id of HTTP/2 over TLS (RFC 9113 §3.2).
const ALPN_HTTP2: &[u8] = b"h2";

/// Why a URL or a header was not accepted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TargetError {
    /// A header name or value has a character that it must not contain.
    #[error("invalid header {0:?}: line breaks, and colons in the name, are not allowed")]
    Header(String),
    /// The URL cannot be parsed.
    #[error("malformed URL")]
    Malformed(#[from] url::ParseError),
    /// The URL has no host, or one that is not valid for TLS.
    #[error("URL has no valid host")]
    NoHost,
    /// The scheme of the URL is not `ws` or `wss`.
    #[error("URL scheme is {0}:, expected ws: or wss:")]
    Scheme(String),
}

impl Target {
    /// Creates a target from a URL. `config` applies to `wss:` URLs; `headers` are added to each
    /// request.
    ///
    /// # Errors
    /// If the URL is malformed, has no host, or is not a `ws:` or `wss:` URL, or if a header
    /// contains a line break or its name a colon.
    pub fn new(
        url: &str,
        headers: &[(String, String)],
        config: Arc<ClientConfig>,
    ) -> Result<Self, TargetError> {
        let url = Url::parse(url)?;
        let tls = match url.scheme() {
            "ws" => false,
            "wss" => true,
            scheme => return Err(TargetError::Scheme(scheme.into())),
        };
        let host = url.host_str().ok_or(TargetError::NoHost)?;
        let bare = host.trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(bare.clone()).map_err(|_| TargetError::NoHost)?;
        let query = url
            .query()
            .map_or(String::new(), |query| format!("?{query}"));
        Ok(Self {
            port: url.port().unwrap_or(if tls { 443 } else { 80 }),
            authority: match url.port() {
                Some(port) => format!("{host}:{port}"),
                None => host.to_owned(),
            },
            host: bare,
            path: format!("{}{query}", url.path()),
            fields: fields(headers)?,
            headers: headers.to_vec(),
            tls: tls.then(|| Tls::new(name, config)),
        })
    }

    /// Returns whether the server runs on this machine: `localhost` or a loopback address.
    pub fn is_loopback(&self) -> bool {
        let address = self.host.parse::<std::net::IpAddr>();
        self.host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }

    /// Returns whether the connection uses TLS.
    pub fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Replaces `{host}`, `{path}` and `{more}` in a template with the values of this target.
    pub(crate) fn fill(&self, template: &[u8]) -> Vec<u8> {
        let mut filled = template.to_vec();
        for (name, value) in [
            ("{host}", &self.authority),
            ("{path}", &self.path),
            ("{more}", &self.fields),
        ] {
            filled = replaced(&filled, name.as_bytes(), value.as_bytes());
        }
        filled
    }

    /// Connects within `patience`.
    pub(crate) async fn connect(&self, patience: Duration) -> io::Result<Connection> {
        in_time(patience, self.dial()).await
    }

    /// Connects for HTTP/2: by ALPN over TLS, or with prior knowledge in the clear.
    pub(crate) async fn connect_http2(&self, patience: Duration) -> io::Result<Connection> {
        in_time(patience, self.dial_http2()).await
    }

    /// Returns the parts of a WebSocket request over HTTP/2.
    pub fn http2_request(&self) -> http2::Request {
        let lower = |(name, value): &(String, String)| (name.to_ascii_lowercase(), value.clone());
        http2::Request {
            scheme: if self.tls.is_some() { "https" } else { "http" }.into(),
            authority: self.authority.clone(),
            path: self.path.clone(),
            fields: self.headers.iter().map(lower).collect(),
        }
    }

    async fn dial(&self) -> io::Result<Connection> {
        let stream = self.dial_tcp().await?;
        Ok(match &self.tls {
            None => Box::new(stream),
            Some(tls) => Box::new(tls.connector.connect(tls.name.clone(), stream).await?),
        })
    }

    /// Connects without TLS, even if the URL is `wss:`.
    pub(crate) async fn connect_tcp(&self, patience: Duration) -> io::Result<Connection> {
        Ok(Box::new(in_time(patience, self.dial_tcp()).await?))
    }

    /// Connects over TLS that is cut into pieces of this shape.
    pub(crate) async fn connect_shaped(
        &self,
        shape: Shape,
        patience: Duration,
    ) -> io::Result<Connection> {
        in_time(patience, self.dial_shaped(shape)).await
    }

    async fn dial_shaped(&self, shape: Shape) -> io::Result<Connection> {
        let stream = Segments::new(self.dial_tcp().await?, shape);
        let Some(tls) = &self.tls else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let mut config = match shape.is_tls12 {
            true => tls12::config(tls.config.crypto_provider()).map_err(io::Error::other)?,
            false => (*tls.config).clone(),
        };
        config.max_fragment_size = shape.record_bytes_max;
        config.enable_secret_extraction = true;
        config.alpn_protocols = shape.protocols.iter().map(|it| it.to_vec()).collect();
        let connector = TlsConnector::from(Arc::new(config));
        let tls = connector.connect(tls.name.clone(), stream).await?;
        Ok(Box::new(ShapedStream::new(tls, shape)))
    }

    async fn dial_http2(&self) -> io::Result<Connection> {
        let stream = self.dial_tcp().await?;
        let Some(tls) = &self.tls else {
            return Ok(Box::new(stream));
        };
        let stream = tls.http2.connect(tls.name.clone(), stream).await?;
        if stream.get_ref().1.alpn_protocol() != Some(ALPN_HTTP2) {
            let why = "the server does not negotiate HTTP/2";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        Ok(Box::new(stream))
    }

    pub(crate) async fn dial_tcp(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect((&*self.host, self.port)).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Target({}{})", self.authority, self.path)
    }
}

/// Runs `work`, for no longer than `patience`.
pub(crate) async fn in_time<T>(
    patience: Duration,
    work: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    let done = timeout(patience, work).await;
    done.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

fn fields(headers: &[(String, String)]) -> Result<String, TargetError> {
    let mut fields = String::new();
    for (name, value) in headers {
        if name.contains(['\r', '\n', ':']) || value.contains(['\r', '\n']) {
            return Err(TargetError::Header(name.clone()));
        }
        fields.push_str(&format!("{name}: {value}\r\n"));
    }
    Ok(fields)
}

/// Returns `bytes` with every occurrence of `name` replaced by `value`.
pub(crate) fn replaced(bytes: &[u8], name: &[u8], value: &[u8]) -> Vec<u8> {
    let mut replaced = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, behind)) = rest.split_first() {
        if let Some(behind) = rest.strip_prefix(name) {
            replaced.extend(value);
            rest = behind;
        } else {
            replaced.push(*first);
            rest = behind;
        }
    }
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Arc<ClientConfig> {
        let provider = rustls::crypto::ring::default_provider();
        let config = ClientConfig::builder_with_provider(provider.into())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(rustls::RootCertStore::empty());
        config.with_no_client_auth().into()
    }

    fn target(url: &str) -> Result<Target, TargetError> {
        Target::new(url, &[("X-Key".into(), "7".into())], config())
    }

    #[test]
    fn a_request_has_host_path_and_headers() {
        let target = target("ws://[::1]:8080/echo?a=b").unwrap();
        let filled = target.fill(b"GET {path} HTTP/1.1\r\nHost: {host}\r\n{more}\xFF\r\n");
        assert_eq!(
            filled,
            b"GET /echo?a=b HTTP/1.1\r\nHost: [::1]:8080\r\nX-Key: 7\r\n\xFF\r\n"
        );
        assert!(target.is_loopback());
    }

    #[test]
    fn what_is_no_address_of_a_websocket_is_refused() {
        assert!(matches!(target("http://a/"), Err(TargetError::Scheme(_))));
        assert!(matches!(target("a"), Err(TargetError::Malformed(_))));
        assert!(!target("wss://example.com").unwrap().is_loopback());
    }

    #[test]
    fn headers_bring_no_line_breaks() {
        let headers = [("X".into(), "a\r\nY: b".into())];
        let target = Target::new("ws://a/", &headers, config());
        assert!(matches!(target, Err(TargetError::Header(_))));
    }
}
