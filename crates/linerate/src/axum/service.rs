//! A tower service that upgrades requests to WebSockets, for hyper and other servers that run tower
//! services.

use std::{
    convert::Infallible,
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum::{
    body::Body,
    extract::FromRequestParts,
    http::Request as HttpRequest,
    response::{IntoResponse, Response},
};
use linerate_proto::handshake::{OriginPolicy, Request};
use tower_service::Service;

use super::{Connections, WebSocketUpgrade};
use crate::{Options, Result, WebSocket};

/// A tower service that answers each request by opening a WebSocket, or refuses it with the
/// appropriate status.
///
/// The server must support upgrades: with hyper, use `serve_connection(…).with_upgrades()`; axum's
/// servers support them, and take the service with `Router::route_service`. The body of the request
/// is ignored.
///
/// ```
/// use axum::Router;
/// use linerate::{Request, Result, WebSocket, axum::WebSocketService};
///
/// async fn echo(mut ws: WebSocket, _request: Request) -> Result<()> {
///     while let Some(message) = ws.recv().await? {
///         ws.send(message).await?;
///     }
///     Ok(())
/// }
///
/// let service = WebSocketService::new(echo).with_subprotocol("echo.v1");
/// let app: Router = Router::new().route_service("/echo", service);
/// ```
pub struct WebSocketService<H> {
    handler: Arc<H>,
    options: Options,
    subprotocols: Vec<String>,
    origin_policy: OriginPolicy,
    connections: Option<Connections>,
}

impl<H, F> WebSocketService<H>
where
    H: Fn(WebSocket, Request) -> F + Send + Sync + 'static,
    F: Future<Output = Result<()>> + Send + 'static,
{
    /// Creates a service that runs `handler` for each WebSocket, like [`serve`](crate::serve).
    pub fn new(handler: H) -> Self {
        Self {
            handler: Arc::new(handler),
            options: Options::default(),
            subprotocols: Vec::new(),
            origin_policy: OriginPolicy::default(),
            connections: None,
        }
    }
}

impl<H> WebSocketService<H> {
    /// Sets the options of each connection.
    pub fn with_options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Supports a subprotocol. If the client offers several supported ones, the one that was added
    /// first is selected.
    pub fn with_subprotocol(mut self, subprotocol: impl Into<String>) -> Self {
        self.subprotocols.push(subprotocol.into());
        self
    }

    /// Counts the connections among `connections`, which can close them at shutdown.
    pub fn with_connections(mut self, connections: &Connections) -> Self {
        self.connections = Some(connections.clone());
        self
    }

    /// Sets which web pages may open a WebSocket here. Default: only those of this server.
    pub fn with_origin_policy(mut self, policy: OriginPolicy) -> Self {
        self.origin_policy = policy;
        self
    }
}

impl<H, F, B> Service<HttpRequest<B>> for WebSocketService<H>
where
    H: Fn(WebSocket, Request) -> F + Send + Sync + 'static,
    F: Future<Output = Result<()>> + Send + 'static,
    B: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: HttpRequest<B>) -> ResponseFuture {
        let service = self.clone();
        let (mut parts, _) = request.into_parts();
        ResponseFuture(Box::pin(async move {
            Ok(
                match WebSocketUpgrade::from_request_parts(&mut parts, &()).await {
                    Ok(upgrade) => service.answer(upgrade),
                    Err(rejection) => rejection.into_response(),
                },
            )
        }))
    }
}

impl<H, F> WebSocketService<H>
where
    H: Fn(WebSocket, Request) -> F + Send + Sync + 'static,
    F: Future<Output = Result<()>> + Send + 'static,
{
    fn answer(self, mut upgrade: WebSocketUpgrade) -> Response<Body> {
        if let Some(connections) = &self.connections {
            upgrade = upgrade.with_connections(connections);
        }
        let known: Vec<&str> = self.subprotocols.iter().map(String::as_str).collect();
        let request = upgrade.request().clone();
        let handler = self.handler;
        upgrade
            .with_options(self.options)
            .with_subprotocols(&known)
            .with_origin_policy(self.origin_policy)
            .on_upgrade(move |ws| handler(ws, request))
    }
}

impl<H> Clone for WebSocketService<H> {
    fn clone(&self) -> Self {
        Self {
            handler: self.handler.clone(),
            options: self.options.clone(),
            subprotocols: self.subprotocols.clone(),
            origin_policy: self.origin_policy.clone(),
            connections: self.connections.clone(),
        }
    }
}

impl<H> fmt::Debug for WebSocketService<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSocketService")
            .field("options", &self.options)
            .field("subprotocols", &self.subprotocols)
            .finish_non_exhaustive()
    }
}

/// The future of a response from a [`WebSocketService`].
pub struct ResponseFuture(Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>);

impl Future for ResponseFuture {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

impl fmt::Debug for ResponseFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
