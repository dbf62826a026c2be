//! The state of a client: its subscriptions, and whether it can take output.

use smallvec::SmallVec;

use crate::hub::{arena::Arena, subscription::Subscription};

/// A client with its subscriptions.
#[derive(Debug, Default)]
pub(crate) struct Client {
    pub(crate) subscriptions: SmallVec<[u32; 4]>,
    /// The subscriptions that may have output, if there are any.
    queue: Option<Queue>,
    pub(crate) readiness: Readiness,
    /// The subscription that is too slow, if the connection is to be closed for that reason.
    pub(crate) slow: Option<u32>,
    /// True once the client gets no more output.
    pub(crate) is_over: bool,
}

/// The ends of a queue of subscriptions, each of which knows the next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Queue {
    first: u32,
    last: u32,
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
    /// Adds a subscription to the end of the queue unless it is already queued.
    pub(crate) fn enqueue(&mut self, index: u32, subscriptions: &mut Arena<Subscription>) {
        if std::mem::replace(&mut subscriptions[index].is_queued, true) {
            return;
        }
        let first = match self.queue {
            Some(Queue { first, last }) => {
                subscriptions[last].next = Some(index);
                first
            }
            None => index,
        };
        self.queue = Some(Queue { first, last: index });
    }

    /// Returns the subscription at the front of the queue.
    pub(crate) fn front(&self) -> Option<u32> {
        Some(self.queue?.first)
    }

    /// Removes and returns the subscription at the front of the queue.
    pub(crate) fn dequeue(&mut self, subscriptions: &mut Arena<Subscription>) -> Option<u32> {
        let Queue { first, last } = self.queue?;
        let subscription = &mut subscriptions[first];
        subscription.is_queued = false;
        let next = subscription.next.take();
        self.queue = next.map(|next| Queue { first: next, last });
        Some(first)
    }

    /// Moves the subscription at the front of the queue to its end.
    pub(crate) fn rotate(&mut self, subscriptions: &mut Arena<Subscription>) {
        if self.queue.is_none_or(|queue| queue.first == queue.last) {
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
        let mut waiting = self.queue.take().map(|queue| queue.first);
        while let Some(other) = waiting {
            waiting = subscriptions[other].next.take();
            subscriptions[other].is_queued = false;
            if other != index {
                self.enqueue(other, subscriptions);
            }
        }
    }
}
