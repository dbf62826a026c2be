//! Connections that have not sent a request yet; they can be closed when memory is short.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use linerate_budget::{Budget, Consumer, Holder, Registration};
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
        *pending.registration() = Some(budget.register(&pending));
        pending
    }

    /// Ends the registration because a request has arrived.
    pub(super) fn settle(&self) {
        self.registration().take();
    }

    /// Waits until the connection must be closed.
    pub(super) async fn ended(&self) {
        self.ended.notified().await;
    }

    fn registration(&self) -> MutexGuard<'_, Option<Registration>> {
        self.registration
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
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
