//! The sending direction (RFC 7692 §7.2.1).

use core::{
    mem,
    sync::atomic::{AtomicU64, Ordering},
};

use super::{
    Budget, Compressor, Context, Pool, Wanted, budget::Share, compressor::Machine, short,
    window::Window,
};

/// A place in what one endpoint sends. A compressor that stands there need not be told what it may
/// refer back to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Place {
    stream: u64,
    messages: u64,
}

impl Place {
    /// Returns the start of a stream that no other has the name of.
    pub(super) fn start() -> Self {
        static STREAMS: AtomicU64 = AtomicU64::new(0);
        Self {
            stream: STREAMS.fetch_add(1, Ordering::Relaxed),
            messages: 0,
        }
    }
}

/// What we send: the window, and how to go on from it.
#[derive(Debug)]
pub(super) struct Sending {
    context: Context,
    level: u8,
    window: Window,
    share: Share,
    place: Place,
    /// Whether nothing was compressed since the last tick.
    is_idle: bool,
}

impl Sending {
    pub(super) fn new(context: Context, level: u8, budget: &'static Budget) -> Self {
        Self {
            context,
            level: level.clamp(1, 9),
            window: Window::new(context.window_bits),
            share: Share::new(budget),
            place: Place::start(),
            is_idle: false,
        }
    }

    pub(super) const fn context(&self) -> Context {
        self.context
    }

    /// Compresses a message, or with `ends: false` a fragment that is not the last.
    ///
    /// Nothing has happened until [`keep`](Self::keep) says that the output is sent.
    pub(super) fn compress(&self, pool: &dyn Pool, payload: &[u8], ends: bool) -> Compressor {
        let wanted = self.wanted(payload.len());
        let taken = pool.take_compressor(&wanted);
        let taken = taken.filter(|compressor| compressor.suits(&wanted));
        let mut compressor = taken.unwrap_or_else(|| Compressor::new(&wanted));
        compressor.run(&wanted, self.window.parts(), payload, ends);
        compressor
    }

    /// Returns what compresses so many bytes.
    fn wanted(&self, bytes: usize) -> Wanted {
        let window_bits = self.context.window_bits;
        let is_short = !self.context.takeover && bytes <= short::BYTES_MAX;
        Wanted {
            level: self.level,
            window_bits,
            machine: if is_short {
                Machine::Short
            } else {
                Machine::Stream(self.place)
            },
        }
    }

    /// Takes note that what `compressor` made of `payload` is sent.
    pub(super) fn keep(&mut self, pool: &dyn Pool, mut compressor: Compressor, payload: &[u8]) {
        if self.context.takeover {
            self.remember(payload);
            compressor.stand_at(self.place);
        }
        Self::give(pool, compressor);
    }

    /// Takes note that `payload` is sent, as another compressor made it without our window.
    pub(super) fn keep_prepared(&mut self, payload: &[u8]) {
        if self.context.takeover {
            self.remember(payload);
        }
    }

    pub(super) fn give(pool: &dyn Pool, mut compressor: Compressor) {
        compressor.rest();
        pool.give_compressor(compressor);
    }

    /// Gives the window up if memory is tight and nothing was compressed since the last tick: the
    /// next message refers back to nothing, which it is always free to do.
    pub(super) fn tick(&mut self) {
        if mem::replace(&mut self.is_idle, true) && self.share.budget().is_tight() {
            self.forget();
        }
    }

    fn remember(&mut self, payload: &[u8]) {
        self.is_idle = false;
        self.place.messages += 1;
        if self.share.grow_to(self.window.bytes_for(payload.len())) {
            self.window.append(payload);
        } else {
            // A window with a hole in it would be wrong.
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.window.free();
        self.share.give_back();
    }
}
