//! Opening connections.

use std::{
    fmt,
    future::poll_fn,
    pin::Pin,
    task::{Poll, ready},
};

use linerate_proto::{
    Role,
    handshake::{ClientHandshake, Negotiated, Origin},
};
use tokio::{
    io::{AsyncRead, AsyncWriteExt, ReadBuf},
    net::TcpStream,
};
use url::{Host, Url};

use crate::{
    Error, Options, Result, WebSocket,
    error::UrlError,
    link::{Driver, Link, Transport},
    options::Settings,
    pool,
};

/// Opens a connection to a `ws://` or `wss://` URL with the default settings.
///
/// Must be called in a tokio runtime; the connection's housekeeping runs there in the background.
///
/// # Errors
/// The URL is none of a WebSocket, the server can't be reached, refuses, or takes too long.
pub async fn connect(url: &str) -> Result<WebSocket> {
    Client::new().connect(url).await
}

/// A client, to be configured.
#[derive(Clone, Default)]
pub struct Client {
    settings: Settings,
    subprotocols: Vec<String>,
    headers: Vec<(String, String)>,
    origin: Option<Origin>,
    #[cfg(feature = "rustls")]
    tls: Option<std::sync::Arc<rustls::ClientConfig>>,
}

impl Client {
    /// Creates a client with the default settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the options of each connection.
    pub fn with_options(mut self, options: Options) -> Self {
        self.settings = options.into();
        self
    }

    /// Offers a subprotocol; the server chooses at most one of those offered.
    pub fn with_subprotocol(mut self, subprotocol: impl Into<String>) -> Self {
        self.subprotocols.push(subprotocol.into());
        self
    }

    /// Adds a header to the request of the opening handshake.
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sends an `Origin`, as a browser would.
    pub fn with_origin(mut self, origin: Origin) -> Self {
        self.origin = Some(origin);
        self
    }

    /// Sets how `wss://` is spoken; by default with the roots of the system, or bundled ones where
    /// there are none.
    #[cfg(feature = "rustls")]
    pub fn with_tls(mut self, config: std::sync::Arc<rustls::ClientConfig>) -> Self {
        self.tls = Some(config);
        self
    }

    /// Opens a connection; see [`connect`].
    ///
    /// # Errors
    /// The URL is none of a WebSocket, the server can't be reached, refuses, or takes too long.
    pub async fn connect(&self, url: &str) -> Result<WebSocket> {
        let target = Target::parse(url)?;
        let budget = self.settings.options.handshake_timeout;
        let connected = tokio::time::timeout(budget, async {
            let stream = match &target.host {
                Host::Domain(name) => TcpStream::connect((name.as_str(), target.port)).await?,
                Host::Ipv4(address) => TcpStream::connect((*address, target.port)).await?,
                Host::Ipv6(address) => TcpStream::connect((*address, target.port)).await?,
            };
            stream.set_nodelay(true)?;
            let io = self.secure(stream, &target).await?;
            self.upgrade(io, &target).await
        });
        connected
            .await
            .unwrap_or(Err(Error::HandshakeTimeout { budget }))
    }

    /// Opens a connection over a stream that is connected already; `url` names the host and the
    /// path to ask for, and TLS, if it is to be, is up to the caller.
    ///
    /// # Errors
    /// The URL is none of a WebSocket, or the server refuses or takes too long.
    pub async fn connect_over<S>(&self, stream: S, url: &str) -> Result<WebSocket>
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
    {
        let target = Target::parse(url)?;
        let budget = self.settings.options.handshake_timeout;
        let upgraded = tokio::time::timeout(
            budget,
            self.upgrade(Transport::Other(Box::new(stream)), &target),
        );
        upgraded
            .await
            .unwrap_or(Err(Error::HandshakeTimeout { budget }))
    }

    #[cfg(feature = "rustls")]
    async fn secure(&self, stream: TcpStream, target: &Target) -> Result<Transport> {
        if !target.is_secure {
            return Ok(Transport::Tcp(stream));
        }
        let config = self
            .tls
            .clone()
            .unwrap_or_else(crate::tls::default_client_config);
        let stream = crate::tls::connect(config, &target.host, stream).await?;
        Ok(Transport::Other(Box::new(stream)))
    }

    #[cfg(not(feature = "rustls"))]
    async fn secure(&self, stream: TcpStream, target: &Target) -> Result<Transport> {
        match target.is_secure {
            true => Err(UrlError::TlsMissing.into()),
            false => Ok(Transport::Tcp(stream)),
        }
    }

    async fn upgrade(&self, mut io: Transport, target: &Target) -> Result<WebSocket> {
        let mut handshake = self.handshake(target)?;
        let mut request = Vec::new();
        handshake.encode(&mut request);
        io.write_all(&request).await?;
        io.flush().await?;
        let (negotiated, leftover) = read_response(&mut handshake, &mut io).await?;
        let subprotocol = negotiated.subprotocol();
        let link = Link::new(io, Role::Client, &self.settings, &leftover, subprotocol);
        tokio::spawn(Driver::without_handler(link.clone()));
        Ok(WebSocket::new(link))
    }

    fn handshake(&self, target: &Target) -> Result<ClientHandshake> {
        let mut handshake =
            ClientHandshake::new(&target.authority, &target.path_and_query, rand::random())?
                .with_limits(self.settings.options.handshake);
        for subprotocol in &self.subprotocols {
            handshake = handshake.with_subprotocol(subprotocol)?;
        }
        for (name, value) in &self.headers {
            handshake = handshake.with_header(name, value)?;
        }
        if let Some(origin) = &self.origin {
            handshake = handshake.with_origin(origin.clone());
        }
        Ok(handshake)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("options", &self.settings.options)
            .field("subprotocols", &self.subprotocols)
            .finish_non_exhaustive()
    }
}

/// Where a URL leads.
struct Target {
    is_secure: bool,
    host: Host<String>,
    port: u16,
    /// The host, and the port unless it is the scheme's own.
    authority: String,
    path_and_query: String,
}

impl Target {
    fn parse(url: &str) -> Result<Self> {
        let url = Url::parse(url).map_err(UrlError::Malformed)?;
        let is_secure = match url.scheme() {
            "ws" => false,
            "wss" => true,
            _ => return Err(UrlError::Scheme.into()),
        };
        // RFC 6455 §3: "fragment identifiers are meaningless in the context of WebSocket URIs and
        // MUST NOT be used on these URIs".
        if url.fragment().is_some() {
            return Err(UrlError::Fragment.into());
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
        })
    }
}

/// Reads the response; what came behind it are the server's first frames.
async fn read_response(
    handshake: &mut ClientHandshake,
    io: &mut Transport,
) -> Result<(Negotiated, Vec<u8>)> {
    loop {
        let read = poll_fn(|cx| {
            pool::with_read_buffer(|buffer| {
                let mut read = ReadBuf::new(buffer);
                ready!(Pin::new(&mut *io).poll_read(cx, &mut read))?;
                let input = read.filled();
                if input.is_empty() {
                    return Poll::Ready(Err(Error::from(handshake.handle_eof())));
                }
                let found = handshake.handle_input(input)?;
                Poll::Ready(Ok(
                    found.map(|(negotiated, bytes)| (negotiated, input[bytes..].to_vec()))
                ))
            })
        });
        if let Some(found) = read.await? {
            return Ok(found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
