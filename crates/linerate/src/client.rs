//! Opening connections.

#[cfg(feature = "http2")]
mod http2;
#[cfg(feature = "http3")]
mod http3;
mod request;

use std::{borrow::Cow, fmt, net::IpAddr, sync::Arc};

use linerate_proto::{
    Role,
    handshake::{BuildError, ClientHandshake, HandshakeError, Negotiated, Origin},
};
use tokio::io::AsyncWriteExt;

use crate::{
    Error, Options, Result, WebSocket,
    dial::{
        Deadline, DialError, DialedStream, Dialer, Phase, Proxy, ProxyChoice, RedirectError,
        Resolve, Target, Timeouts, is_redirect,
    },
    link::{Driver, HandshakeResult, Link},
    options::Settings,
    transport::Transport,
};
use request::RequestParts;

/// Opens a connection to a `ws://` or `wss://` URL with the default settings.
///
/// A user and a password in the URL are sent to the server with Basic authentication (RFC 7617).
/// Host names that are not ASCII require the feature `idna`.
///
/// Must be called within a tokio runtime, where a background task maintains the connection.
///
/// # Errors
/// The URL is not a WebSocket URL, or the server cannot be reached, refuses the request, or takes
/// too long.
pub async fn connect(url: &str) -> Result<WebSocket> {
    Client::new().connect(url).await
}

