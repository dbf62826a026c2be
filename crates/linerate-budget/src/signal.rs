//! Wakes the tasks that wait for a change of state.

use std::{sync::Mutex, task::Waker};

/// The wakers of the tasks that wait for a change of state.
#[derive(Default)]
pub(crate) struct Signal(Mutex<Wakers>);

impl Signal {
    pub(crate) fn wakers(&self) -> &Mutex<Wakers> {
        &self.0
    }
}

#[derive(Default)]
pub(crate) struct Wakers(Vec<Waker>);

impl Wakers {
    pub(crate) fn take(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.0)
    }

    pub(crate) fn register(&mut self, waker: &Waker) {
        if !self.0.iter().any(|known| known.will_wake(waker)) {
            self.0.push(waker.clone());
        }
    }
}
