//! Deadlines: the keepalive Ping, its answer, and the closing handshake.

mod portable;

use core::time::Duration;

use crate::{config::Config, error::ProtocolError};

/// A deadline passed; see [`Engine::handle_timeout`](super::Engine::handle_timeout).
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Timeout {
    /// The closing handshake took too long; drop the connection now.
    #[error("closing handshake took longer than {budget:?}")]
    Close {
        /// How long the closing handshake was allowed to take.
        budget: Duration,
    },
    /// Nothing arrived after a keepalive Ping; the engine has failed the connection.
    #[error("{0}")]
    Keepalive(ProtocolError),
}

/// Nanoseconds since the moment that the caller chose as zero.
pub(super) type Time = u64;

pub(super) fn time(now: Duration) -> Time {
    now.as_nanos() as Time
}

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

    /// Returns the next deadline, given whether our Close frame is queued.
    #[inline]
    pub(super) fn deadline(&self, config: &Config, is_closing: bool) -> Option<Time> {
        if is_closing {
            return Some(self.sent.saturating_add(time(config.close_timeout)));
        }
        if self.is_waiting() {
            return Some(self.sent.saturating_add(time(config.ping_timeout)));
        }
        // An interval of zero would send a Ping for each Pong, forever.
        let interval = config.ping_interval.filter(|it| !it.is_zero())?;
        Some(self.last_sign().saturating_add(time(interval)))
    }

    /// Does what is due at `now`: queues a Ping, or returns which deadline the peer exceeded.
    pub(super) fn handle_timeout(
        &mut self,
        now: Time,
        config: &Config,
        is_closing: bool,
    ) -> Result<(), Timeout> {
        if is_closing {
            return Err(Timeout::Close {
                budget: config.close_timeout,
            });
        }
        if self.is_waiting() {
            return Err(Timeout::Keepalive(ProtocolError::KeepaliveTimeout {
                timeout: config.ping_timeout,
            }));
        }
        self.sent = now;
        self.ping_due = true;
        Ok(())
    }
}
