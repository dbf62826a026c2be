//! Exports an inflater in the middle of a message, and continues it.

use zlib_rs::{InflateFlush, Status};

use super::{Decompressor, FINAL_BLOCKS_MAX, ReceiveState, State};
use crate::{
    deflate::{trail::Place, window::Window},
    portable::{ImportError, Reader, Writer, check, invalid},
};

/// More bytes than complete symbols in the input of an inflater yield when its output was full: the
/// end of a match, and at most seven bits, of which a match takes two.
const FOUND_BYTES_MAX: usize = 2 << 10;

/// More than a message can have; keeps sums of lengths in bounds.
const MESSAGE_BYTES_MAX: u64 = 1 << 62;

impl ReceiveState {
    /// Brings an arriving message to a place that can be exported: takes all output from zlib that
    /// it can yield without more input, and keeps it for the next call of
    /// [`inflate`](Self::inflate).
    pub(in crate::deflate) fn settle(&mut self, decompressor: &mut Decompressor) {
        let state = &mut *decompressor.0;
        let mut out = [0; 512];
        loop {
            let before = state.inflate.total_out();
            let status = (state.inflate).decompress(&[], &mut out, InflateFlush::NoFlush);
            let written = (state.inflate.total_out() - before) as usize;
            let found = &out[..written];
            state.inflated += written as u64;
            state.found.extend_from_slice(found);
            let window = if self.context.takeover {
                &mut self.window
            } else {
                &mut state.history
            };
            window.append(found);
            match status {
                Ok(Status::StreamEnd) => {
                    // The limit fails the connection at the next one.
                    state.final_blocks = (state.final_blocks + 1).min(FINAL_BLOCKS_MAX);
                    self.restart(state);
                    break;
                }
                Ok(_) if written == out.len() => {}
                // The next input fails the connection if what was taken is invalid.
                Ok(_) | Err(_) => break,
            }
        }
        state.trail.follow();
    }

    pub(in crate::deflate) fn export(&self, state: &mut Writer) {
        state.parts(self.window.parts());
    }

    pub(in crate::deflate) fn import(&mut self, state: &mut Reader<'_>) -> Result<(), ImportError> {
        let bytes_max = if self.context.takeover {
            self.window.bytes_max()
        } else {
            0
        };
        self.window
            .append(state.bytes("receiving window", bytes_max)?);
        Ok(())
    }

    /// Continues a message in a new decompressor.
    pub(in crate::deflate) fn import_message(
        &self,
        decompressor: &mut Decompressor,
        state: &mut Reader<'_>,
    ) -> Result<(), ImportError> {
        let message = &mut *decompressor.0;
        let is_fresh = message.import(state, self.context.takeover)?;
        let history = core::mem::take(&mut message.history);
        let window = if self.context.takeover {
            &self.window
        } else {
            &history
        };
        let placed = message.place(window, state);
        message.history = history;
        message.is_fresh = is_fresh;
        placed
    }
}

impl Decompressor {
    /// Exports a message that was [settled](ReceiveState::settle).
    pub(in crate::deflate) fn export(&self, state: &mut Writer) {
        let message = &*self.0;
        state.u64(message.taken);
        state.u64(message.inflated);
        state.raw(&message.last);
        state.flag(message.is_fresh);
        state.u16(message.final_blocks);
        state.bytes(&message.found);
        state.parts(message.history.parts());
        message.trail.place().export(state);
    }

    /// Returns whether an export found bytes that were not returned yet.
    pub(in crate::deflate) const fn has_found(&self) -> bool {
        !self.0.found.is_empty()
    }
}

impl State {
    /// Reads everything except the place in the stream; returns whether a stream has just begun.
    fn import(&mut self, state: &mut Reader<'_>, takeover: bool) -> Result<bool, ImportError> {
        self.taken = state.u64("compressed bytes")?;
        check(
            self.taken < MESSAGE_BYTES_MAX,
            "compressed bytes",
            self.taken,
        )?;
        self.inflated = state.u64("inflated bytes")?;
        check(
            self.inflated < MESSAGE_BYTES_MAX,
            "inflated bytes",
            self.inflated,
        )?;
        self.last = state.array("last compressed bytes")?;
        let is_fresh = state.flag("start of a deflate stream")?;
        self.final_blocks = state.u16("final blocks")?;
        check(
            self.final_blocks <= FINAL_BLOCKS_MAX,
            "final blocks",
            self.final_blocks,
        )?;
        self.found = state
            .bytes("inflated bytes to return", FOUND_BYTES_MAX)?
            .into();
        let found = self.found.len() as u64;
        check(found <= self.inflated, "inflated bytes to return", found)?;
        let bytes_max = if takeover {
            0
        } else {
            self.history.bytes_max()
        };
        self.history
            .append(state.bytes("history of the message", bytes_max)?);
        Ok(is_fresh)
    }

    /// Brings the inflater to the place that follows in `state`.
    fn place(&mut self, window: &Window, state: &mut Reader<'_>) -> Result<(), ImportError> {
        let (place, trail) = Place::import(state)?;
        self.trail = trail;
        self.restart(window);
        let prefix = place.prefix();
        let flush = InflateFlush::NoFlush;
        let placed = self.inflate.decompress(&prefix, &mut [0; 1], flush);
        // Bits that are invalid fail the connection at the next input, as in the other process.
        let is_there = placed.is_err()
            || self.inflate.total_in() == prefix.len() as u64 && self.inflate.total_out() == 0;
        if is_there {
            Ok(())
        } else {
            Err(invalid("deflate bits", prefix.len() as u64))
        }
    }
}
