//! An axum extractor that upgrades a request to a [`WebSocket`], over HTTP/1.1 or HTTP/2, and a server of
//! HTTP/2 for tower services with such requests among others.
//!
//! ```no_run
//! use axum::{Router, response::Response, routing::any};
//! use linerate::axum::WebSocketUpgrade;
//!
//! async fn echo(upgrade: WebSocketUpgrade) -> Response {
//!     upgrade.on_upgrade(|mut ws| async move {
//!         while let Some(message) = ws.recv().await? {
//!             ws.send(message).await?;
//!         }
//!         Ok(())
//!     })
//! }
//!
//! let app: Router = Router::new().route("/echo", any(echo));
//! ```

mod service;

use std::{fmt, future::Future};

use axum::{
    body::Body,
    extract::FromRequestParts,
    http::{StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use hyper::{
    ext::Protocol,
    upgrade::{OnUpgrade, Upgraded},
};
use hyper_util::rt::TokioIo;
use linerate_proto::{
    Role,
    handshake::{HandshakeError, HandshakeLimits, HttpVersion, OriginPolicy, Request, Scheme},
};
use tokio::{net::TcpStream, sync::oneshot};

pub use crate::http2::{RequestBody, serve_http2, speaks_http2};
use crate::{
    Options, Result, WebSocket,
    http2::{self, Connect, Stream},
    link::{Agreed, Alarm, Driver, Link, Transport},
    options::Settings,
};

pub use service::{Answering, WebSocketService};

/// A request that asks for a WebSocket and keeps all rules of the opening handshake.
///
/// Extracting one refuses requests that break a rule, with the status that fits. Those of pages from other
/// origins than allowed are refused by [`on_upgrade`](Self::on_upgrade); without
/// [`with_origin_policy`](Self::with_origin_policy) only pages of this server are allowed.
#[must_use]
pub struct WebSocketUpgrade {
    request: Request,
    way: Way,
    settings: Settings,
    subprotocol: Option<String>,
    origin_policy: OriginPolicy,
    scheme: Scheme,
}

impl WebSocketUpgrade {
    /// Sets the options of the connection.
    pub fn with_options(mut self, options: Options) -> Self {
        self.settings = options.into();
        self
    }

    /// Chooses the first of `subprotocols` that the client offered, if any.
    pub fn with_subprotocols(mut self, subprotocols: &[&str]) -> Self {
        self.subprotocol = self
            .request
            .websocket()
            .ok()
            .and_then(|upgrade| upgrade.choose_subprotocol(subprotocols).map(Into::into));
        self
    }

    /// Sets which pages may open a WebSocket here. Requests that no browser sent carry no origin and are
    /// not concerned.
    pub fn with_origin_policy(mut self, policy: OriginPolicy) -> Self {
        self.origin_policy = policy;
        self
    }

    /// Sets how the request came, which decides whether a page has the same origin. Default: in the clear.
    pub fn with_scheme(mut self, scheme: Scheme) -> Self {
        self.scheme = scheme;
        self
    }

    /// Says whether the page that sent the request may open a WebSocket here, for those who must know before
    /// [`on_upgrade`](Self::on_upgrade).
    ///
    /// # Errors
    /// It may not, or the request names two origins.
    pub fn check_origin(&self) -> std::result::Result<(), HandshakeRejection> {
        let checked = self.origin_policy.check(&self.request, self.scheme);
        checked.map_err(HandshakeRejection)
    }

    /// Returns the request.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// Answers the request and runs `handler` in a task of its own once the connection is open.
    ///
    /// When the handler is done, the connection is closed.
    pub fn on_upgrade<F>(self, handler: impl FnOnce(WebSocket) -> F + Send + 'static) -> Response
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        if let Err(rejection) = self.check_origin() {
            return rejection.into_response();
        }
        let Self {
            request,
            way,
            settings,
            subprotocol,
            ..
        } = self;
        let answered = accepting(&request, subprotocol.as_deref(), &settings);
        let (response, agreed) = match answered {
            Ok(answered) => answered,
            Err(error) => return HandshakeRejection(error).into_response(),
        };
        tokio::spawn(async move {
            let Some((io, leftover)) = way.into_io().await else {
                return;
            };
            let link = Link::new(io, Role::Server, &settings, &leftover, agreed);
            let handler = handler(WebSocket::new(link.clone()));
            tokio::spawn(Driver::new(link, handler, Alarm::own()));
        });
        response
    }
}

impl fmt::Debug for WebSocketUpgrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSocketUpgrade")
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}

impl<S: Sync> FromRequestParts<S> for WebSocketUpgrade {
    type Rejection = HandshakeRejection;

    async fn from_request_parts(
        parts: &mut Parts,
        _state: &S,
    ) -> std::result::Result<Self, HandshakeRejection> {
        let request = request(parts).map_err(HandshakeRejection)?;
        request.websocket().map_err(HandshakeRejection)?;
        let way =
            Way::take(parts).ok_or(HandshakeRejection(HandshakeError::ConnectionNotUpgrade))?;
        Ok(Self {
            request,
            way,
            settings: Settings::default(),
            subprotocol: None,
            origin_policy: OriginPolicy::default(),
            scheme: Scheme::Http,
        })
    }
}

/// How the request becomes a stream of bytes.
enum Way {
    /// By a stream of HTTP/2, of [`serve_http2`].
    Stream(oneshot::Receiver<Stream>),
    /// By an upgrade that hyper arranges, over HTTP/1.1 or on its own streams of HTTP/2.
    Upgrade(OnUpgrade),
}

impl Way {
    fn take(parts: &mut Parts) -> Option<Self> {
        match parts.extensions.get::<Connect>() {
            Some(connect) => connect.take().map(Self::Stream),
            None => parts.extensions.remove::<OnUpgrade>().map(Self::Upgrade),
        }
    }

    /// Waits until the response has opened the stream; returns it with what was read of it too early.
    async fn into_io(self) -> Option<(Transport, Vec<u8>)> {
        match self {
            // Nothing comes if the client is gone, which it is free to be.
            Self::Stream(stream) => {
                let stream = stream.await.ok()?;
                Some((Transport::Http2(Box::new(stream)), Vec::new()))
            }
            Self::Upgrade(upgrade) => match upgrade.await {
                Ok(upgraded) => Some(into_io(upgraded)),
                Err(error) => {
                    tracing::debug!(%error, "upgrade failed");
                    None
                }
            },
        }
    }
}

/// Why a request was not upgraded; as a response, it has the status that fits.
#[derive(Clone, Copy, Debug)]
pub struct HandshakeRejection(pub HandshakeError);

impl IntoResponse for HandshakeRejection {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status()).unwrap_or(StatusCode::BAD_REQUEST);
        let mut response = (status, format!("{}\n", self.0)).into_response();
        if status == StatusCode::UPGRADE_REQUIRED {
            let headers = response.headers_mut();
            headers.insert(
                header::UPGRADE,
                header::HeaderValue::from_static("websocket"),
            );
            headers.insert(
                header::CONNECTION,
                header::HeaderValue::from_static("upgrade"),
            );
            let version = header::HeaderValue::from_static("13");
            headers.insert(header::SEC_WEBSOCKET_VERSION, version);
        }
        response
    }
}

