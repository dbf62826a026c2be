//! What the kernel reports.

use std::{io, os::fd::OwnedFd};

use crate::Input;

/// An operation that is complete, or the next result of one that goes on.
#[derive(Debug)]
#[non_exhaustive]
pub enum Completion {
    /// Of [`Ring::accept`](crate::Ring::accept).
    Accepted {
        /// What the operation was started with.
        token: u64,
        /// A connection, whose socket does not block.
        accepted: io::Result<OwnedFd>,
        /// The operation goes on.
        more: bool,
    },
    /// Of [`Ring::poll`](crate::Ring::poll), which is over.
    Polled {
        /// What the operation was started with.
        token: u64,
    },
    /// Of [`Ring::receive`](crate::Ring::receive).
    Received {
        /// What the operation was started with.
        token: u64,
        /// What has arrived, or `None` at the end of the stream. The errors `ENOBUFS` (all buffers
        /// are lent or full) and `ECANCELED` say nothing about the connection.
        received: io::Result<Option<Input>>,
        /// The operation goes on.
        more: bool,
    },
    /// Of a [`Ring::send`](crate::Ring::send) that was not taken whole.
    Unsent {
        /// What the operation was started with.
        token: u64,
        /// How many bytes the kernel has taken; `EAGAIN` stands for none.
        sent: io::Result<usize>,
        /// The memory that was handed over.
        bytes: Vec<u8>,
    },
}
