//! Forwarding frames between two connections without inspecting their payloads.

mod direction;
mod error;

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll, ready},
    time::Duration,
};

use linerate_proto::CloseCode;
pub use linerate_proto::relay::Pings;
use tokio::{
    io::AsyncWriteExt,
    time::{Instant, Sleep, sleep, timeout},
};

use crate::{
    link::Side,
    parts::{Parts, RawStream},
};
use direction::{Direction, append_close};
pub use error::{RelayEnd, RelayError};

/// Forwards frames between two connections, in both directions, until both are closed.
///
/// Payloads are neither validated nor reassembled. From a client to a server, they are remasked in
/// place, in one pass; in the other direction they are not touched. If a receiver is slower than
/// its sender, the relay holds one read buffer for that direction, and TCP slows the sender down.
/// An idle relay holds no buffer.
///
/// Both connections must use the same subprotocol, and either no extension (see
/// [`Options::without_compression`](crate::Options::without_compression)) or, with [`Parts::new`],
/// the same one.
///
/// ```no_run
/// use linerate::{Client, Options, Request, Result, WebSocket, relay::Relay};
///
/// /// A handler that forwards its clients to another server.
/// async fn pass_on(ws: WebSocket, request: Request) -> Result<()> {
///     let url = format!("ws://127.0.0.1:9001{}", request.path());
///     // The server that calls this handler has the same options.
///     let options = Options::default().without_compression();
///     let upstream = Client::new().with_options(options).connect(&url).await?;
///     let (Ok(client), Ok(upstream)) = (ws.into_parts(), upstream.into_parts()) else {
///         return Ok(()); // One of them is already closed.
///     };
///     match Relay::new().run(client, upstream).await {
///         Ok(summary) => println!("{summary:?}"),
///         Err(error) => eprintln!("{error}"),
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Relay {
    pings: Pings,
    idle_timeout: Duration,
    close_timeout: Duration,
}

/// What a relay has forwarded in each direction.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct RelaySummary {
    /// What came from the first connection.
    pub from_first: Transfer,
    /// What came from the second connection.
    pub from_second: Transfer,
}

/// What a relay has forwarded in one direction.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Transfer {
    /// The number of bytes written, including frame headers.
    pub bytes: u64,
    /// True if a Close frame was forwarded; otherwise the stream ended without one.
    pub closed: bool,
    /// The close code in that frame.
    pub code: Option<u16>,
}

impl Relay {
    /// Creates a relay that forwards Pings and Pongs like any other frame.
    pub fn new() -> Self {
        Self {
            pings: Pings::Forward,
            idle_timeout: Duration::from_secs(300),
            close_timeout: Duration::from_secs(10),
        }
    }

    /// Sets which side answers Pings. By default, the relay forwards them.
    pub fn with_pings(mut self, pings: Pings) -> Self {
        self.pings = pings;
        self
    }

    /// Sets how long both sides may be silent before the relay ends. Default: 5 minutes, within
    /// which an endpoint that wants to keep its connection sends a Ping.
    pub fn with_idle_timeout(mut self, idle_timeout: Duration) -> Self {
        self.idle_timeout = idle_timeout;
        self
    }

    /// Sets how long one direction may continue after the other has ended. Default: 10 s.
    pub fn with_close_timeout(mut self, close_timeout: Duration) -> Self {
        self.close_timeout = close_timeout;
        self
    }

    /// Forwards frames until both directions have ended, each with a Close frame or with the end of
    /// its stream.
    ///
    /// Dropping the future ends both connections without a closing handshake.
    ///
    /// # Errors
    /// A stream failed, a peer sent an invalid frame, or one of the timeouts expired.
    pub async fn run(self, first: Parts, second: Parts) -> Result<RelaySummary, RelayError> {
        let mut active = ActiveRelay::new(self, first, second);
        let mut timer = pin!(sleep(self.idle_timeout));
        let result = poll_fn(|cx| active.poll(cx, timer.as_mut())).await;
        if let Err(RelayError::Protocol { end, .. }) = result {
            active.close_both(end).await;
        }
        if !matches!(result, Err(RelayError::Io { .. } | RelayError::Idle { .. })) {
            active.shut_down().await;
        }
        result.map(|()| active.summary())
    }
}

impl Default for Relay {
    fn default() -> Self {
        Self::new()
    }
}

