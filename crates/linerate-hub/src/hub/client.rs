//! What a client has to take, and whether it can.

use crate::hub::{arena::Arena, subscription::Subscription};

/// A client with its subscriptions.
#[derive(Debug, Default)]
pub(crate) struct Client {
    pub(crate) subscriptions: Vec<u32>,
    /// Subscriptions that may have something, in turn.
    first: Option<u32>,
    last: Option<u32>,
    pub(crate) readiness: Readiness,
    /// The subscription for which the connection is to end.
    pub(crate) slow: Option<u32>,
    /// Nothing is given out any more.
    pub(crate) is_over: bool,
}

/// Whether the owner of the socket knows that there is something for it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Readiness {
    /// There is nothing.
    #[default]
    Idle,
    /// It will be told.
    Queued,
    /// It was told, and either takes what there is, or can't take more.
    Told,
}

impl Client {
    /// Lets a subscription wait for its turn.
    pub(crate) fn enqueue(&mut self, index: u32, subscriptions: &mut Arena<Subscription>) {
        if std::mem::replace(&mut subscriptions[index].is_queued, true) {
            return;
        }
        match self.last {
            Some(last) => subscriptions[last].next = Some(index),
            None => self.first = Some(index),
        }
        self.last = Some(index);
    }

    /// Returns the subscription whose turn it is.
    pub(crate) fn front(&self) -> Option<u32> {
        self.first
    }

    /// Takes the subscription whose turn it is out of the queue.
    pub(crate) fn dequeue(&mut self, subscriptions: &mut Arena<Subscription>) -> Option<u32> {
        let index = self.first?;
        let subscription = &mut subscriptions[index];
        subscription.is_queued = false;
        self.first = subscription.next.take();
        if self.first.is_none() {
            self.last = None;
        }
        Some(index)
    }

    /// Gives the next subscription its turn.
    pub(crate) fn rotate(&mut self, subscriptions: &mut Arena<Subscription>) {
        if self.first == self.last {
            return;
        }
        if let Some(index) = self.dequeue(subscriptions) {
            self.enqueue(index, subscriptions);
        }
    }

    /// Takes a subscription out of the queue, wherever it is.
    pub(crate) fn forget(&mut self, index: u32, subscriptions: &mut Arena<Subscription>) {
        self.subscriptions.retain(|own| *own != index);
        if self.slow == Some(index) {
            self.slow = None;
        }
        if !subscriptions[index].is_queued {
            return;
        }
        let mut waiting = self.first.take();
        self.last = None;
        while let Some(other) = waiting {
            waiting = subscriptions[other].next.take();
            subscriptions[other].is_queued = false;
            if other != index {
                self.enqueue(other, subscriptions);
            }
        }
    }
}
