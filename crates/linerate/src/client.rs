//! Opening connections.

mod body;
#[cfg(feature = "http2")]
mod http2;
#[cfg(feature = "http3")]
mod http3;
mod request;

#[cfg(unix)]
use std::path::Path;
use std::{borrow::Cow, fmt, mem, net::IpAddr, sync::Arc, time::Duration};

use linerate_proto::{
    Role,
    handshake::{BuildError, ClientHandshake, HandshakeError, Headers, Negotiated, Origin},
};
use tokio::{
    io::{AsyncRead, AsyncWriteExt},
    time::Instant,
};

use crate::{
    Error, Options, Result, WebSocket,
    dial::{
        Deadline, DialError, DialedStream, Dialer, Phase, Proxy, ProxyChoice, RedirectError,
        Resolve, Target, Timeouts, is_redirect,
    },
    link::{Driver, HandshakeResult, Link},
    options::Settings,
    response::Response,
    runtime::{Runtime, RuntimeHandle},
    transport::Transport,
};
use body::Body;
use request::RequestParts;

/// How long to wait for the body of a refusal, which matters less than the refusal itself.
const BODY_TIME_MAX: Duration = Duration::from_secs(1);

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
    runtime: RuntimeHandle,
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

    /// Starts tasks and timers on `runtime` instead of tokio; see [`runtime`](crate::runtime).
    ///
    /// The client opens WebSockets only with [`connect_over`](Self::connect_over) then, because
    /// only tokio can open sockets.
    pub fn with_runtime(mut self, runtime: impl Runtime) -> Self {
        self.runtime = RuntimeHandle::new(runtime);
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
        let (ws, _) = self.connect_with_response(url).await?;
        Ok(ws)
    }

    /// Opens a connection like [`connect`](Self::connect), and also returns the server's response,
    /// for instance to read cookies from its headers.
    ///
    /// ```no_run
    /// # async fn f() -> linerate::Result<()> {
    /// let client = linerate::Client::new();
    /// let (ws, response) = client.connect_with_response("wss://example.com/").await?;
    /// println!("{:?}", response.headers.first_text("Set-Cookie"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Same as for [`connect`](Self::connect), which also describes the cancel safety.
    pub async fn connect_with_response(&self, url: &str) -> Result<(WebSocket, Response)> {
        self.require_tokio()?;
        let deadline = self.start_deadline();
        let mut target = Target::parse(url)?;
        let mut client = Cow::Borrowed(self);
        let mut redirects = 0_u32;
        loop {
            let response = match client.connect_once(&target, &deadline).await? {
                Outcome::Opened(ws, response) => return Ok((ws, *response)),
                Outcome::Refused(response) => response,
            };
            let location = response.headers.first_text("Location");
            let location = location.filter(|_| is_redirect(response.status));
            let Some(location) = location.filter(|_| client.redirects_max > 0) else {
                return Err(Error::StatusUnexpected(response));
            };
            redirects = redirects.saturating_add(1);
            let next = client.follow(&target, location, redirects);
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
        let deadline = self.start_deadline();
        let io = Transport::new(stream);
        #[cfg(feature = "http2")]
        if self.http2 == http2::Http2Mode::PriorKnowledge {
            self.require_tokio()?;
            let outcome = self.open_stream(io, &target, &deadline).await?;
            return outcome.ok_or(DialError::ProtocolUnsupported)?.into_result();
        }
        self.upgrade(io, &target, &deadline).await?.into_result()
    }

    /// Opens a connection to the server that listens on the Unix socket at `path`.
    ///
    /// `url` provides the host and the path for the request, and `wss://` uses TLS on the socket.
    /// Proxies, the resolver and the address check are not used.
    ///
    /// ```no_run
    /// # async fn f() -> linerate::Result<()> {
    /// let client = linerate::Client::new();
    /// let mut ws = client.connect_unix("/run/app.sock", "ws://localhost/events").await?;
    /// ws.send("Spam").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The URL is not a WebSocket URL, or the server cannot be reached, refuses the request or
    /// takes too long.
    ///
    /// # Cancel safety
    /// Same as for [`connect`](Self::connect).
    #[cfg(unix)]
    pub async fn connect_unix(&self, path: impl AsRef<Path>, url: &str) -> Result<WebSocket> {
        self.require_tokio()?;
        let target = Target::parse(url)?;
        let deadline = self.start_deadline();
        let dialer = &self.dialer;
        let dialed = dialer.dial_unix(path.as_ref(), &target, &deadline).await?;
        #[cfg(feature = "http2")]
        if self.http2 == http2::Http2Mode::PriorKnowledge && !target.is_secure {
            let outcome = self.open_stream(dialed.io, &target, &deadline).await?;
            return outcome.ok_or(DialError::ProtocolUnsupported)?.into_result();
        }
        self.upgrade_dialed(dialed, &target, &deadline)
            .await?
            .into_result()
    }

    /// Starts the time limit for opening a connection.
    fn start_deadline(&self) -> Deadline {
        Deadline::start(self.dialer.timeouts.total, &self.runtime)
    }

    fn require_tokio(&self) -> Result<(), DialError> {
        match self.runtime.is_tokio() {
            true => Ok(()),
            false => Err(DialError::RuntimeUnsupported),
        }
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
        let mut handshake = self.handshake(target)?;
        let begun = Instant::now();
        let exchanged = exchange(&mut handshake, &mut io, target.is_secure);
        let limit = self.settings.options.handshake_timeout;
        match deadline.keep(Phase::Handshake, limit, exchanged).await?? {
            Answer::Accepted(negotiated, leftover) => Ok(self.open(io, &leftover, negotiated)),
            Answer::Refused(status, leftover) => {
                let bytes_max = self.settings.options.response_body_bytes_max;
                let headers = handshake.into_refusal_headers();
                let mut body = Body::http1(status, &headers, bytes_max);
                if self.keeps_body(status) {
                    body.push(&leftover);
                }
                let refusal = Refusal {
                    status,
                    headers,
                    body,
                };
                Ok(self.read_refusal(refusal, io, deadline, begun).await)
            }
        }
    }

    /// Returns the refusal of a WebSocket on an HTTP/2 or HTTP/3 stream, whose body has not been
    /// read.
    #[cfg(any(feature = "http2", feature = "http3"))]
    fn refusal_on_stream(&self, status: u16, handshake: ClientHandshake) -> Refusal {
        Refusal {
            status,
            headers: handshake.into_refusal_headers(),
            body: Body::until_end(self.settings.options.response_body_bytes_max),
        }
    }

    /// Returns whether the body of a response with this status is of interest.
    fn keeps_body(&self, status: u16) -> bool {
        self.settings.options.response_body_bytes_max > 0 && !is_redirect(status)
    }

    /// Reads the body of a refusal, as far as the limits on its size and time allow. The handshake
    /// began at `begun`.
    async fn read_refusal(
        &self,
        mut refusal: Refusal,
        mut io: impl AsyncRead + Unpin,
        deadline: &Deadline,
        begun: Instant,
    ) -> Outcome {
        if self.keeps_body(refusal.status) {
            let limit = self.settings.options.handshake_timeout;
            let left = limit.saturating_sub(begun.elapsed());
            let read = refusal.body.read(&mut io);
            // A body that is late is truncated.
            _ = deadline
                .keep(Phase::Handshake, left.min(BODY_TIME_MAX), read)
                .await;
        }
        let (body, is_truncated) = refusal.body.into_parts();
        Outcome::Refused(Box::new(Response {
            status: refusal.status,
            headers: refusal.headers,
            body,
            is_truncated,
        }))
    }

    /// Starts the connection on `io`, from which `leftover` has been read after the handshake.
    fn open(&self, io: Transport, leftover: &[u8], negotiated: Negotiated) -> Outcome {
        let agreed = HandshakeResult::from(&negotiated);
        let link = Link::new(io, Role::Client, &self.settings, leftover, agreed);
        let driver = Driver::without_handler(link.clone(), &self.runtime);
        self.runtime.spawn(driver);
        let response = Response::opened(negotiated);
        Outcome::Opened(WebSocket::new(link), Box::new(response))
    }
}

