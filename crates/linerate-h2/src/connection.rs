//! The streams of one connection, from the server's side.

use std::{
    future::Future,
    io,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use h2::{
    Reason, RecvStream,
    server::{Builder, Connection, SendResponse},
};
use linerate_http::Places;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::{Instant, Sleep, sleep, timeout},
};

use crate::{
    guard::{Findings, Guard},
    incoming::Incoming,
    limits::{Http2Limits, SMALL_FRAMES_MAX},
    request::join_cookies,
    stream::into_io,
};

/// How long a connection may take to send its last frames.
const LINGER: Duration = Duration::from_secs(1);

/// Maximum number of streams that the client has reset before they were accepted and that h2 still
/// queues.
const PENDING_RESETS_MAX: usize = 100;

/// Maximum number of streams that we reset because of the client's errors, over the lifetime of the
/// connection.
const ERROR_RESETS_MAX: usize = 1_000;

/// Serves the streams of one connection until it ends. `start` is called for each request and must
/// not block.
///
/// Once `goodbye` is ready, no more streams are accepted, and the connection ends when the open
/// ones have ended.
///
/// # Errors
/// Returns an error if the client violated HTTP/2 or exceeded a limit, or if the connection was
/// lost.
pub async fn serve_connection<T>(
    io: T,
    limits: &Http2Limits,
    handshake_timeout: Duration,
    goodbye: impl Future<Output = ()>,
    start: impl FnMut(Incoming),
) -> io::Result<()>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let (io, findings) = Guard::new(io);
    let handshake = builder(limits).handshake(io);
    let h2 = timeout(handshake_timeout, handshake)
        .await
        .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
        .map_err(into_io)?;
    let connection = ServedConnection {
        h2,
        findings,
        places: Places::new(limits.resets_max, limits.resets_per_second),
        idle_timeout: limits.idle_timeout,
        phase: Phase::Open,
    };
    connection.run(goodbye, start).await
}

fn builder(limits: &Http2Limits) -> Builder {
    let mut builder = Builder::new();
    builder
        .enable_connect_protocol()
        .max_concurrent_streams(limits.streams_max)
        .max_header_list_size(limits.header_list_bytes_max)
        .initial_window_size(limits.stream_window_bytes)
        .initial_connection_window_size(limits.connection_window_bytes())
        .max_send_buffer_size(limits.send_buffer_bytes_max)
        .data_frame_budget(SMALL_FRAMES_MAX * 256)
        .max_pending_accept_reset_streams(PENDING_RESETS_MAX)
        .max_local_error_reset_streams(Some(ERROR_RESETS_MAX));
    builder
}

/// Returns whether a field value begins or ends with whitespace.
///
/// RFC 9113 §8.2.1: "A field value MUST NOT start or end with an ASCII whitespace character".
fn has_space_around(value: &http::HeaderValue) -> bool {
    let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let value = value.as_bytes();
    is_space(value.first()) || is_space(value.last())
}

/// How far the shutdown of a connection has progressed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    Open,
    /// The client was told that no more streams are accepted.
    Leaving,
    /// The client was told which error ends the connection.
    Ended,
}

struct ServedConnection<T> {
    h2: Connection<Guard<T>, Bytes>,
    findings: Findings,
    places: Arc<Places>,
    idle_timeout: Duration,
    phase: Phase,
}

impl<T: AsyncRead + AsyncWrite + Unpin> ServedConnection<T> {
    async fn run(
        mut self,
        goodbye: impl Future<Output = ()>,
        mut start: impl FnMut(Incoming),
    ) -> io::Result<()> {
        let places = self.places.clone();
        let mut goodbye = pin!(goodbye);
        let mut deadline = pin!(sleep(self.idle_timeout));
        loop {
            tokio::select! {
                biased;
                () = places.changed() => self.note_change(deadline.as_mut()),
                Ok(()) = &mut self.findings.fault, if self.phase != Phase::Ended => {
                    tracing::debug!("closing the HTTP/2 connection: the client sent no settings");
                    self.end(Reason::PROTOCOL_ERROR, deadline.as_mut());
                }
                () = &mut goodbye, if self.phase == Phase::Open => self.leave(deadline.as_mut()),
                () = &mut deadline, if self.has_deadline() => match self.phase {
                    Phase::Open => self.leave(deadline.as_mut()),
                    Phase::Leaving => return Ok(()),
                    Phase::Ended => return Err(io::ErrorKind::TimedOut.into()),
                },
                accepted = self.h2.accept() => match accepted {
                    Some(Ok((request, respond))) => {
                        if let Some(incoming) = self.incoming(request, respond) {
                            start(incoming);
                        }
                    }
                    Some(Err(error)) => return Err(into_io(error)),
                    None => return Ok(()),
                },
            }
        }
    }

    /// Returns a request, unless it is malformed in a way that h2 overlooks. Such a request counts
    /// as a stream that the client has reset.
    fn incoming(
        &self,
        request: http::Request<RecvStream>,
        mut respond: SendResponse<Bytes>,
    ) -> Option<Incoming> {
        let (mut head, body) = request.into_parts();
        let mut place = self.places.take();
        if head.headers.values().any(has_space_around) {
            respond.send_reset(Reason::PROTOCOL_ERROR);
            place.note_reset();
            return None;
        }
        join_cookies(&mut head.headers);
        Some(Incoming {
            head,
            body,
            respond,
            place,
            overflows: self.findings.overflows.clone(),
        })
    }

    /// Reacts to what the streams have reported.
    fn note_change(&mut self, deadline: Pin<&mut Sleep>) {
        let now = Instant::now();
        if self.places.is_calm_wanted() && self.phase != Phase::Ended {
            tracing::debug!("closing the HTTP/2 connection: the client reset too many streams");
            self.end(Reason::ENHANCE_YOUR_CALM, deadline);
        } else if self.phase == Phase::Open {
            deadline.reset(now + self.idle_timeout);
        } else if self.phase == Phase::Leaving {
            deadline.reset(now + LINGER);
        }
    }

    /// Sends the error to the client and ends the connection.
    fn end(&mut self, reason: Reason, deadline: Pin<&mut Sleep>) {
        self.phase = Phase::Ended;
        self.h2.abrupt_shutdown(reason);
        deadline.reset(Instant::now() + LINGER);
    }

    /// Tells the client to open no more streams.
    fn leave(&mut self, deadline: Pin<&mut Sleep>) {
        self.phase = Phase::Leaving;
        self.h2.graceful_shutdown();
        deadline.reset(Instant::now() + LINGER);
    }

    /// Returns whether the deadline applies. A connection lasts as long as its streams, unless it
    /// is being ended because of an error.
    fn has_deadline(&self) -> bool {
        self.phase == Phase::Ended || self.places.is_idle()
    }
}
