//! Pools of compression states.

use alloc::vec::Vec;

use super::{Compressor, CompressorRequest, Decompressor, Output};

/// Lends compression states to connections.
///
/// A state takes about 200 KiB to compress, 50 KiB to compress short messages that do not refer
/// back to others, and 64 KiB to decompress. Any number of connections can share a pool, because
/// each needs a state only while it processes a message.
pub trait Pool: Sync {
    /// Returns a suitable compressor, preferably the one that compressed the previous message of
    /// the same connection. If this returns `None`, the connection creates a new one.
    fn take_compressor(&self, wanted: &CompressorRequest) -> Option<Compressor>;

    /// Takes a compressor back.
    fn give_compressor(&self, compressor: Compressor);

    /// Returns a decompressor. If this returns `None`, the connection creates a new one.
    fn take_decompressor(&self) -> Option<Decompressor>;

    /// Takes a decompressor back.
    fn give_decompressor(&self, decompressor: Decompressor);

    /// Returns an output buffer for a decompressor that continues after waiting for input. If this
    /// returns `None`, the connection creates a new one.
    fn take_output(&self) -> Option<Output> {
        None
    }

    /// Takes back the output buffer of a decompressor that waits for more input.
    fn give_output(&self, output: Output) {
        drop(output);
    }
}

/// A pool that keeps nothing: each message creates its own state.
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a unit struct is its own constructor"
)]
pub struct Unpooled;

impl Pool for Unpooled {
    fn take_compressor(&self, _: &CompressorRequest) -> Option<Compressor> {
        None
    }

    fn give_compressor(&self, _: Compressor) {}

    fn take_decompressor(&self) -> Option<Decompressor> {
        None
    }

    fn give_decompressor(&self, _: Decompressor) {}
}

/// The states that a pool keeps, for implementations of [`Pool`].
///
/// Keeps a limited number of states of each kind; of the compressors, those that were used last.
#[derive(Debug)]
pub struct Stock {
    states_max: usize,
    /// In order of use; the most recently used one is last.
    compressors: Vec<Compressor>,
    decompressors: Vec<Decompressor>,
    outputs: Vec<Output>,
}

impl Stock {
    /// Creates a stock of at most `states_max` compressors, decompressors and outputs each.
    pub const fn new(states_max: usize) -> Self {
        Self {
            states_max,
            compressors: Vec::new(),
            decompressors: Vec::new(),
            outputs: Vec::new(),
        }
    }

    /// Like [`Pool::take_compressor`].
    pub fn take_compressor(&mut self, wanted: &CompressorRequest) -> Option<Compressor> {
        let own = |kept: &Compressor| kept.is_owned(wanted);
        let found = self.compressors.iter().rposition(own).or_else(|| {
            let is_full = self.compressors.len() >= self.states_max;
            let suits = |kept: &Compressor| kept.suits(wanted) && (is_full || kept.is_free());
            self.compressors.iter().position(suits)
        });
        found.map(|at| self.compressors.remove(at))
    }

    /// Like [`Pool::give_compressor`].
    pub fn give_compressor(&mut self, compressor: Compressor) {
        if self.compressors.len() >= self.states_max && !self.compressors.is_empty() {
            self.compressors.remove(0);
        }
        if self.compressors.len() < self.states_max {
            self.compressors.push(compressor);
        }
    }

    /// Like [`Pool::take_decompressor`].
    pub fn take_decompressor(&mut self) -> Option<Decompressor> {
        self.decompressors.pop()
    }

    /// Like [`Pool::give_decompressor`].
    pub fn give_decompressor(&mut self, decompressor: Decompressor) {
        if self.decompressors.len() < self.states_max {
            self.decompressors.push(decompressor);
        }
    }

    /// Like [`Pool::take_output`].
    pub fn take_output(&mut self) -> Option<Output> {
        self.outputs.pop()
    }

    /// Like [`Pool::give_output`].
    pub fn give_output(&mut self, output: Output) {
        if self.outputs.len() < self.states_max {
            self.outputs.push(output);
        }
    }
}

/// A pool for each thread: at most 16 states of each kind, which take up to 5 MiB.
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a unit struct is its own constructor"
)]
pub struct ThreadPool;

#[cfg(feature = "std")]
std::thread_local! {
    static STOCK: core::cell::RefCell<Stock> = const { core::cell::RefCell::new(Stock::new(16)) };
}

