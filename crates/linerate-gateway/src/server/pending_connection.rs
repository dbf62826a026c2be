//! Connections that have not sent a request yet; they can be closed when memory is short.

use std::sync::Arc;

use linerate_budget::{Budget, Consumer, Holder, Registration};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::admission::CONNECTION_BYTES;

/// A connection before its first request. After that, what the request needs, a body or a session,
/// can be ended separately.
#[derive(Debug, Default)]
pub(super) struct PendingConnection {
    ended: Notify,
    registration: Mutex<Option<Registration>>,
}

impl PendingConnection {
    /// Registers a connection.
    pub(super) fn register(budget: &Budget) -> Arc<Self> {
        let pending = Arc::new(Self::default());
        *pending.registration.lock() = Some(budget.register(&pending));
        pending
    }

    /// Ends the registration because a request has arrived.
    pub(super) fn settle(&self) {
        self.registration.lock().take();
    }

    /// Waits until the connection must be closed.
    pub(super) async fn ended(&self) {
        self.ended.notified().await;
    }
}

impl Holder for PendingConnection {
    fn holds(&self) -> (Consumer, u64) {
        (Consumer::Connections, CONNECTION_BYTES)
    }

    fn end(&self) {
        self.ended.notify_one();
    }
}
