//! The error of a budget that has too few bytes left.

use std::{error, fmt};

use crate::Consumer;

/// The budget, or the consumer's share of it, has too few bytes left.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Exhausted {
    /// The consumer that asked.
    pub consumer: Consumer,
    /// The number of bytes it asked for.
    pub asked: u64,
    /// The number of bytes in use: by the consumer if its share is exhausted, otherwise by all
    /// consumers.
    pub used: u64,
    /// The number of bytes that may be in use.
    pub limit: u64,
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "memory budget exhausted: {} asked for {} bytes, but {} of {} bytes are in use; raise server.memory_bytes_max",
            self.consumer, self.asked, self.used, self.limit
        )
    }
}

impl error::Error for Exhausted {}