#[cfg(feature = "std")]
impl Pool for ThreadPool {
    fn take_compressor(&self, wanted: &CompressorRequest) -> Option<Compressor> {
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

#[cfg(test)]
mod tests {
    use super::{Compressor, CompressorRequest, Decompressor, Output, Stock};
    use crate::deflate::{compressor::Machine, position::MessagePosition};

    fn wanted(machine: Machine) -> CompressorRequest {
        CompressorRequest {
            level: 4,
            window_bits: 12,
            machine,
        }
    }

    fn stream(position: MessagePosition) -> CompressorRequest {
        wanted(Machine::Stream(position))
    }

    /// Gives a compressor that is at this position.
    fn give(stock: &mut Stock, position: MessagePosition) {
        let mut compressor = Compressor::new(&stream(position));
        compressor.set_position(position);
        stock.give_compressor(compressor);
    }

    #[test]
    fn a_stock_keeps_a_limited_number_of_each_kind() {
        let mut stock = Stock::new(2);
        for _ in 0..3 {
            stock.give_compressor(Compressor::new(&wanted(Machine::Short)));
            stock.give_decompressor(Decompressor::new());
            stock.give_output(Output::default());
        }
        for _ in 0..2 {
            assert!(stock.take_compressor(&wanted(Machine::Short)).is_some());
            assert!(stock.take_decompressor().is_some());
            assert!(stock.take_output().is_some());
        }
        assert!(stock.take_compressor(&wanted(Machine::Short)).is_none());
        assert!(stock.take_decompressor().is_none());
        assert!(stock.take_output().is_none());
        let mut none = Stock::new(0);
        none.give_compressor(Compressor::new(&wanted(Machine::Short)));
        none.give_decompressor(Decompressor::new());
        none.give_output(Output::default());
        assert!(none.take_compressor(&wanted(Machine::Short)).is_none());
        assert!(none.take_decompressor().is_none() && none.take_output().is_none());
    }

    #[test]
    fn a_compressor_continues_from_its_position() {
        let [a, b, c] = [
            MessagePosition::start(),
            MessagePosition::start(),
            MessagePosition::start(),
        ];
        let mut stock = Stock::new(3);
        give(&mut stock, a);
        give(&mut stock, b);
        let taken = stock.take_compressor(&stream(a)).expect("it is there");
        assert!(taken.is_owned(&stream(a)) && !taken.is_owned(&stream(b)));
        let other_level = CompressorRequest {
            level: 5,
            ..stream(b)
        };
        assert!(stock.take_compressor(&other_level).is_none());
        // There is room for one more, so the compressor of another position is not taken from it.
        assert!(stock.take_compressor(&stream(c)).is_none());
        assert!(stock.take_compressor(&wanted(Machine::Short)).is_none());
        assert!(stock.take_compressor(&stream(b)).is_some());
    }

    #[test]
    fn the_least_recently_used_compressor_is_lent_when_the_pool_is_full() {
        let [a, b, c, d] = [(); 4].map(|()| MessagePosition::start());
        let mut stock = Stock::new(2);
        give(&mut stock, a);
        give(&mut stock, b);
        let taken = stock.take_compressor(&stream(c)).expect("it is full");
        assert!(taken.is_owned(&stream(a)));
        stock.give_compressor(taken);
        give(&mut stock, d);
        let taken = stock.take_compressor(&stream(b)).expect("it is full");
        assert!(
            taken.is_owned(&stream(a)),
            "the one of b was dropped to make room"
        );
        assert!(stock.take_compressor(&stream(d)).is_some());
    }

    #[test]
    fn a_compressor_without_a_position_is_lent_to_any_suitable_user() {
        let position = MessagePosition::start();
        let mut stock = Stock::new(2);
        stock.give_compressor(Compressor::new(&stream(position)));
        let wider = CompressorRequest {
            window_bits: 15,
            ..stream(position)
        };
        assert!(stock.take_compressor(&wider).is_none());
        assert!(stock.take_compressor(&stream(position)).is_some());
    }

    #[cfg(feature = "std")]
    #[test]
    fn a_thread_keeps_outputs() {
        use super::{Pool, ThreadPool};
        while ThreadPool.take_output().is_some() {}
        ThreadPool.give_output(Output::default());
        assert!(ThreadPool.take_output().is_some());
        assert!(ThreadPool.take_output().is_none());
    }
}