/// A WebSocket client and its configuration, which can open any number of connections.
///
/// ```no_run
/// use linerate::Client;
///
/// # async fn f() -> linerate::Result<()> {
/// let client = Client::new()
///     .with_subprotocol("chat.v1")
///     .with_header("Authorization", "Bearer ann-secret");
/// let ws = client.connect("wss://example.com/chat").await?;
/// assert_eq!(ws.subprotocol().as_deref(), Some("chat.v1"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Client {
    settings: Settings,
    request: RequestParts,
    dialer: Dialer,
    redirects_max: u32,
    #[cfg(feature = "http2")]
    http2: http2::Http2Mode,
    #[cfg(feature = "http3")]
    is_http3: bool,
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
        self.request.subprotocols.push(subprotocol.into());
        self
    }

    /// Adds a header to the request of the opening handshake.
    ///
    /// A header that the handshake sets itself causes an error when connecting.
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.request.headers.push((name.into(), value.into()));
        self
    }

    /// Adds a cookie to the request of the opening handshake.
    ///
    /// # Errors
    /// The name is not a token, or the value contains a character that is not allowed in cookies
    /// (RFC 6265 §4.1.1).
    pub fn with_cookie(mut self, name: &str, value: &str) -> Result<Self, BuildError> {
        self.request.add_cookie(name, value)?;
        Ok(self)
    }

    /// Follows up to `redirects_max` redirects. The default is 0, which is how browsers behave.
    ///
    /// Redirects from `wss://` to `ws://` are never followed. When a redirect leads to another
    /// origin (scheme, host or port), the client does not send the application's headers and
    /// cookies or the user and password of the URL there; it does send the subprotocols. With a
    /// client certificate, redirects to another origin are not followed.
    pub fn with_redirects_max(mut self, redirects_max: u32) -> Self {
        self.redirects_max = redirects_max;
        self
    }

    /// Sends an `Origin` header, as a browser would.
    pub fn with_origin(mut self, origin: Origin) -> Self {
        self.request.origin = Some(origin);
        self
    }

    /// Sets the TLS configuration for `wss://`. By default, the client trusts the system's root
    /// certificates, or the bundled ones if the system has none.
    ///
    /// If you build `config` yourself instead of with [`tls`](crate::tls), we recommend
    /// [`tls::provider`](crate::tls::provider()) as its crypto provider.
    #[cfg(feature = "rustls")]
    pub fn with_tls(mut self, config: Arc<rustls::ClientConfig>) -> Self {
        self.dialer.tls = Some(config);
        self
    }

    /// Requests and verifies the certificate of the host `name` instead of the host in the URL
    /// (SNI, RFC 6066 §3).
    ///
    /// # Errors
    /// `name` is neither a host name nor an IP address.
    #[cfg(feature = "rustls")]
    pub fn with_server_name(mut self, name: &str) -> Result<Self, crate::dial::UrlError> {
        self.dialer.server_name = Some(linerate_proto::url::Host::parse(name)?);
        Ok(self)
    }

    /// Connects through `proxy`.
    ///
    /// By default, the proxy comes from the environment variables `http_proxy`, `https_proxy`,
    /// `all_proxy` and `no_proxy`, interpreted as curl does; connections to the local machine do
    /// not use a proxy.
    pub fn with_proxy(mut self, proxy: Proxy) -> Self {
        self.dialer.proxy = ProxyChoice::Fixed(Arc::new(proxy));
        self
    }

    /// Connects without a proxy, regardless of the environment.
    pub fn without_proxy(mut self) -> Self {
        self.dialer.proxy = ProxyChoice::Nothing;
        self
    }

    /// Sets how long each phase of opening a connection may take.
    pub fn with_timeouts(mut self, timeouts: Timeouts) -> Self {
        self.dialer.timeouts = timeouts;
        self
    }

    /// Resolves host names with `resolver` instead of the operating system.
    pub fn with_resolver(mut self, resolver: impl Resolve + 'static) -> Self {
        self.dialer.resolver = Arc::new(resolver);
        self
    }

    /// Connects only to addresses for which `check` returns `true`.
    ///
    /// The check runs on every connection attempt, after name resolution, so that a host name
    /// cannot lead to an address that the application must not contact. With a check, a proxy
    /// receives an address even if it could resolve the name itself; the address of the proxy
    /// itself is not checked.
    ///
    /// ```
    /// // Never connect to the local machine, even if a name resolves to it.
    /// let client = linerate::Client::new().with_address_check(|address| !address.is_loopback());
    /// ```
    pub fn with_address_check(
        mut self,
        check: impl Fn(IpAddr) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.dialer.address_check = Some(Arc::new(check));
        self
    }

    /// Opens a connection; see [`connect`].
    ///
    /// # Errors
    /// The URL is not a WebSocket URL, or the server cannot be reached, refuses the request, or
    /// takes too long.
    ///
    /// # Cancel safety
    /// Dropping the future ends the connection attempt at any stage: the server sees the stream
    /// end, or never receives a request.
    pub async fn connect(&self, url: &str) -> Result<WebSocket> {
        let deadline = Deadline::start(self.dialer.timeouts.total);
        let mut target = Target::parse(url)?;
        let mut client = Cow::Borrowed(self);
        let mut redirects = 0_u32;
        loop {
            let (location, error) = match client.connect_once(&target, &deadline).await? {
                Outcome::Opened(ws) => return Ok(ws),
                Outcome::Redirected { location, error } => (location, error),
            };
            if client.redirects_max == 0 {
                return Err(error);
            }
            redirects = redirects.saturating_add(1);
            let next = client.follow(&target, &location, redirects);
            let next = next.map_err(DialError::Redirect)?;
            if !target.is_same_origin(&next) {
                client.to_mut().forget_credentials();
            }
            target = next;
        }
    }

    /// Opens a connection over a stream that is already connected.
    ///
    /// `url` provides the host and the path for the request. If the connection should use TLS, the
    /// caller must set it up on `stream`.
    ///
    /// # Errors
    /// The URL is not a WebSocket URL, or the server refuses the request or takes too long.
    ///
    /// # Cancel safety
    /// Dropping the future drops the stream.
    pub async fn connect_over<S>(&self, stream: S, url: &str) -> Result<WebSocket>
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
    {
        let target = Target::parse(url)?;
        let deadline = Deadline::start(self.dialer.timeouts.total);
        let io = Transport::new(stream);
        #[cfg(feature = "http2")]
        if self.http2 == http2::Http2Mode::PriorKnowledge {
            let outcome = self.open_stream(io, &target, &deadline).await?;
            return outcome.ok_or(DialError::ProtocolUnsupported)?.into_result();
        }
        self.upgrade(io, &target, &deadline).await?.into_result()
    }

    async fn connect_once(&self, target: &Target, deadline: &Deadline) -> Result<Outcome> {
        #[cfg(feature = "http3")]
        if self.is_http3 {
            return self.connect_http3(target, deadline).await;
        }
        #[cfg(feature = "http2")]
        if self.http2 != http2::Http2Mode::Disabled {
            return self.connect_http2(target, deadline).await;
        }
        let dialed = self.dialer.dial(target, deadline).await?;
        self.upgrade_dialed(dialed, target, deadline).await
    }

    /// Returns the target of redirect number `redirects`, or the reason not to follow it.
    fn follow(
        &self,
        target: &Target,
        location: &str,
        redirects: u32,
    ) -> Result<Target, RedirectError> {
        let redirects_max = self.redirects_max;
        if redirects > redirects_max {
            return Err(RedirectError::TooMany {
                redirects,
                redirects_max,
            });
        }
        let next = target.redirected(location)?;
        if !target.is_same_origin(&next) && self.dialer.has_client_certificate() {
            return Err(RedirectError::ClientCertificate);
        }
        Ok(next)
    }

    /// Removes the credentials that are meant only for the original server.
    fn forget_credentials(&mut self) {
        self.request.forget_credentials();
        self.dialer.forget_server();
    }

    /// Opens the WebSocket over HTTP/1.1 if ALPN selected it or was not used.
    async fn upgrade_dialed(
        &self,
        dialed: DialedStream,
        target: &Target,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        match dialed.alpn.as_deref() {
            None | Some(b"http/1.1") => self.upgrade(dialed.io, target, deadline).await,
            Some(_) => Err(DialError::ProtocolUnsupported.into()),
        }
    }

    /// Returns the handshake for `target` with the application's settings.
    fn handshake(&self, target: &Target) -> Result<ClientHandshake> {
        let options = &self.settings.options;
        let handshake = self.request.handshake(target, options.handshake)?;
        #[cfg(feature = "deflate")]
        if let Some(deflate) = options.deflate {
            return Ok(handshake.with_deflate(deflate));
        }
        Ok(handshake)
    }

    /// Opens the WebSocket over HTTP/1.1.
    async fn upgrade(
        &self,
        mut io: Transport,
        target: &Target,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        let options = &self.settings.options;
        let mut handshake = self.handshake(target)?;
        let exchanged = exchange(&mut handshake, &mut io);
        let limit = options.handshake_timeout;
        let (negotiated, leftover) = match deadline.keep(Phase::Handshake, limit, exchanged).await?
        {
            Ok(exchanged) => exchanged,
            Err(error) => return Outcome::refused(&handshake, error),
        };
        Ok(self.open(io, &leftover, &negotiated))
    }

    /// Starts the connection on `io`, from which `leftover` has been read after the handshake.
    fn open(&self, io: Transport, leftover: &[u8], negotiated: &Negotiated) -> Outcome {
        let agreed = HandshakeResult::from(negotiated);
        let link = Link::new(io, Role::Client, &self.settings, leftover, agreed);
        tokio::spawn(Driver::without_handler(link.clone()));
        Outcome::Opened(WebSocket::new(link))
    }
}