/// Returns the request in the form that the rules of the handshake are written for.
fn request(parts: &Parts) -> std::result::Result<Request, HandshakeError> {
    let limits = HandshakeLimits::default();
    let version = match parts.version {
        axum::http::Version::HTTP_10 => HttpVersion::Http10,
        axum::http::Version::HTTP_11 => HttpVersion::Http11,
        axum::http::Version::HTTP_2 => return http2_request(parts, limits),
        _ => return Err(HandshakeError::HttpVersionUnsupported),
    };
    let target = parts
        .uri
        .path_and_query()
        .map_or("/", |target| target.as_str());
    let headers = parts
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_bytes()));
    Request::from_parts(parts.method.as_str(), target, version, headers, limits)
}

/// Returns a request of HTTP/2, whichever implementation has read it.
fn http2_request(
    parts: &Parts,
    limits: HandshakeLimits,
) -> std::result::Result<Request, HandshakeError> {
    let ours = parts.extensions.get::<h2::ext::Protocol>();
    let hypers = parts.extensions.get::<Protocol>();
    let protocol = ours.map(h2::ext::Protocol::as_str);
    let protocol = protocol.or(hypers.map(Protocol::as_str));
    http2::request(parts, protocol, limits)
}

#[cfg_attr(
    not(feature = "deflate"),
    expect(unused_variables, reason = "no setting concerns the answer")
)]
fn accepting(
    request: &Request,
    subprotocol: Option<&str>,
    settings: &Settings,
) -> std::result::Result<(Response, Agreed), HandshakeError> {
    let upgrade = request.websocket()?;
    let mut acceptance = upgrade.accept();
    if let Some(subprotocol) = subprotocol {
        acceptance = acceptance
            .with_subprotocol(subprotocol)
            .map_err(|_| HandshakeError::SubprotocolUnoffered)?;
    }
    #[cfg(feature = "deflate")]
    if let Some(deflate) = &settings.options.deflate {
        acceptance = acceptance.with_deflate(deflate);
    }
    let agreed = Agreed::from(&acceptance);
    let mut response = Response::builder().status(acceptance.status());
    for (name, value) in acceptance.headers() {
        response = response.header(name, value);
    }
    let response = response.body(Body::empty());
    let response = response.map_err(|_| HandshakeError::HeaderValueInvalid)?;
    Ok((response, agreed))
}

/// Returns the connection itself where it is a plain socket, and what was read from it too early.
fn into_io(upgraded: Upgraded) -> (Transport, Vec<u8>) {
    match upgraded.downcast::<TokioIo<TcpStream>>() {
        Ok(parts) => (
            Transport::Tcp(parts.io.into_inner()),
            parts.read_buf.to_vec(),
        ),
        Err(upgraded) => (
            Transport::Other(Box::new(TokioIo::new(upgraded))),
            Vec::new(),
        ),
    }
}
