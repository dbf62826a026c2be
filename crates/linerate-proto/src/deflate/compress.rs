//! The sending direction (RFC 7692 §7.2.1).

use core::mem;

use super::{
    Budget, Compressor, CompressorRequest, Context, Pool, budget::Share, compressor::Machine,
    position::MessagePosition, short, window::Window,
};

/// The state of the sending direction: the window and the position of the next message.
#[derive(Debug)]
pub(super) struct SendState {
    context: Context,
    level: u8,
    window: Window,
    share: Share,
    position: MessagePosition,
    /// True if nothing was compressed since the last tick.
    is_idle: bool,
}

impl SendState {
    pub(super) fn new(context: Context, level: u8, budget: &'static Budget) -> Self {
        Self {
            context,
            level: level.clamp(1, 9),
            window: Window::new(context.window_bits),
            share: Share::new(budget),
            position: MessagePosition::start(),
            is_idle: false,
        }
    }

    pub(super) const fn context(&self) -> Context {
        self.context
    }

    /// Compresses a message, or with `ends: false` a fragment that is not the last.
    ///
    /// This changes no state: call [`keep`](Self::keep) if the output is sent.
    pub(super) fn compress(&self, pool: &dyn Pool, payload: &[u8], ends: bool) -> Compressor {
        let wanted = self.wanted(payload.len());
        let taken = pool.take_compressor(&wanted);
        let taken = taken.filter(|compressor| compressor.suits(&wanted));
        let mut compressor = taken.unwrap_or_else(|| Compressor::new(&wanted));
        compressor.run(&wanted, self.window.parts(), payload, ends);
        compressor
    }

    /// Returns which compressor is suitable for `bytes` bytes.
    fn wanted(&self, bytes: usize) -> CompressorRequest {
        let window_bits = self.context.window_bits;
        let is_short = !self.context.takeover && bytes <= short::BYTES_MAX;
        CompressorRequest {
            level: self.level,
            window_bits,
            machine: if is_short {
                Machine::Short
            } else {
                Machine::Stream(self.position)
            },
        }
    }

    /// Records that the output of `compressor` for `payload` is sent.
    pub(super) fn keep(&mut self, pool: &dyn Pool, mut compressor: Compressor, payload: &[u8]) {
        if self.context.takeover {
            self.remember(payload);
            compressor.set_position(self.position);
        }
        Self::give(pool, compressor);
    }

    /// Records that `payload` is sent in a form that was compressed without our window.
    pub(super) fn keep_prepared(&mut self, payload: &[u8]) {
        if self.context.takeover {
            self.remember(payload);
        }
    }

    pub(super) fn give(pool: &dyn Pool, mut compressor: Compressor) {
        compressor.shrink_output();
        pool.give_compressor(compressor);
    }

    /// Releases the window if memory is tight and nothing was compressed since the last tick. The
    /// next message then refers back to nothing, which is always valid.
    pub(super) fn tick(&mut self) {
        if mem::replace(&mut self.is_idle, true) && self.share.budget().is_tight() {
            self.forget();
        }
    }

    /// Returns the bytes that the next message may refer back to, in two parts.
    pub(super) fn sent(&self) -> [&[u8]; 2] {
        self.window.parts()
    }

    /// Continues after `sent`, which is what the peer received last in compressed form.
    pub(super) fn continue_after(&mut self, sent: &[u8]) {
        if self.context.takeover {
            self.remember(sent);
        }
    }

    fn remember(&mut self, payload: &[u8]) {
        self.is_idle = false;
        self.position.advance();
        if self.share.grow_to(self.window.bytes_for(payload.len())) {
            self.window.append(payload);
        } else {
            // A window with a gap would be wrong, so start over with an empty one.
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.window.free();
        self.share.give_back();
    }
}
