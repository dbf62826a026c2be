//! Deadlines: the keepalive Ping, its answer, and the closing handshake.

use core::{error::Error, fmt, time::Duration};

use super::{Direction, Engine, Time, time};
use crate::{error::ProtocolError, role::Endpoint};

/// A deadline passed; see [`Engine::handle_timeout`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Timeout {
    /// The closing handshake took too long; drop the connection now.
    Close {
        /// How long the closing handshake was allowed to take.
        budget: Duration,
    },
    /// Nothing arrived after a keepalive Ping; the engine has failed the connection.
    Keepalive(ProtocolError),
}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Close { budget } => write!(f, "closing handshake took longer than {budget:?}"),
            Self::Keepalive(error) => error.fmt(f),
        }
    }
}

impl Error for Timeout {}

/// How many bytes of an arriving frame count as a sign of life.
const SIGN_BYTES: usize = 1_000;

/// Tracks whether the peer is alive.
///
/// A peer that is sending a large frame cannot answer a Ping before the end of the frame, so any
/// input counts as a sign of life. Inside a frame, it takes [`SIGN_BYTES`] bytes; otherwise a peer
/// could hold a connection open forever by sending a byte now and then.
#[derive(Debug)]
pub(super) struct Keepalive {
    last_input: Time,
    /// When the newest keepalive Ping was queued, which is also its payload; 0 before the first
    /// Ping and after each answer. Once our Close frame is queued: when that happened.
    sent: Time,
    ping_due: bool,
    /// How much of the current frame has arrived since the last sign of life, in units of 4 bytes.
    trickled: u8,
    /// The time from the last sign of life to the last input, in units of 2²² ns (4 ms). A [`Time`]
    /// would make the struct larger.
    unsigned: u16,
    /// The last round-trip time in microseconds; [`UNKNOWN`](Self::UNKNOWN) before the first.
    latency: u32,
}

impl Keepalive {
    const UNKNOWN: u32 = u32::MAX;
    const UNIT_BITS: u32 = 22;

    pub(super) const fn new(now: Time) -> Self {
        Self {
            last_input: now,
            sent: 0,
            ping_due: false,
            trickled: 0,
            unsigned: 0,
            latency: Self::UNKNOWN,
        }
    }

    /// Records an input of `bytes` bytes; `in_frame` is true if it continues a frame.
    #[inline]
    pub(super) fn handle_input(&mut self, bytes: usize, in_frame: bool, now: Time) {
        let before = self.last_input;
        self.last_input = before.max(now);
        if !in_frame || bytes >= SIGN_BYTES || self.is_enough(bytes, before) {
            self.trickled = 0;
            self.unsigned = 0;
        }
    }

    /// Adds an input of a few bytes, given the time of the previous input; returns whether the
    /// bytes now add up to a sign of life.
    fn is_enough(&mut self, bytes: usize, before: Time) -> bool {
        self.trickled = self.trickled.saturating_add(bytes.div_ceil(4) as u8);
        let units = (self.last_input >> Self::UNIT_BITS) - (before >> Self::UNIT_BITS);
        let units = u16::try_from(units).unwrap_or(u16::MAX);
        self.unsigned = self.unsigned.saturating_add(units);
        usize::from(self.trickled) >= SIGN_BYTES / 4
    }

    /// Returns the time of the last sign of life.
    const fn last_sign(&self) -> Time {
        let ago = (self.unsigned as Time) << Self::UNIT_BITS;
        self.last_input.saturating_sub(ago)
    }

    pub(super) fn handle_pong(&mut self, payload: &[u8]) {
        self.unsigned = 0;
        if self.sent != 0 && payload == self.sent.to_be_bytes() {
            let micros = self.last_input.saturating_sub(self.sent) / 1_000;
            self.latency = u32::try_from(micros).unwrap_or(Self::UNKNOWN);
            // Ignore a second Pong with this payload.
            self.sent = 0;
        }
    }

    pub(super) const fn last_input(&self) -> Time {
        self.last_input
    }

    pub(super) fn latency(&self) -> Option<Duration> {
        (self.latency != Self::UNKNOWN).then(|| Duration::from_micros(self.latency.into()))
    }

    /// Returns the payload of a keepalive Ping if one is to be sent now.
    pub(super) fn take_ping(&mut self) -> Option<[u8; 8]> {
        core::mem::take(&mut self.ping_due).then(|| self.sent.to_be_bytes())
    }

    /// Records that our Close frame is queued; no more Pings are sent.
    pub(super) const fn handle_close(&mut self, now: Time) {
        self.ping_due = false;
        self.sent = now;
    }

    /// Cancels a Ping that has not been sent yet.
    pub(super) const fn cancel_ping(&mut self) {
        self.ping_due = false;
    }

    pub(super) const fn is_ping_due(&self) -> bool {
        self.ping_due
    }

    const fn is_waiting(&self) -> bool {
        self.sent > self.last_sign()
    }
}

impl<E: Endpoint> Engine<E> {
    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next, `None` if not at all.
    ///
    /// Input can only move this deadline to a later time. A caller may therefore keep its timer and
    /// call this again when the timer fires too early.
    pub fn poll_timeout(&self) -> Option<Duration> {
        let at = if self.output != Direction::Open {
            let budget = time(self.config.close_timeout);
            self.keepalive.sent.saturating_add(budget)
        } else if self.keepalive.is_waiting() {
            self.keepalive
                .sent
                .saturating_add(time(self.config.ping_timeout))
        } else {
            // An interval of zero would send a Ping for each Pong, forever.
            let interval = self.config.ping_interval.filter(|it| !it.is_zero())?;
            self.keepalive.last_sign().saturating_add(time(interval))
        };
        Some(Duration::from_nanos(at))
    }

    /// Does what is due at `now`: queues a keepalive Ping for
    /// [`poll_transmit`](Self::poll_transmit), or reports that the peer exceeded a deadline.
    ///
    /// # Errors
    /// Fails if the peer did not answer a keepalive Ping (a Close frame is then queued and the
    /// timeout of the closing handshake starts), or if the closing handshake took too long and the
    /// caller must drop the connection.
    pub fn handle_timeout(&mut self, now: Duration) -> Result<(), Timeout> {
        if self.poll_timeout().is_none_or(|due| now < due) {
            return Ok(());
        }
        let now = time(now);
        if self.output != Direction::Open {
            return Err(Timeout::Close {
                budget: self.config.close_timeout,
            });
        }
        if self.keepalive.is_waiting() {
            let error = ProtocolError::KeepaliveTimeout {
                timeout: self.config.ping_timeout,
            };
            self.fail_at(&error, now);
            return Err(Timeout::Keepalive(error));
        }
        self.keepalive.sent = now;
        self.keepalive.ping_due = true;
        #[cfg(feature = "deflate")]
        if let Some(codec) = self.codec_mut() {
            codec.tick();
        }
        Ok(())
    }
}
