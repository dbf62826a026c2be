//! A connection on its way between processes.

use std::{os::fd::OwnedFd, sync::Arc};

use bytes::Bytes;

/// A client whose unfinished message has more than this many bytes is not handed over.
pub(super) const UNREAD_BYTES_MAX: usize = 1 << 20;

/// The connection of a client that is on the way to another process.
#[derive(Clone, Debug)]
pub(crate) struct MovedConnection {
    pub(crate) socket: Arc<OwnedFd>,
    pub(crate) state: Bytes,
}