/// The outcome of one request.
enum Outcome {
    Opened(WebSocket),
    /// The server sent a redirect; `error` is for callers that do not follow it.
    Redirected {
        location: String,
        error: Error,
    },
}

impl Outcome {
    /// Returns the outcome of a refusal: a redirect if the server sent a location, or else the
    /// error.
    fn refused(handshake: &ClientHandshake, error: Error) -> Result<Self> {
        match location(handshake, &error) {
            Some(location) => Ok(Self::Redirected { location, error }),
            None => Err(error),
        }
    }

    /// Returns the connection, treating a redirect as an error.
    fn into_result(self) -> Result<WebSocket> {
        match self {
            Self::Opened(ws) => Ok(ws),
            Self::Redirected { error, .. } => Err(error),
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("options", &self.settings.options)
            .field("subprotocols", &self.request.subprotocols)
            .finish_non_exhaustive()
    }
}

/// Returns the location of a redirect.
fn location(handshake: &ClientHandshake, error: &Error) -> Option<String> {
    match error {
        Error::Handshake(HandshakeError::StatusUnexpected { status }) if is_redirect(*status) => {
            let headers = handshake.refusal_headers()?;
            headers.first_text("Location").map(str::to_owned)
        }
        _ => None,
    }
}

/// Sends the request and reads the response; also returns the server's first bytes after it.
async fn exchange(
    handshake: &mut ClientHandshake,
    io: &mut Transport,
) -> Result<(Negotiated, Vec<u8>)> {
    let mut request = Vec::new();
    handshake.encode(&mut request);
    io.write_all(&request).await?;
    io.flush().await?;
    read_response(handshake, io).await
}

/// Reads the response; also returns the bytes after it, which are the server's first frames.
async fn read_response(
    handshake: &mut ClientHandshake,
    io: &mut Transport,
) -> Result<(Negotiated, Vec<u8>)> {
    loop {
        let read = io.read_with(|input| {
            if input.is_empty() {
                return Err(Error::from(handshake.handle_eof()));
            }
            let found = handshake.handle_input(input)?;
            Ok(found.map(|(negotiated, bytes)| (negotiated, input[bytes..].to_vec())))
        });
        if let Some(found) = read.await? {
            return Ok(found);
        }
    }
}
