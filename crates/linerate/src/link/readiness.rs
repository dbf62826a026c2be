//! Whom to wake when the socket can be read: the receiver while it waits, else the driver.
//!
//! Where receiver and driver are different tasks, a socket that remembered the waker of one of them
//! would forget the other. So the socket is given this waker, and this one knows both.

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
    /// Notes that the receiver waits, or with `None` that it doesn't, and who drives.
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
