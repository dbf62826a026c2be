//! The state of a client: its subscriptions, and whether it can take output.

use crate::hub::{arena::Arena, subscription::Subscription};

/// A client with its subscriptions.
#[derive(Debug, Default)]
pub(crate) struct Client {
    pub(crate) subscriptions: Vec<u32>,
    /// The queue of subscriptions that may have output: its first and last entries.
    first: Option<u32>,
    last: Option<u32>,
    pub(crate) readiness: Readiness,
    /// The subscription that is too slow, if the connection is to be closed for that reason.
    pub(crate) slow: Option<u32>,
    /// True once the client gets no more output.
    pub(crate) is_over: bool,
}

/// What the owner of the socket knows of the client's output.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Readiness {
    /// There is no output.
    #[default]
    Idle,
    /// The owner will be told.
    Queued,
    /// The owner was told. It is taking the output, or the client cannot take more.
    Told,
}

impl Client {
    /// Adds a subscription. The list gets no room for a second one, because most clients have one.
    pub(crate) fn add(&mut self, subscription: u32) {
        if self.subscriptions.is_empty() {
            self.subscriptions.reserve_exact(1);
        }
        self.subscriptions.push(subscription);
    }

    /// Adds a subscription to the end of the queue unless it is already queued.
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

    /// Returns the subscription at the front of the queue.
    pub(crate) fn front(&self) -> Option<u32> {
        self.first
    }

    /// Removes and returns the subscription at the front of the queue.
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

    /// Moves the subscription at the front of the queue to its end.
    pub(crate) fn rotate(&mut self, subscriptions: &mut Arena<Subscription>) {
        if self.first == self.last {
            return;
        }
        if let Some(index) = self.dequeue(subscriptions) {
            self.enqueue(index, subscriptions);
        }
    }

    /// Removes a subscription from the client and from its queue.
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
