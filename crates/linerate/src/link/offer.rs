//! Offering messages of rooms to a connection, which queues them or treats them by a policy.

use std::{
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
};

use linerate_proto::{CloseCode, engine::State};

use super::{
    Connection, Link,
    backlog::{Membership, SlowMember},
    connection::LazyState,
};
use crate::{Frames, clock};

/// What became of a message that was offered to a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Offered {
    /// It is queued.
    Accepted,
    /// The connection is closing or closed, perhaps because of the policy.
    Closed,
    /// It was dropped and counted.
    Dropped,
}

impl Link {
    /// Queues a message of a room, or treats it by the policy. If `wakes`, the driver writes it;
    /// otherwise the caller calls [`try_flush`](Self::try_flush).
    pub(crate) fn offer(
        &self,
        frames: &Frames,
        membership: &Arc<Membership>,
        wakes: bool,
    ) -> Offered {
        let mut connection = self.lock();
        let offered = connection.offer(frames, membership);
        if (wakes || offered == Offered::Closed) && !self.is_driver_active() {
            connection.driver.wake();
        }
        offered
    }

    /// Discards what waits for the member.
    pub(crate) fn leave(&self, membership: &Arc<Membership>) {
        let mut connection = self.lock();
        let removed = connection
            .lazy
            .as_mut()
            .and_then(|lazy| lazy.backlog.remove(membership));
        if removed.is_some() {
            // The driver counts the memory of the connection.
            connection.driver.wake();
        }
    }

    /// Waits until the member has missed messages and nothing is waiting for it any more; returns
    /// how many it has missed since the last time.
    pub(crate) fn poll_missed(
        &self,
        cx: &mut Context<'_>,
        membership: &Arc<Membership>,
    ) -> Poll<u64> {
        let connection = self.lock();
        let waits = |lazy: &LazyState| lazy.backlog.find(membership).is_some();
        let is_behind = connection.lazy.as_deref().is_some_and(waits);
        if !is_behind {
            let missed = membership.unreported.swap(0, Ordering::Relaxed);
            if missed > 0 {
                return Poll::Ready(missed);
            }
        }
        *membership.waker() = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Connection {
    /// Moves waiting messages to the outbox, but only up to half of its limit, so that the
    /// application can always send messages of its own.
    pub(super) fn refill_outbox(&mut self) {
        while let Some(lazy) = &mut self.lazy
            && !lazy.backlog.is_empty()
        {
            if self.engine.state() != State::Open {
                return lazy.backlog.clear();
            }
            if !self.accepts_frames() {
                return;
            }
            let next = self.lazy_mut().backlog.pop();
            if let Some(frames) = next
                && self.push_frames(&frames).is_err()
            {
                return;
            }
        }
    }

    /// Returns whether the outbox accepts messages of rooms.
    fn accepts_frames(&self) -> bool {
        let bytes_max = self.options.send_queue_bytes_max.div_ceil(2).max(1);
        self.outbox.len() < bytes_max && !self.engine.is_message_in_progress()
    }

    fn offer(&mut self, frames: &Frames, membership: &Arc<Membership>) -> Offered {
        if self.engine.state() != State::Open {
            return Offered::Closed;
        }
        let is_waiting = self
            .lazy
            .as_ref()
            .is_some_and(|lazy| !lazy.backlog.is_empty());
        if !is_waiting && self.accepts_frames() {
            return match self.push_frames(frames) {
                Ok(()) => Offered::Accepted,
                Err(_) => Offered::Closed,
            };
        }
        let queue = self.lazy_mut().backlog.queue(membership);
        if !queue.is_full() {
            queue.push(frames);
            return Offered::Accepted;
        }
        match membership.policy.slow {
            SlowMember::Close(code) => {
                membership.miss(frames.messages());
                self.close_slow(code);
                Offered::Closed
            }
            SlowMember::DropNewest => {
                queue.drop_newest(frames.messages());
                Offered::Dropped
            }
            SlowMember::DropOldest => {
                queue.drop_oldest();
                queue.push(frames);
                Offered::Accepted
            }
        }
    }

    /// Closes the connection, discarding what the peer does not read.
    fn close_slow(&mut self, code: CloseCode) {
        self.lazy_mut().backlog.clear();
        self.outbox.discard_unbegun();
        // A short reason cannot fail.
        _ = self.engine.close(code, "reads too slowly", clock::now());
    }
}
