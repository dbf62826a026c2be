//! Serves the streams of a connection, ordinary requests and WebSockets alike, with a tower
//! service.

use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    io,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use bytes::Bytes;
use h2::{RecvStream, server::SendResponse};
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body::Body;
use linerate_http::Place;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::oneshot,
};
use tower_service::Service;

use crate::{
    answer::{BoxError, answer},
    body::RequestBody,
    connection::serve_connection,
    incoming::Incoming,
    limits::Http2Limits,
    linger::linger,
    stream::Stream,
};

/// Serves one HTTP/2 connection with a tower service until it ends. Each request runs in its own
/// task.
///
/// The service opens a WebSocket with `linerate::axum::WebSocketUpgrade`, as over
/// HTTP/1.1. The `Host` header contains the requested host, whether the client sent it as
/// `:authority` or as `Host`.
///
/// `handshake_timeout` is how long the client may take to complete the HTTP/2 connection preface.
/// Once `goodbye` is ready, no more requests are accepted, and the connection ends when those in
/// progress have ended.
///
/// # Errors
/// Returns an error if the client violated HTTP/2 or exceeded a limit, or if the connection was
/// lost.
///
/// # Cancel safety
/// Dropping the future closes the connection and ends all its requests and WebSockets.
pub async fn serve_http2<T, S, B>(
    io: T,
    service: S,
    limits: &Http2Limits,
    handshake_timeout: Duration,
    goodbye: impl Future<Output = ()>,
) -> io::Result<()>
where
    T: AsyncRead + AsyncWrite + Unpin,
    S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
    B: Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    let start = |incoming| {
        tokio::spawn(attend(incoming, service.clone()));
    };
    serve_connection(io, limits, handshake_timeout, goodbye, start).await
}

/// Answers one request.
async fn attend<S, B>(incoming: Incoming, mut service: S)
where
    S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible>,
    B: Body<Error: Into<BoxError>>,
{
    let Incoming {
        head,
        body,
        respond,
        place,
        overflows,
    } = incoming;
    let mut request = Request::from_parts(head, ());
    let mut stream = Responder { respond, place };
    if !name_host(&mut request) {
        return stream.refuse();
    }
    if request.extensions().get::<h2::ext::Protocol>().is_some() {
        return connect(stream, request, body, service).await;
    }
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
    let (body, mut unread) = RequestBody::new(body, length);
    let request = request.map(|()| body);
    let Some(response) = stream.ask(&mut service, request).await else {
        return;
    };
    stream.send(response).await;
    if let Ok(unread) = unread.try_recv() {
        let Responder { respond, place } = &mut stream;
        linger(unread, respond, &overflows, place).await;
    }
}

/// Answers a CONNECT request, and passes its stream to the code that accepts it.
async fn connect<S, B>(
    mut stream: Responder,
    mut request: Request<()>,
    body: RecvStream,
    mut service: S,
) where
    S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible>,
    B: Body<Error: Into<BoxError>>,
{
    let (connect, give) = Connect::new();
    request.extensions_mut().insert(connect.clone());
    let request = request.map(|()| RequestBody::empty());
    let Some(response) = stream.ask(&mut service, request).await else {
        return;
    };
    if connect.is_untaken() || !response.status().is_success() {
        return stream.send(response).await;
    }
    let head = response.map(drop);
    match stream.respond.send_response(head, false) {
        // The receiver may already be gone.
        Ok(send) => _ = give.send(Stream::new(send, body, Some(stream.place))),
        Err(_) => stream.note_end(),
    }
}

/// Puts the host where HTTP/1.1 has it (RFC 9113 §8.3.1); returns `false` if the client sent two
/// different hosts.
fn name_host(request: &mut Request<()>) -> bool {
    let Some(authority) = request.uri().authority() else {
        return true;
    };
    if let Some(host) = request.headers().get(header::HOST) {
        return host
            .as_bytes()
            .eq_ignore_ascii_case(authority.as_str().as_bytes());
    }
    match HeaderValue::from_str(authority.as_str()) {
        Ok(host) => {
            request.headers_mut().insert(header::HOST, host);
            true
        }
        Err(_) => false,
    }
}

/// An extension of a CONNECT request. It provides the request's stream once the response has opened
/// it.
#[derive(Clone, Debug)]
pub struct Connect(Arc<Mutex<Option<oneshot::Receiver<Stream>>>>);

impl Connect {
    /// Creates the extension and the sender that passes the stream to it.
    fn new() -> (Self, oneshot::Sender<Stream>) {
        let (give, take) = oneshot::channel();
        (Self(Arc::new(Mutex::new(Some(take)))), give)
    }

    /// Takes the receiver of the stream, or `None` if it was taken before.
    pub fn take(&self) -> Option<oneshot::Receiver<Stream>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns whether the receiver was not taken yet.
    fn is_untaken(&self) -> bool {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some()
    }
}

/// A stream that must be answered.
struct Responder {
    respond: SendResponse<Bytes>,
    place: Place,
}

impl Responder {
    /// Calls the service; returns `None` if the client resets the stream first.
    async fn ask<S, B>(
        &mut self,
        service: &mut S,
        request: Request<RequestBody>,
    ) -> Option<Response<B>>
    where
        S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible>,
    {
        let ready = poll_fn(|cx| service.poll_ready(cx)).await;
        let Ok(()) = ready;
        let mut asked = pin!(service.call(request));
        poll_fn(|cx| {
            if self.respond.poll_reset(cx).is_ready() {
                self.note_end();
                return Poll::Ready(None);
            }
            let Ok(response) = ready!(asked.as_mut().poll(cx));
            Poll::Ready(Some(response))
        })
        .await
    }

    async fn send<B: Body<Error: Into<BoxError>>>(&mut self, response: Response<B>) {
        if let Err(error) = answer(&mut self.respond, response).await {
            tracing::debug!(%error, "failed to send the response");
            self.note_end();
        }
    }

    fn refuse(mut self) {
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::BAD_REQUEST;
        if self.respond.send_response(response, true).is_err() {
            self.note_end();
        }
    }

    /// Counts the stream if the client has reset it.
    fn note_end(&mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        if let Poll::Ready(Ok(_)) = self.respond.poll_reset(&mut cx) {
            self.place.note_reset();
        }
    }
}
