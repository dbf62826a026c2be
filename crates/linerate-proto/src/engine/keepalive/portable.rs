//! Exports and imports what is known about the peer's life.

use super::{Keepalive, Time};
use crate::portable::{ImportError, Reader, Writer, check};

impl Keepalive {
    pub(in crate::engine) fn export(&self, state: &mut Writer, is_closing: bool, now: Time) {
        state.u64(now.saturating_sub(self.last_input));
        let is_sent = is_closing || self.sent != 0;
        state.flag(is_sent);
        if is_sent {
            state.u64(now.saturating_sub(self.sent));
        }
        state.flag(self.ping_due);
        state.u8(self.trickled);
        state.u16(self.unsigned);
        state.u32(self.latency);
    }

    /// Continues with the times that follow from the exported ages.
    ///
    /// The time at which a Ping was sent is also its payload. The Pong for a Ping of the other
    /// process proves that the peer is alive, but its latency is not measured.
    pub(in crate::engine) fn import(
        state: &mut Reader<'_>,
        is_closing: bool,
        now: Time,
    ) -> Result<Self, ImportError> {
        let last_input = now.saturating_sub(state.u64("age of the input")?);
        let is_sent = state.flag("sent ping or close")?;
        let mut sent = 0;
        if is_sent {
            let age = state.u64("age of the ping or close")?;
            // A Ping at 0 would be none.
            sent = now.saturating_sub(age).max((!is_closing).into());
        }
        check(is_sent || !is_closing, "sent ping or close", 0_u8)?;
        let ping_due = state.flag("keepalive ping due")?;
        check(
            is_sent && !is_closing || !ping_due,
            "keepalive ping due",
            1_u8,
        )?;
        Ok(Self {
            last_input,
            sent,
            ping_due,
            trickled: state.u8("trickled bytes")?,
            unsigned: state.u16("time without a sign of life")?,
            latency: state.u32("latency")?,
        })
    }
}