/// The outcome of one request.
enum Outcome {
    Opened(WebSocket, Box<Response>),
    Refused(Box<Response>),
}

impl Outcome {
    /// Returns the connection, treating a redirect as an error.
    fn into_result(self) -> Result<WebSocket> {
        match self {
            Self::Opened(ws, _) => Ok(ws),
            Self::Refused(response) => Err(Error::StatusUnexpected(response)),
        }
    }
}

/// A refusal whose body has not been read.
struct Refusal {
    status: u16,
    headers: Headers,
    body: Body,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("options", &self.settings.options)
            .field("subprotocols", &self.request.subprotocols)
            .finish_non_exhaustive()
    }
}

/// The head of a response over HTTP/1.1, and the bytes after it.
enum Answer {
    Accepted(Negotiated, Vec<u8>),
    Refused(u16, Vec<u8>),
}

/// Sends the request and reads the head of the response.
///
/// # Errors
/// The stream fails, or the response is malformed. If the stream is not secure, an answer in TLS is
/// recognized.
async fn exchange(
    handshake: &mut ClientHandshake,
    io: &mut Transport,
    is_secure: bool,
) -> Result<Answer> {
    let mut request = Vec::new();
    handshake.encode(&mut request);
    io.write_all(&request).await?;
    io.flush().await?;
    let mut is_first = true;
    loop {
        let read = io.read_with(|input| {
            let [first, ..] = input else {
                return Err(Error::from(handshake.handle_eof()));
            };
            // The content types alert and handshake (RFC 8446 §5.1), which never begin a response.
            if mem::take(&mut is_first) && !is_secure && matches!(first, 0x15 | 0x16) {
                return Err(DialError::TlsRequired.into());
            }
            match handshake.handle_input(input) {
                Ok(found) => Ok(found.map(|(negotiated, head_bytes)| {
                    Answer::Accepted(negotiated, input[head_bytes..].to_vec())
                })),
                Err(HandshakeError::StatusUnexpected { status }) => {
                    let head_bytes = handshake.refusal_head_bytes();
                    Ok(Some(Answer::Refused(status, input[head_bytes..].to_vec())))
                }
                Err(error) => Err(error.into()),
            }
        });
        if let Some(answer) = read.await? {
            return Ok(answer);
        }
    }
}
