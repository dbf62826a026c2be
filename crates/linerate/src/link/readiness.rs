//! The waker for a readable socket, which wakes the receiver while it waits, and the driver
//! otherwise.
//!
//! A socket remembers only one waker. If the receiver and the driver are different tasks, it would
//! forget one of them. So the socket gets this waker, which knows both.

use std::{
    sync::{Arc, Mutex, PoisonError},
    task::{Wake, Waker},
};

#[derive(Debug, Default)]
pub(super) struct Readiness {
    wakers: Mutex<Wakers>,
}

#[derive(Debug, Default)]
struct Wakers {
    receiver: Option<Waker>,
    driver: Option<Waker>,
}

impl Readiness {
    /// Sets the wakers of the receiver and the driver; `receiver` is `None` if it is not waiting.
    pub(super) fn set(&self, receiver: Option<&Waker>, driver: Option<&Waker>) {
        let mut wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
        wakers.receiver = receiver.cloned();
        wakers.driver = driver.cloned();
    }
}

impl Wake for Readiness {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let waker = {
            let mut wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
            wakers.receiver.take().or_else(|| wakers.driver.clone())
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
