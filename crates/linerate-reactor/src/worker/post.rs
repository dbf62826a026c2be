//! From letters to connections.

use super::{Core, Worker};
use crate::{
    ConnectionId,
    connection::Connection,
    worker::letters::{Letters, Order},
};

/// Memory that letters keep while there are none, in bytes.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// What one connection is sent is written before its end once it takes so many bytes.
const CORK_BYTES_MAX: usize = 128 << 10;

impl Worker {
    /// Does what callbacks have asked for: one write for all that a connection gets in a row.
    pub(super) fn post(&mut self) {
        // The handlers that are called meanwhile may ask for more.
        while !self.core.letters.is_empty() {
            let mut letters = std::mem::take(&mut self.core.letters);
            self.post_letters(&letters);
            letters.clear(KEPT_BYTES_MAX);
            if self.core.letters.is_empty() {
                self.core.letters = letters;
            }
        }
    }

    fn post_letters(&mut self, letters: &Letters) {
        let mut last = None;
        for (id, order) in letters.iter() {
            if last != Some(id) {
                self.settle_if_there(last.replace(id));
            }
            if let Some(key) = self.find(id.token()) {
                let connection = &mut self.connections[key];
                self.core.follow(connection, order);
            }
        }
        self.settle_if_there(last);
    }

    fn settle_if_there(&mut self, id: Option<ConnectionId>) {
        if let Some(key) = id.and_then(|id| self.find(id.token())) {
            self.settle(key);
        }
    }
}

impl Core {
    fn follow(&mut self, connection: &mut Connection, order: Order<'_>) {
        match order {
            Order::Message(kind, payload) => {
                let cork = &mut self.output.cork;
                // It may be closing; its handler knows or is about to.
                _ = connection.engine.send(cork, kind, payload);
                if cork.len() >= CORK_BYTES_MAX {
                    self.flush(connection, &[], &[]);
                }
                if connection.backlog.len() > self.shared.options.relayed_bytes_max {
                    connection.lost = true;
                }
            }
            Order::Close(code, reason) => {
                let reason = std::str::from_utf8(reason).unwrap_or_default();
                // The length of the reason has been seen to.
                _ = connection.engine.close(code, reason, self.now);
            }
            Order::Pause => connection.paused = true,
            Order::Resume => connection.paused = false,
        }
    }
}