/// A running relay.
struct ActiveRelay {
    relay: Relay,
    first: RawStream,
    second: RawStream,
    from_first: Direction,
    from_second: Direction,
    /// When something was last read.
    last_read: Instant,
    bytes_read: u64,
    /// When the first direction ended.
    ended: Option<Instant>,
}

impl ActiveRelay {
    fn new(relay: Relay, first: Parts, second: Parts) -> Self {
        let (to_first, to_second) = (Side(first.role), Side(second.role));
        Self {
            relay,
            from_first: Direction::new(
                to_first,
                to_second,
                relay.pings,
                first.unread,
                second.unsent,
            ),
            from_second: Direction::new(
                to_second,
                to_first,
                relay.pings,
                second.unread,
                first.unsent,
            ),
            first: first.stream,
            second: second.stream,
            last_read: Instant::now(),
            bytes_read: 0,
            ended: None,
        }
    }

    /// Forwards what can be forwarded now.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        timer: Pin<&mut Sleep>,
    ) -> Poll<Result<(), RelayError>> {
        loop {
            let first =
                self.from_first
                    .poll(cx, &mut self.first, &mut self.second, RelayEnd::First)?;
            let second =
                self.from_second
                    .poll(cx, &mut self.second, &mut self.first, RelayEnd::Second)?;
            // The answer to a Ping goes in the opposite direction, which may have been polled
            // already.
            let answers = self.from_first.take_answers();
            let mut has_answers = !answers.is_empty();
            self.from_second.insert(&answers);
            let answers = self.from_second.take_answers();
            has_answers |= !answers.is_empty();
            self.from_first.insert(&answers);
            match (first, second) {
                (Poll::Ready(()), Poll::Ready(())) => return Poll::Ready(Ok(())),
                (Poll::Pending, Poll::Pending) => {}
                _ => _ = self.ended.get_or_insert_with(Instant::now),
            }
            if !has_answers {
                return self.poll_timer(cx, timer);
            }
        }
    }

    /// Returns an error once a timeout has expired.
    fn poll_timer(
        &mut self,
        cx: &mut Context<'_>,
        mut timer: Pin<&mut Sleep>,
    ) -> Poll<Result<(), RelayError>> {
        let bytes_read = self.from_first.bytes_read() + self.from_second.bytes_read();
        if bytes_read != self.bytes_read {
            self.bytes_read = bytes_read;
            self.last_read = Instant::now();
        }
        loop {
            let (due, error) = self.due();
            if timer.deadline() > due {
                timer.as_mut().reset(due);
            }
            ready!(timer.as_mut().poll(cx));
            // The timer is not reset on each read, so it may fire too early.
            if Instant::now() >= due {
                return Poll::Ready(Err(error));
            }
            timer.as_mut().reset(due);
        }
    }

    /// Returns the next deadline and the error for missing it.
    fn due(&self) -> (Instant, RelayError) {
        let limit = self.relay.idle_timeout;
        let idle = self.last_read + limit;
        let close = self.ended.map(|ended| ended + self.relay.close_timeout);
        match close.filter(|close| *close < idle) {
            Some(close) => {
                let limit = self.relay.close_timeout;
                (close, RelayError::CloseTimeout { limit })
            }
            None => (idle, RelayError::Idle { limit }),
        }
    }

    /// Sends a Close frame to each side that can still receive one, because of an error at `end`.
    async fn close_both(&mut self, end: RelayEnd) {
        let (to_first, to_second) = match end {
            RelayEnd::First => (CloseCode::PROTOCOL_ERROR, CloseCode::GOING_AWAY),
            RelayEnd::Second => (CloseCode::GOING_AWAY, CloseCode::PROTOCOL_ERROR),
        };
        for (direction, sink, code) in [
            (&mut self.from_second, &mut self.first, to_first),
            (&mut self.from_first, &mut self.second, to_second),
        ] {
            if direction.is_between_frames() {
                let mut frame = Vec::new();
                append_close(direction.sink(), code, &mut frame);
                // If the peer does not read the frame, there is nothing more to do.
                _ = timeout(self.relay.close_timeout, sink.write_all(&frame)).await;
            }
        }
    }

    async fn shut_down(&mut self) {
        for stream in [&mut self.first, &mut self.second] {
            // Everything important has been written; the peer may have closed the stream first.
            _ = timeout(self.relay.close_timeout, stream.shutdown()).await;
        }
    }

    fn summary(&self) -> RelaySummary {
        RelaySummary {
            from_first: self.from_first.transfer(),
            from_second: self.from_second.transfer(),
        }
    }
}
