//! The open connections of a server: how many there are, and their end at shutdown.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use linerate_proto::CloseCode;
use tokio::sync::Notify;

use crate::{
    Result, WebSocket,
    link::{self, Link},
};

/// The connections of one server.
pub(super) struct Connections {
    shared: Arc<Shared>,
    connections_max: usize,
}

struct Shared {
    open: Mutex<Open>,
    all_gone: Notify,
}

#[derive(Default)]
struct Open {
    /// Taken slots, whether the opening handshake is done or not.
    slots: usize,
    next_id: u64,
    links: HashMap<u64, Weak<Link>>,
    closing: bool,
}

/// The place of one connection; given back on drop.
pub(super) struct Slot {
    shared: Arc<Shared>,
    id: u64,
}

impl Connections {
    pub(super) fn new(connections_max: usize) -> Self {
        let shared = Shared {
            open: Mutex::default(),
            all_gone: Notify::new(),
        };
        Self {
            shared: Arc::new(shared),
            connections_max,
        }
    }

    /// Takes a slot, if one is free.
    pub(super) fn take_slot(&self) -> Option<Slot> {
        let mut open = self.shared.lock();
        if open.slots >= self.connections_max {
            return None;
        }
        open.slots += 1;
        open.next_id += 1;
        Some(Slot {
            shared: self.shared.clone(),
            id: open.next_id,
        })
    }

    /// Closes all connections and waits until they are gone, at most `timeout`.
    pub(super) async fn close_all(&self, timeout: Duration) {
        let links: Vec<_> = {
            let mut open = self.shared.lock();
            open.closing = true;
            open.links.values().filter_map(Weak::upgrade).collect()
        };
        for link in links {
            close(&link);
        }
        let all_gone = async {
            loop {
                let notified = self.shared.all_gone.notified();
                if self.shared.lock().slots == 0 {
                    return;
                }
                notified.await;
            }
        };
        if tokio::time::timeout(timeout, all_gone).await.is_err() {
            let connections = self.shared.lock().slots;
            tracing::warn!(connections, "connections are still open at shutdown");
        }
    }
}

impl Slot {
    /// Starts the task of a connection whose opening handshake is done.
    pub(super) fn spawn<F>(self, link: Arc<Link>, handler: impl FnOnce(WebSocket) -> F)
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let closing = {
            let mut open = self.shared.lock();
            open.links.insert(self.id, Arc::downgrade(&link));
            open.closing
        };
        if closing {
            close(&link);
        }
        let handler = handler(WebSocket::new(link.clone()));
        tokio::spawn(async move {
            link::run(link, Some(handler)).await;
            drop(self);
        });
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut open = self.shared.lock();
        open.links.remove(&self.id);
        open.slots -= 1;
        if open.slots == 0 {
            self.shared.all_gone.notify_waiters();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn close(link: &Link) {
    // Closing can't fail with a short reason.
    _ = link.start_close(CloseCode::GOING_AWAY, "server shuts down");
}
