//! Where the states of compression come from and go back to.

use alloc::vec::Vec;

use super::{Compressor, Decompressor, Output, compressor::Machine};

/// Lends the states of compression: some 200 KiB to compress, 50 KiB for short messages that refer to
/// no others, 64 KiB to decompress. Shared by any number of connections, of which each needs one only
/// while a message passes.
pub trait Pool: Sync {
    /// Returns a compressor that suits, best the one that did the message
    /// before; `None` makes a new one.
    fn take_compressor(&self, wanted: &Wanted) -> Option<Compressor>;

    /// Takes a compressor back.
    fn give_compressor(&self, compressor: Compressor);

    /// Returns a decompressor; `None` makes a new one.
    fn take_decompressor(&self) -> Option<Decompressor>;

    /// Takes a decompressor back.
    fn give_decompressor(&self, decompressor: Decompressor);

    /// Returns the memory to inflate into, for a decompressor that has waited without; `None` makes it
    /// anew.
    fn take_output(&self) -> Option<Output> {
        None
    }

    /// Takes the memory of a decompressor that waits for more input.
    fn give_output(&self, output: Output) {
        drop(output);
    }
}

/// Which compressor is asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Wanted {
    pub(super) level: u8,
    pub(super) window_bits: u8,
    pub(super) machine: Machine,
}

/// Keeps nothing: each message makes a state of its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unpooled;

impl Pool for Unpooled {
    fn take_compressor(&self, _: &Wanted) -> Option<Compressor> {
        None
    }

    fn give_compressor(&self, _: Compressor) {}

    fn take_decompressor(&self) -> Option<Decompressor> {
        None
    }

    fn give_decompressor(&self, _: Decompressor) {}
}

/// The states that a pool keeps, for implementations of [`Pool`]: a bounded number of each, and of
/// the compressors those that were used last.
#[derive(Debug)]
pub struct Stock {
    states_max: usize,
    /// The one that was used last comes last.
    compressors: Vec<Compressor>,
    decompressors: Vec<Decompressor>,
    outputs: Vec<Output>,
}

impl Stock {
    /// Creates a stock of at most `states_max` compressors, and as many decompressors and outputs.
    pub const fn new(states_max: usize) -> Self {
        Self {
            states_max,
            compressors: Vec::new(),
            decompressors: Vec::new(),
            outputs: Vec::new(),
        }
    }

    /// As [`Pool::take_compressor`].
    pub fn take_compressor(&mut self, wanted: &Wanted) -> Option<Compressor> {
        let own = |kept: &Compressor| kept.is_owned(wanted);
        let found = self.compressors.iter().rposition(own).or_else(|| {
            let is_full = self.compressors.len() >= self.states_max;
            let suits = |kept: &Compressor| kept.suits(wanted) && (is_full || kept.is_free());
            self.compressors.iter().position(suits)
        });
        found.map(|at| self.compressors.remove(at))
    }

    /// As [`Pool::give_compressor`].
    pub fn give_compressor(&mut self, compressor: Compressor) {
        if self.compressors.len() >= self.states_max && !self.compressors.is_empty() {
            self.compressors.remove(0);
        }
        if self.compressors.len() < self.states_max {
            self.compressors.push(compressor);
        }
    }

    /// As [`Pool::take_decompressor`].
    pub fn take_decompressor(&mut self) -> Option<Decompressor> {
        self.decompressors.pop()
    }

    /// As [`Pool::give_decompressor`].
    pub fn give_decompressor(&mut self, decompressor: Decompressor) {
        if self.decompressors.len() < self.states_max {
            self.decompressors.push(decompressor);
        }
    }

    /// As [`Pool::take_output`].
    pub fn take_output(&mut self) -> Option<Output> {
        self.outputs.pop()
    }

    /// As [`Pool::give_output`].
    pub fn give_output(&mut self, output: Output) {
        if self.outputs.len() < self.states_max {
            self.outputs.push(output);
        }
    }
}

/// A pool for each thread: at most 16 states of each kind, which are 5 MiB.
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadPool;

#[cfg(feature = "std")]
std::thread_local! {
    static STOCK: core::cell::RefCell<Stock> = const { core::cell::RefCell::new(Stock::new(16)) };
}

#[cfg(feature = "std")]
impl Pool for ThreadPool {
    fn take_compressor(&self, wanted: &Wanted) -> Option<Compressor> {
        let taken = STOCK.try_with(|stock| stock.borrow_mut().take_compressor(wanted));
        taken.ok().flatten()
    }

    fn give_compressor(&self, compressor: Compressor) {
        _ = STOCK.try_with(|stock| stock.borrow_mut().give_compressor(compressor));
    }

    fn take_decompressor(&self) -> Option<Decompressor> {
        let taken = STOCK.try_with(|stock| stock.borrow_mut().take_decompressor());
        taken.ok().flatten()
    }

    fn give_decompressor(&self, decompressor: Decompressor) {
        _ = STOCK.try_with(|stock| stock.borrow_mut().give_decompressor(decompressor));
    }

    fn take_output(&self) -> Option<Output> {
        let taken = STOCK.try_with(|stock| stock.borrow_mut().take_output());
        taken.ok().flatten()
    }

    fn give_output(&self, output: Output) {
        _ = STOCK.try_with(|stock| stock.borrow_mut().give_output(output));
    }
}
