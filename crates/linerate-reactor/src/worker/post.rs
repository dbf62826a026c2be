//! The delivery of letters to connections.

use super::{Core, Worker};
use crate::{
    ConnectionId,
    connection::Connection,
    worker::letters::{Letters, Order},
};

/// Memory in bytes that letters keep while there are none.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// The output for one connection is written early once it has this many bytes.
const CORK_BYTES_MAX: usize = 128 << 10;

impl Worker {
    /// Carries out what callbacks have requested, with one write for consecutive messages to one
    /// connection.
    pub(super) fn post(&mut self) {
        // Handlers that are called meanwhile may request more.
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
                // The connection may be closing; its handler knows or is about to.
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
                // `To::close` has checked the length of the reason.
                _ = connection.engine.close(code, reason, self.now);
            }
            Order::Pause => connection.paused = true,
            Order::Resume => connection.paused = false,
        }
    }
}
