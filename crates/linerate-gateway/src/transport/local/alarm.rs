//! Wakes the task that runs the sessions.

use std::{
    sync::Arc,
    task::{Wake, Waker},
};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// What wakes the task that runs the sessions, from any thread.
#[derive(Debug, Default)]
pub(super) struct Alarm {
    /// The clients an operation of whose session has to be polled.
    woken: Mutex<Vec<usize>>,
    notify: Notify,
}

impl Alarm {
    /// Wakes the task.
    pub(super) fn ring(&self) {
        self.notify.notify_one();
    }

    /// Waits until the task is woken. Cancel-safe.
    pub(super) async fn wait(&self) {
        self.notify.notified().await;
    }

    /// Removes and returns the clients an operation of whose session has to be polled.
    pub(super) fn take_woken(&self) -> Vec<usize> {
        std::mem::take(&mut *self.woken.lock())
    }

    /// Returns the waker of a client's operations.
    pub(super) fn waker(self: &Arc<Self>, key: usize) -> Waker {
        let alarm = self.clone();
        Arc::new(OfClient { alarm, key }).into()
    }
}

/// Wakes the session of one client.
struct OfClient {
    alarm: Arc<Alarm>,
    key: usize,
}

impl Wake for OfClient {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.alarm.woken.lock().push(self.key);
        self.alarm.ring();
    }
}
