//! The sending direction (RFC 7692 §7.2.1).

use alloc::{boxed::Box, vec::Vec};
use core::{
    fmt, mem,
    sync::atomic::{AtomicU64, Ordering},
};

use zlib_rs::DeflateFlush;

use super::{Budget, Context, Pool, Wanted, budget::Share, window::Window};

/// What a sync flush ends with: an empty stored block without its first byte, taken off the end of
/// each message.
pub(super) const TAIL: [u8; 4] = [0x00, 0x00, 0xFF, 0xFF];

/// Compressed output is kept for the next message unless it was longer than this.
const OUTPUT_BYTES_KEPT_MAX: usize = 256 << 10;

/// Room that is left at the end of a flush, so that it is over.
const OUTPUT_BYTES_SPARE: usize = 16;

/// The state of a compressor, with the output of the last message.
pub struct Compressor(Box<State>);

struct State {
    deflate: zlib_rs::Deflate,
    level: u8,
    window_bits: u8,
    /// The place whose last bytes it knows.
    place: Option<Place>,
    /// All initialized; the first `len` are output.
    output: Vec<u8>,
    len: usize,
}

impl Compressor {
    fn new(wanted: &Wanted) -> Self {
        let Wanted {
            level, window_bits, ..
        } = *wanted;
        Self(Box::new(State {
            deflate: zlib_rs::Deflate::new(level.into(), false, window_bits),
            level,
            window_bits,
            place: None,
            output: Vec::new(),
            len: 0,
        }))
    }

    /// Returns the compressed message.
    pub(crate) fn output(&self) -> &[u8] {
        &self.0.output[..self.0.len]
    }

    pub(super) fn suits(&self, wanted: &Wanted) -> bool {
        (self.0.level, self.0.window_bits) == (wanted.level, wanted.window_bits)
    }

    pub(super) fn is_owned(&self, wanted: &Wanted) -> bool {
        self.0.place == Some(wanted.place) && self.suits(wanted)
    }

    pub(super) const fn is_free(&self) -> bool {
        self.0.place.is_none()
    }

    fn start(&mut self, history: [&[u8]; 2]) {
        self.0.deflate.reset();
        for part in history {
            if !part.is_empty() {
                let told = self.0.deflate.set_dictionary(part);
                told.expect("a raw stream that was just reset takes a dictionary");
            }
        }
    }

    /// Compresses `input` up to a byte boundary; with `ends` as the last part of a message.
    fn run(&mut self, input: &[u8], ends: bool) {
        let state = &mut *self.0;
        state.len = 0;
        if input.is_empty() {
            // Nothing to flush: the first byte of an empty stored block, or nothing at all.
            state.reserve(1);
            state.output[0] = 0;
            state.len = ends.into();
            return;
        }
        state.reserve(input.len() / 2 + 64);
        let mut rest = input;
        loop {
            let (taken, written) = (state.deflate.total_in(), state.deflate.total_out());
            let out = &mut state.output[state.len..];
            let run = state.deflate.compress(rest, out, DeflateFlush::SyncFlush);
            run.expect("the state is consistent");
            rest = &rest[(state.deflate.total_in() - taken) as usize..];
            state.len += (state.deflate.total_out() - written) as usize;
            if rest.is_empty() && state.len < state.output.len() {
                break;
            }
            state.reserve(input.len() / 2 + OUTPUT_BYTES_SPARE);
        }
        debug_assert!(state.output[..state.len].ends_with(&TAIL));
        if ends {
            state.len -= TAIL.len();
        }
    }
}

impl State {
    fn reserve(&mut self, bytes: usize) {
        if self.output.len() - self.len < bytes {
            self.output.resize(self.len + bytes, 0);
        }
    }
}

impl fmt::Debug for Compressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compressor")
            .field("level", &self.0.level)
            .field("window_bits", &self.0.window_bits)
            .finish_non_exhaustive()
    }
}

/// A place in what one endpoint sends. A compressor that stands there need not be told what it may
/// refer back to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Place {
    stream: u64,
    messages: u64,
}

impl Place {
    /// Returns the start of a stream that no other has the name of.
    fn start() -> Self {
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
        let wanted = Wanted {
            level: self.level,
            // zlib has no window of 8 bits. With 9 it refers back 512 - 262 bytes at most: it
            // leaves room for the longest match and what it looks ahead.
            window_bits: self.context.window_bits.max(9),
            place: self.place,
        };
        let taken = pool.take_compressor(&wanted);
        let taken = taken.filter(|compressor| compressor.suits(&wanted));
        let mut compressor = taken.unwrap_or_else(|| Compressor::new(&wanted));
        if !compressor.is_owned(&wanted) {
            compressor.start(self.window.parts());
        }
        compressor.run(payload, ends);
        // Until it is kept it knows bytes that the peer does not.
        compressor.0.place = None;
        compressor
    }

    /// Takes note that what `compressor` made of `payload` is sent.
    pub(super) fn keep(&mut self, pool: &dyn Pool, mut compressor: Compressor, payload: &[u8]) {
        if self.context.takeover {
            self.remember(payload);
            compressor.0.place = Some(self.place);
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
        if compressor.0.output.len() > OUTPUT_BYTES_KEPT_MAX {
            compressor.0.output = Vec::new();
            compressor.0.len = 0;
        }
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
