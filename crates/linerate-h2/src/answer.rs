//! Responses to requests that do not open a WebSocket, limited by the client's window.

use std::{
    future::{Future, poll_fn},
    io,
    pin::{Pin, pin},
    task::{Poll, ready},
    time::{Duration, SystemTime},
};

use bytes::{Buf, Bytes};
use h2::{Reason, SendStream, server::SendResponse};
use http::{HeaderMap, HeaderValue, Response, header};
use http_body::Body;
use tokio::time::timeout;

use crate::stream::into_io;

/// How long a client may keep its window closed while a response is waiting.
const WINDOW_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum payload of a DATA frame in bytes.
const DATA_BYTES_MAX: usize = 64 << 10;

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Sends a response.
///
/// # Errors
/// Returns an error if the client has reset the stream or takes too long, or if the body fails.
pub(crate) async fn answer<B: Body<Error: Into<BoxError>>>(
    respond: &mut SendResponse<Bytes>,
    response: Response<B>,
) -> io::Result<()> {
    let (parts, body) = response.into_parts();
    let mut head = Response::from_parts(parts, ());
    finish_head(head.headers_mut(), body.size_hint().exact());
    let is_empty = body.is_end_stream();
    let mut stream = respond.send_response(head, is_empty).map_err(into_io)?;
    if is_empty {
        return Ok(());
    }
    let sent = send_body(&mut stream, body).await;
    if sent.is_err() {
        stream.send_reset(Reason::INTERNAL_ERROR);
    }
    sent
}

/// Adds the header fields that every response has, and removes those that HTTP/2 forbids (RFC 9113
/// §8.2.2).
fn finish_head(headers: &mut HeaderMap, length: Option<u64>) {
    for name in [
        header::CONNECTION,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
        header::HeaderName::from_static("keep-alive"),
        header::HeaderName::from_static("proxy-connection"),
    ] {
        headers.remove(name);
    }
    if let Some(length) = length.filter(|length| *length > 0) {
        headers
            .entry(header::CONTENT_LENGTH)
            .or_insert_with(|| HeaderValue::from(length));
    }
    if !headers.contains_key(header::DATE) {
        let date = httpdate::fmt_http_date(SystemTime::now());
        if let Ok(date) = HeaderValue::try_from(date) {
            headers.insert(header::DATE, date);
        }
    }
}

async fn send_body<B: Body<Error: Into<BoxError>>>(
    stream: &mut SendStream<Bytes>,
    body: B,
) -> io::Result<()> {
    let mut body = pin!(body);
    while let Some(frame) = next_frame(stream, body.as_mut()).await? {
        match frame.into_data() {
            Ok(data) => send_data(stream, data).await?,
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    return stream.send_trailers(trailers).map_err(into_io);
                }
            }
        }
    }
    stream.send_data(Bytes::new(), true).map_err(into_io)
}

/// Waits for the next frame of the body, unless the client resets the stream first.
async fn next_frame<B: Body<Error: Into<BoxError>>>(
    stream: &mut SendStream<Bytes>,
    mut body: Pin<&mut B>,
) -> io::Result<Option<http_body::Frame<B::Data>>> {
    poll_fn(|cx| {
        if let Poll::Ready(reset) = stream.poll_reset(cx) {
            return Poll::Ready(Err(reset.map_or_else(into_io, |why| into_io(why.into()))));
        }
        let frame = ready!(body.as_mut().poll_frame(cx));
        Poll::Ready(frame.transpose().map_err(io::Error::other))
    })
    .await
}

async fn send_data(stream: &mut SendStream<Bytes>, mut data: impl Buf) -> io::Result<()> {
    while data.has_remaining() {
        let wanted = data.remaining().min(DATA_BYTES_MAX);
        let room = timeout(WINDOW_TIMEOUT, room(stream, wanted))
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        let part = data.copy_to_bytes(room.min(wanted));
        stream.send_data(part, false).map_err(into_io)?;
    }
    Ok(())
}

/// Waits until the client's window has room; returns the number of bytes that fit.
fn room(
    stream: &mut SendStream<Bytes>,
    wanted: usize,
) -> impl Future<Output = io::Result<usize>> + '_ {
    stream.reserve_capacity(wanted);
    poll_fn(move |cx| {
        loop {
            if stream.capacity() > 0 {
                return Poll::Ready(Ok(stream.capacity()));
            }
            match ready!(stream.poll_capacity(cx)) {
                Some(Ok(_)) => {}
                Some(Err(error)) => return Poll::Ready(Err(into_io(error))),
                None => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            }
        }
    })
}
