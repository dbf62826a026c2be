//! The results that the kernel reports.

use std::{io, os::fd::OwnedFd};

use crate::Input;

/// The result of a completed operation, or the next result of one that continues.
#[derive(Debug)]
#[non_exhaustive]
pub enum Completion {
    /// A result of [`Ring::accept`](crate::Ring::accept).
    Accepted {
        /// The token that was passed to the operation.
        token: u64,
        /// The new connection, whose socket is non-blocking.
        accepted: io::Result<OwnedFd>,
        /// True if the operation continues.
        more: bool,
    },
    /// The result of [`Ring::poll`](crate::Ring::poll), which is complete.
    Polled {
        /// The token that was passed to the operation.
        token: u64,
    },
    /// A result of [`Ring::receive`](crate::Ring::receive).
    Received {
        /// The token that was passed to the operation.
        token: u64,
        /// The received bytes, or `None` at the end of the stream. The errors `ENOBUFS` (all
        /// buffers are in use) and `ECANCELED` do not concern the connection.
        received: io::Result<Option<Input>>,
        /// True if the operation continues.
        more: bool,
    },
    /// The result of a [`Ring::send`](crate::Ring::send) that did not send all bytes.
    Unsent {
        /// The token that was passed to the operation.
        token: u64,
        /// How many bytes were sent; the error `EAGAIN` means none.
        sent: io::Result<usize>,
        /// The bytes that were passed to the operation.
        bytes: Vec<u8>,
    },
}
