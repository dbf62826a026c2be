//! Parses a log on several threads, with the same figures as on one.
//!
//! A log is cut at line feeds into chunks of about 1 MiB ([`Cutter`]). Any thread can turn a chunk
//! into a [`Batch`] ([`Worker`]): its lines are parsed, and its values get codes of the batch's
//! own. Batches are merged in the order of the chunks ([`Aggregator::merge`]), where each request
//! is counted as if it came line by line. The figures, including estimates, therefore depend
//! neither on the number of threads nor on where the log was cut. [`Pool`] does all of this with
//! its own threads.
//!
//! [`Aggregator::merge`]: crate::aggregate::Aggregator::merge
//! [`Batch`]: crate::aggregate::Batch

mod cutter;
mod pool;
mod worker;

pub use cutter::{Chunk, Cutter};
pub use pool::Pool;
pub use worker::Worker;

#[cfg(test)]
mod tests;
