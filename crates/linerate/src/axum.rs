//! An axum extractor that upgrades a request to a [`WebSocket`] over HTTP/1.1 or HTTP/2, and an
//! HTTP/2 server for tower services that handle such requests among others.
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

mod connections;
mod detachable;
mod service;
mod upgraded;

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
use linerate_h2::{Connect, Stream};
use linerate_proto::{
    Role,
    handshake::{HandshakeError, HandshakeLimits, OriginPolicy, Request, Scheme},
};
use tokio::{net::TcpStream, sync::oneshot};

use crate::{
    Options, Result, WebSocket,
    link::{Alarm, Driver, HandshakeResult, Link},
    options::Settings,
    runtime::RuntimeHandle,
    transport::Transport,
};

pub use connections::Connections;
pub use detachable::{Detachable, Detacher};
pub use linerate_h2::{RequestBody, serve_http2, speaks_http2};
pub use service::{ResponseFuture, WebSocketService};
pub use upgraded::{StreamUpgrade, UpgradedStream};

/// A request for a WebSocket that follows all rules of the opening handshake.
///
/// The extractor rejects requests that violate a rule, with the appropriate status.
/// [`on_upgrade`](Self::on_upgrade) rejects requests from pages whose origin is not allowed; unless
/// [`with_origin_policy`](Self::with_origin_policy) is called, only pages of this server are
/// allowed.
#[must_use]
pub struct WebSocketUpgrade {
    request: Request,
    transport: PendingTransport,
    settings: Settings,
    subprotocol: Option<String>,
    origin_policy: OriginPolicy,
    scheme: Scheme,
    connections: Option<Connections>,
}

impl WebSocketUpgrade {
    /// Sets the options of the connection.
    pub fn with_options(mut self, options: Options) -> Self {
        self.settings = options.into();
        self
    }

    /// Selects the first of `subprotocols` that the client offers, if any.
    pub fn with_subprotocols(mut self, subprotocols: &[&str]) -> Self {
        self.subprotocol = self
            .request
            .websocket()
            .ok()
            .and_then(|upgrade| upgrade.choose_subprotocol(subprotocols).map(Into::into));
        self
    }

    /// Counts the connection among `connections`, which can close it at shutdown. Default: the
    /// [`Connections`] that are an extension of the request, if any.
    pub fn with_connections(mut self, connections: &Connections) -> Self {
        self.connections = Some(connections.clone());
        self
    }

    /// Sets which web pages may open a WebSocket here. This does not affect requests that do not
    /// come from a browser, because they have no origin.
    pub fn with_origin_policy(mut self, policy: OriginPolicy) -> Self {
        self.origin_policy = policy;
        self
    }

    /// Sets the scheme of the request, which is needed to decide whether a page has the same
    /// origin. Default: [`Scheme::Http`].
    pub fn with_scheme(mut self, scheme: Scheme) -> Self {
        self.scheme = scheme;
        self
    }

    /// Checks whether the page that sent the request may open a WebSocket here, for callers that
    /// need to know before [`on_upgrade`](Self::on_upgrade).
    ///
    /// # Errors
    /// The page's origin is not allowed, or the request has two origins.
    pub fn check_origin(&self) -> std::result::Result<(), HandshakeRejection> {
        let checked = self.origin_policy.check(&self.request, self.scheme);
        checked.map_err(HandshakeRejection)
    }

    /// Returns the request.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// Returns the subprotocols that the client offers, the most preferred one first.
    ///
    /// To use one of them, pass it to [`with_subprotocols`](Self::with_subprotocols).
    pub fn subprotocols(&self) -> Vec<&str> {
        let upgrade = self.request.websocket();
        upgrade.map_or_else(|_| Vec::new(), |upgrade| upgrade.subprotocols().to_vec())
    }

