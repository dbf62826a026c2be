//! One stream, from the client's side.

use std::{
    future::{Future, poll_fn},
    io,
    pin::{Pin, pin},
    task::Poll,
};

use bytes::Bytes;
use h2::{
    Ping,
    client::{Builder, SendRequest},
};
use http::{Method, Request, Uri, Version};
use linerate_http::OpenError;
use linerate_proto::handshake::{ClientHandshake, HandshakeError, Negotiated, Scheme};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::{
    limits::{Http2Limits, SMALL_FRAMES_MAX},
    stream::{Stream, into_io},
};

/// A connection on which a client can open a stream.
#[derive(Debug)]
pub struct Outgoing(SendRequest<Bytes>);

/// Starts HTTP/2 on `io`. Returns `None` if the server does not allow WebSockets on streams.
///
/// RFC 8441 §3: a client "MUST NOT" use extended CONNECT before the server's setting has arrived.
/// The answer to a PING arrives after the settings, whether they contain it or not.
///
/// # Errors
/// Returns an error if the connection is lost or the server violates HTTP/2.
pub async fn connect<T>(io: T, limits: &Http2Limits) -> io::Result<Option<Outgoing>>
where
    T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (send, mut connection) = builder(limits).handshake(io).await.map_err(into_io)?;
    let mut pings = connection.ping_pong();
    let is_allowed = {
        let mut settled = pin!(async {
            match &mut pings {
                Some(pings) => pings.ping(Ping::opaque()).await.map(drop),
                None => Ok(()),
            }
        });
        poll_fn(|cx| {
            if let Poll::Ready(ended) = Pin::new(&mut connection).poll(cx) {
                ended?;
                return Poll::Ready(Ok(false));
            }
            let is_allowed = send.is_extended_connect_protocol_enabled();
            match settled.as_mut().poll(cx) {
                Poll::Pending if !is_allowed => Poll::Pending,
                Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                _ => Poll::Ready(Ok(is_allowed)),
            }
        })
        .await
        .map_err(into_io)?
    };
    if !is_allowed {
        return Ok(None);
    }
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "HTTP/2 connection failed");
        }
    });
    Ok(Some(Outgoing(send)))
}

fn builder(limits: &Http2Limits) -> Builder {
    let mut builder = Builder::new();
    builder
        .enable_push(false)
        .max_header_list_size(limits.header_list_bytes_max)
        .initial_window_size(limits.stream_window_bytes)
        .initial_connection_window_size(limits.connection_window_bytes())
        .max_send_buffer_size(limits.send_buffer_bytes_max)
        .data_frame_budget(SMALL_FRAMES_MAX * 256);
    builder
}

impl Outgoing {
    /// Requests a WebSocket at `path` of `authority`. RFC 8441 §5: the scheme is `https` if the URL
    /// starts with `wss://`, and `http` if it starts with `ws://`.
    ///
    /// # Errors
    /// Returns an error if the server refuses the request or the connection is lost.
    pub async fn open(
        self,
        scheme: Scheme,
        authority: &str,
        path: &str,
        handshake: &mut ClientHandshake,
    ) -> Result<(Negotiated, Stream), OpenError<Stream>> {
        let uri = uri(scheme, authority, path)?;
        let request = request(uri, handshake)?;
        let mut send = self.0.ready().await.map_err(into_io)?;
        let (response, stream) = send.send_request(request, false).map_err(into_io)?;
        let (parts, body) = response.await.map_err(into_io)?.into_parts();
        let headers = parts
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_bytes()));
        let opened = handshake.handle_response(parts.status.as_u16(), headers);
        let stream = Stream::new(stream, body, None);
        match opened {
            Ok(negotiated) => Ok((negotiated, stream)),
            Err(HandshakeError::StatusUnexpected { status }) => {
                Err(OpenError::Refused { status, stream })
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn uri(scheme: Scheme, authority: &str, path: &str) -> io::Result<Uri> {
    let scheme = match scheme {
        Scheme::Http => "http",
        Scheme::Https => "https",
    };
    Uri::builder()
        .scheme(scheme)
        .authority(authority)
        .path_and_query(path)
        .build()
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
}

/// Returns the CONNECT request for a WebSocket (RFC 8441 §5).
fn request(uri: Uri, handshake: &ClientHandshake) -> Result<Request<()>, HandshakeError> {
    let mut request = Request::builder()
        .method(Method::CONNECT)
        .version(Version::HTTP_2)
        .uri(uri)
        .extension(h2::ext::Protocol::from_static("websocket"));
    for (name, value) in handshake.fields() {
        request = request.header(name, &*value);
    }
    request
        .body(())
        .map_err(|_| HandshakeError::HeaderValueInvalid)
}
