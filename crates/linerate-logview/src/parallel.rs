//! Parsing a log by several threads, with the figures of one.
//!
//! A log is cut at line ends into pieces of about a mebibyte ([`Cutter`]). A piece becomes a
//! [`Batch`] on any thread ([`Worker`]): its lines are parsed, and its values have codes of their
//! own. Batches are merged in the order of the pieces
//! ([`Aggregator::merge`](crate::aggregate::Aggregator::merge)), where each request is counted as if
//! it came line by line. So the figures depend neither on the number of threads nor on where the log
//! was cut, not even estimates do. [`Pool`] does all this with threads of its own.

mod batch;
mod cutter;
mod pool;

pub use batch::{Batch, Worker};
pub use cutter::{Cutter, Piece};
pub use pool::Pool;

#[cfg(test)]
mod tests;