    /// Answers the request and, once the connection is open, runs `handler` in its own task.
    ///
    /// When the handler completes, the connection is closed. The request is refused with 403 if the
    /// page's origin is not allowed, and with 503 if there are too many [`Connections`] or they are
    /// being closed.
    pub fn on_upgrade<F>(self, handler: impl FnOnce(WebSocket) -> F + Send + 'static) -> Response
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        if let Err(rejection) = self.check_origin() {
            return rejection.into_response();
        }
        let Self {
            request,
            transport,
            settings,
            subprotocol,
            connections,
            ..
        } = self;
        let slot = connections.as_ref().map(Connections::take_slot);
        if let Some(None) = slot {
            return (StatusCode::SERVICE_UNAVAILABLE, "too many connections\n").into_response();
        }
        let answered = accepting(&request, subprotocol.as_deref(), &settings);
        let (response, agreed) = match answered {
            Ok(answered) => answered,
            Err(error) => return HandshakeRejection(error).into_response(),
        };
        tokio::spawn(async move {
            let Some((io, leftover)) = transport.into_io().await else {
                return;
            };
            let link = Link::new(io, Role::Server, &settings, &leftover, agreed);
            let alarm = match slot.flatten() {
                Some(slot) => {
                    slot.enter(&link);
                    Alarm::Shared(slot)
                }
                None => Alarm::own(&RuntimeHandle::Tokio),
            };
            let handler = handler(WebSocket::new(link.clone()));
            tokio::spawn(Driver::new(link, handler, alarm));
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
        let transport = PendingTransport::take(parts)
            .ok_or(HandshakeRejection(HandshakeError::ConnectionNotUpgrade))?;
        Ok(Self {
            request,
            transport,
            settings: Settings::default(),
            subprotocol: None,
            origin_policy: OriginPolicy::default(),
            scheme: Scheme::Http,
            connections: parts.extensions.get().cloned(),
        })
    }
}

/// How the request becomes a byte stream.
enum PendingTransport {
    /// Through an HTTP/2 stream of [`serve_http2`].
    Stream(oneshot::Receiver<Stream>),
    /// Through an upgrade by hyper, over HTTP/1.1 or on hyper's own HTTP/2 streams.
    Upgrade(OnUpgrade),
}

impl PendingTransport {
    fn take(parts: &mut Parts) -> Option<Self> {
        match parts.extensions.get::<Connect>() {
            Some(connect) => connect.take().map(Self::Stream),
            None => parts.extensions.remove::<OnUpgrade>().map(Self::Upgrade),
        }
    }

    /// Waits until the response has opened the stream; returns the stream and any bytes that were
    /// already read from it.
    async fn into_io(self) -> Option<(Transport, Vec<u8>)> {
        match self {
            // The sender is dropped without a stream if the client disconnects first, which is not
            // an error.
            Self::Stream(stream) => {
                let stream = stream.await.ok()?;
                Some((Transport::http2(stream, None), Vec::new()))
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

/// Why a request was not upgraded; as a response, it has the appropriate status.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a rejection is the error and nothing else"
)]
pub struct HandshakeRejection(pub HandshakeError);

impl IntoResponse for HandshakeRejection {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status()).unwrap_or(StatusCode::BAD_REQUEST);
        let text = format!("{}\n", self.0);
        if status != StatusCode::UPGRADE_REQUIRED {
            return (status, text).into_response();
        }
        let headers = [
            (header::UPGRADE, "websocket"),
            (header::CONNECTION, "upgrade"),
            (header::SEC_WEBSOCKET_VERSION, "13"),
        ];
        (status, headers, text).into_response()
    }
}

/// Converts the request, which hyper or linerate-h2 has read, to the form that the handshake checks
/// work on.
fn request(parts: &Parts) -> std::result::Result<Request, HandshakeError> {
    let protocol = parts.extensions.get::<Protocol>().map(Protocol::as_str);
    linerate_h2::request(parts, protocol, HandshakeLimits::default())
}

#[cfg_attr(
    not(feature = "deflate"),
    expect(unused_variables, reason = "no setting affects the response")
)]
fn accepting(
    request: &Request,
    subprotocol: Option<&str>,
    settings: &Settings,
) -> std::result::Result<(Response, HandshakeResult), HandshakeError> {
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
    let agreed = HandshakeResult::from(&acceptance);
    let response = linerate_h2::response(&acceptance)?;
    Ok((response.map(|()| Body::empty()), agreed))
}

/// Returns the connection, unwrapped if it is a plain socket, and any bytes that were already read
/// from it.
fn into_io(upgraded: Upgraded) -> (Transport, Vec<u8>) {
    match UpgradedStream(upgraded).downcast::<TcpStream>() {
        Ok((socket, input)) => (Transport::Tcp(socket), input),
        Err(UpgradedStream(upgraded)) => (
            Transport::Other(Box::new(TokioIo::new(upgraded))),
            Vec::new(),
        ),
    }
}
