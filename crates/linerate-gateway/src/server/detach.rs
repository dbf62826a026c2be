//! Connections over HTTP/1.1 that leave the HTTP server while a response is streamed.

use std::{
    fmt,
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
    time::SystemTime,
};

use axum::{body::Body, http::header, response::Response};
use linerate::axum::{Detachable, Detacher as StreamDetacher};
use linerate_reactor::TlsConnection;
use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};

use super::tls::TlsStream;

/// Takes the stream of a connection away from the HTTP server; an extension of its requests.
#[derive(Clone)]
pub(crate) struct Detacher(Arc<dyn Detach>);

/// A connection that has left the HTTP server.
#[derive(Debug)]
pub(crate) struct Detached {
    pub(crate) socket: TcpStream,
    pub(crate) tls: Option<TlsConnection>,
    /// The head of the response, which has not been sent. The body is sent in chunks, and ends with
    /// the connection.
    pub(crate) head: Vec<u8>,
}

/// What continues a connection; an extension of the response.
#[derive(Clone)]
struct Continuation(Arc<Mutex<Option<Continue>>>);

type Continue = Box<dyn FnOnce(Detached) + Send>;

trait Detach: Send + Sync {
    /// Takes the stream away once everything before it was written; returns `None` if it already
    /// was.
    fn poll_detach(&self, cx: &mut Context<'_>)
    -> Poll<Option<(TcpStream, Option<TlsConnection>)>>;
}

/// A stream that consists of a socket and, perhaps, TLS.
pub(super) trait OfSocket: AsyncRead + AsyncWrite + Send + Unpin + 'static {
    fn into_parts(self) -> (TcpStream, Option<TlsConnection>);
}

impl OfSocket for TcpStream {
    fn into_parts(self) -> (TcpStream, Option<TlsConnection>) {
        (self, None)
    }
}

impl OfSocket for TlsStream {
    fn into_parts(self) -> (TcpStream, Option<TlsConnection>) {
        let (socket, tls) = Self::into_parts(self);
        (socket, Some(tls))
    }
}

/// Lets `take` continue the connection after `response`, which has no body. This has an effect only
/// for requests with a [`Detacher`].
pub(crate) fn continue_with(response: &mut Response, take: impl FnOnce(Detached) + Send + 'static) {
    let take: Continue = Box::new(take);
    let continuation = Continuation(Arc::new(Mutex::new(Some(take))));
    response.extensions_mut().insert(continuation);
}

impl Detacher {
    /// Returns what takes this stream away.
    pub(super) fn of(stream: &Detachable<impl OfSocket>) -> Self {
        Self(Arc::new(stream.detacher()))
    }

    /// Takes the connection away from the HTTP server if the response has asked for it, after all
    /// earlier responses. Returns the response with which the server ends.
    pub(super) async fn apply(&self, mut response: Response) -> Response {
        let continuation = response.extensions_mut().remove::<Continuation>();
        let Some(take) = continuation.and_then(|Continuation(take)| take.lock().take()) else {
            return response;
        };
        if let Some((socket, tls)) = poll_fn(|cx| self.0.poll_detach(cx)).await {
            // Of the empty body, which is not the one that follows.
            response.headers_mut().remove(header::CONTENT_LENGTH);
            let head = head(&response);
            take(Detached { socket, tls, head });
        }
        Response::new(Body::empty())
    }
}

/// Returns the head of a response whose body is sent in chunks.
fn head(response: &Response) -> Vec<u8> {
    let status = response.status();
    let reason = status.canonical_reason().unwrap_or_default();
    let mut head = format!("HTTP/1.1 {} {reason}\r\n", status.as_str()).into_bytes();
    for (name, value) in response.headers() {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    let date = httpdate::fmt_http_date(SystemTime::now());
    // §9.6 of RFC 9112: the connection does not persist after the response.
    let framing = "transfer-encoding: chunked\r\nconnection: close\r\n";
    head.extend_from_slice(format!("{framing}date: {date}\r\n\r\n").as_bytes());
    head
}

impl<S: OfSocket> Detach for StreamDetacher<S> {
    fn poll_detach(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<(TcpStream, Option<TlsConnection>)>> {
        self.poll_detach(cx).map(|stream| stream.map(S::into_parts))
    }
}

impl fmt::Debug for Detacher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Detacher").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
        sync::oneshot,
    };

    use super::*;

    #[tokio::test]
    async fn a_stream_is_taken_away_after_all_earlier_output() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut client = TcpStream::connect(address).await.unwrap();
        let mut stream = Detachable::new(listener.accept().await.unwrap().0);
        let detacher = Detacher::of(&stream);
        stream.write_all(b"earlier ").await.unwrap();
        let mut response = Response::new(Body::empty());
        let headers = response.headers_mut();
        headers.insert("x-first", "1".parse().unwrap());
        headers.insert(header::CONTENT_LENGTH, 0.into());
        let (sender, receiver) = oneshot::channel();
        continue_with(&mut response, |detached| sender.send(detached).unwrap());
        let mut applied = std::pin::pin!(detacher.apply(response));
        assert!(applied.as_mut().now_or_never().is_none());
        stream.flush().await.unwrap();
        assert!(applied.await.headers().is_empty());
        // The HTTP server ends, and nothing that it writes arrives.
        stream.write_all(b"late").await.unwrap();
        stream.flush().await.unwrap();
        assert_eq!(stream.read(&mut [0; 9]).await.unwrap(), 0);
        stream.shutdown().await.unwrap();
        assert!(stream.into_inner().is_none());
        let mut detached = receiver.await.unwrap();
        let head = std::str::from_utf8(&detached.head).unwrap();
        let start = "HTTP/1.1 200 OK\r\nx-first: 1\r\ntransfer-encoding: chunked\r\n\
                     connection: close\r\ndate: ";
        assert!(head.starts_with(start), "{head}");
        assert!(head.ends_with(" GMT\r\n\r\n"), "{head}");
        detached.socket.write_all(b"now").await.unwrap();
        drop(detached);
        let mut received = Vec::new();
        client.read_to_end(&mut received).await.unwrap();
        assert_eq!(received, b"earlier now");
    }

    #[tokio::test]
    async fn other_responses_are_left_to_the_http_server() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stream = Detachable::new(TcpStream::connect(address).await.unwrap());
        let mut response = Response::new(Body::empty());
        response
            .headers_mut()
            .insert("x-first", "1".parse().unwrap());
        let response = Detacher::of(&stream).apply(response).await;
        assert!(response.headers().contains_key("x-first"));
        assert!(stream.into_inner().is_some());
    }
}
