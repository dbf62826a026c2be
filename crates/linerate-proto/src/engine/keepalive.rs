//! Deadlines: the keepalive Ping, its answer, and the end of the closing handshake.

use core::{error::Error, fmt, time::Duration};

use super::{Direction, Engine, Time, time};
use crate::{error::ProtocolError, role::Endpoint};

/// A deadline passed; see [`Engine::handle_timeout`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Timeout {
    /// The closing handshake used up its budget; drop the connection now.
    Close {
        /// The budget.
        budget: Duration,
    },
    /// Nothing arrived after a keepalive Ping; the connection has been failed.
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

/// How many bytes of a frame count as a sign of life while it arrives.
const SIGN_BYTES: usize = 1_000;

/// What is known of the peer's liveness. A peer in the middle of a large frame can't answer a Ping before its
/// end, so input counts as well; but inside of a frame only so much of it, or a peer could hold a connection for
/// ever by a byte now and then.
#[derive(Debug)]
pub(super) struct Keepalive {
    last_input: Time,
    /// When the newest keepalive Ping was queued; its payload holds this number. 0 before the
    /// first, and once it was answered. From our Close frame on, when that was queued.
    sent: Time,
    ping_due: bool,
    /// What has trickled in of a frame since the last sign, in fours of bytes.
    trickled: u8,
    /// How long the last sign was there before the last input, in units of 2²² ns (4 ms), since there is no room for
    /// a time.
    unsigned: u16,
    /// In microseconds; [`UNKNOWN`](Self::UNKNOWN) before the first.
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

    /// Takes note of so many bytes, `in_frame` if they go on with one.
    #[inline]
    pub(super) fn handle_input(&mut self, bytes: usize, in_frame: bool, now: Time) {
        let before = self.last_input;
        self.last_input = before.max(now);
        if !in_frame || bytes >= SIGN_BYTES || self.is_enough(bytes, before) {
            self.trickled = 0;
            self.unsigned = 0;
        }
    }

    /// Adds a few bytes, where the input before came at `before`; returns whether they count by now.
    fn is_enough(&mut self, bytes: usize, before: Time) -> bool {
        self.trickled = self.trickled.saturating_add(bytes.div_ceil(4) as u8);
        let units = (self.last_input >> Self::UNIT_BITS) - (before >> Self::UNIT_BITS);
        let units = u16::try_from(units).unwrap_or(u16::MAX);
        self.unsigned = self.unsigned.saturating_add(units);
        usize::from(self.trickled) >= SIGN_BYTES / 4
    }

    /// Returns when the last sign was there.
    const fn last_sign(&self) -> Time {
        let ago = (self.unsigned as Time) << Self::UNIT_BITS;
        self.last_input.saturating_sub(ago)
    }

    pub(super) fn handle_pong(&mut self, payload: &[u8]) {
        self.unsigned = 0;
        if self.sent != 0 && payload == self.sent.to_be_bytes() {
            let micros = self.last_input.saturating_sub(self.sent) / 1_000;
            self.latency = u32::try_from(micros).unwrap_or(Self::UNKNOWN);
            // A second Pong with this payload answers nothing.
            self.sent = 0;
        }
    }

    pub(super) const fn last_input(&self) -> Time {
        self.last_input
    }

    pub(super) fn latency(&self) -> Option<Duration> {
        (self.latency != Self::UNKNOWN).then(|| Duration::from_micros(self.latency.into()))
    }

    /// Returns the payload of a keepalive Ping that is to go out now.
    pub(super) fn take_ping(&mut self) -> Option<[u8; 8]> {
        core::mem::take(&mut self.ping_due).then(|| self.sent.to_be_bytes())
    }

    /// Takes note that our Close frame is queued; no Ping goes out any more.
    pub(super) const fn handle_close(&mut self, now: Time) {
        self.ping_due = false;
        self.sent = now;
    }

    /// Forgets a Ping that is to go out.
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
    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    ///
    /// Input moves the answer to later, never to earlier: a caller may keep a timer that fires too
    /// early and ask again then.
    pub fn poll_timeout(&self) -> Option<Duration> {
        let at = if self.output != Direction::Open {
            let budget = time(self.config.close_timeout);
            self.keepalive.sent.saturating_add(budget)
        } else if self.keepalive.is_waiting() {
            self.keepalive
                .sent
                .saturating_add(time(self.config.ping_timeout))
        } else {
            // An interval of zero would be a Ping for each Pong, for ever.
            let interval = self.config.ping_interval.filter(|it| !it.is_zero())?;
            self.keepalive.last_sign().saturating_add(time(interval))
        };
        Some(Duration::from_nanos(at))
    }

    /// Does what is due at `now`: queues a keepalive Ping for
    /// [`poll_transmit`](Self::poll_transmit), or finds that the peer's time is up.
    ///
    /// # Errors
    /// The peer did not answer a keepalive Ping (its Close frame is queued and the budget of the
    /// closing handshake runs), or that budget is used up and the connection is to be dropped.
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
