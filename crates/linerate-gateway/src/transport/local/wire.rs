//! Writes to a client on the reactor.

use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
};

use super::{super::wire::Wire, LocalClients};
use crate::protocol::{Block, codes::Disconnect};

/// The sending half of a WebSocket or stream on the reactor. It has no room until the connection is
/// open.
pub(crate) struct LocalWire {
    pub(super) clients: Arc<LocalClients>,
    pub(super) key: usize,
}

impl LocalWire {
    /// Returns the key with which the connection is opened.
    pub(crate) const fn key(&self) -> usize {
        self.key
    }
}

impl Wire for LocalWire {
    fn send(&self, block: &Block) {
        self.clients.table.borrow_mut().send(self.key, block);
    }

    fn flush(&self) {
        self.clients.table.borrow_mut().flush(self.key);
    }

    fn discard(&self) {
        self.clients.table.borrow_mut().discard(self.key);
    }

    fn room(&self) -> usize {
        self.clients.table.borrow().room(self.key)
    }

    fn queued_bytes(&self) -> usize {
        let status = self.clients.table.borrow().status(self.key);
        status.map_or(0, |status| status.backlog_bytes)
    }

    fn received_bytes(&self) -> usize {
        let status = self.clients.table.borrow().status(self.key);
        status.map_or(0, |status| status.input_bytes)
    }

    /// Never completes without room: the worker's loop is told when there is room again.
    fn poll_room(&self, _cx: &mut Context<'_>) -> Poll<()> {
        match self.room() {
            0 => Poll::Pending,
            _ => Poll::Ready(()),
        }
    }

    fn has_task(&self) -> bool {
        false
    }

    fn wake_session(&self) {
        self.clients.wake(self.key);
    }

    fn close(&self, disconnect: &Disconnect) {
        self.clients.table.borrow_mut().close(self.key, disconnect);
    }
}

impl Drop for LocalWire {
    fn drop(&mut self) {
        self.clients.table.borrow_mut().remove(self.key);
    }
}

impl fmt::Debug for LocalWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalWire")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}
