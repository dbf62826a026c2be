//! HTTP/2 connections: requests and WebSockets on streams.

use std::{
    convert::Infallible,
    io,
    task::{Context, Poll},
    time::Duration,
};

use axum::{Router, http::Request, response::Response};
use futures_util::future::BoxFuture;
use linerate::{
    Http2Limits,
    axum::{RequestBody, serve_http2},
};
use tokio::io::{AsyncRead, AsyncWrite};
use tower_service::Service;

use super::request::{HEAD_BYTES_MAX, Origin, REQUESTS_TIMEOUT, answer};

/// Maximum time for the client to complete the HTTP/2 connection preface.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves the streams of a connection until it ends.
pub(super) async fn serve<S>(origin: Origin, stream: S, app: Router) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let mut limits = Http2Limits::default();
    limits.header_list_bytes_max = HEAD_BYTES_MAX as u32;
    limits.idle_timeout = REQUESTS_TIMEOUT;
    let guard = origin.guard.clone();
    let goodbye = guard.goodbye();
    let streams = Streams { origin, app };
    serve_http2(stream, streams, &limits, HANDSHAKE_TIMEOUT, goodbye).await
}

/// Answers the requests of a connection.
#[derive(Clone)]
struct Streams {
    origin: Origin,
    app: Router,
}

impl Service<Request<RequestBody>> for Streams {
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let Self { origin, app } = self.clone();
        Box::pin(async move { answer(origin.for_stream(), app, request).await })
    }
}
