//! Messages of rooms that wait for a connection whose peer reads slowly, and the counts of those
//! that were dropped.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::Waker,
};

use linerate_proto::CloseCode;

use crate::{Frames, Message};

/// What a waiting message counts in addition to its bytes: its place in the queue, and the memory
/// that its sender allocated for it.
const ITEM_BYTES: usize = 128;

/// What a room does with a message for a member whose backlog is full.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum SlowMember {
    /// Discard the backlog and close the connection with this code, such as
    /// [`TRY_AGAIN_LATER`](CloseCode::TRY_AGAIN_LATER).
    Close(CloseCode),
    /// Drop the message: the member gets what is oldest, then a gap.
    DropNewest,
    /// Drop the oldest messages in the backlog to make room for the new one, which suits data that
    /// becomes outdated.
    #[default]
    DropOldest,
}

/// Makes the message that tells a member how many messages it missed.
pub(crate) type Notice = dyn Fn(u64) -> Message + Send + Sync;

/// How a room treats slow members, and how many messages it has dropped.
pub(crate) struct Policy {
    pub(crate) slow: SlowMember,
    pub(crate) backlog_bytes_max: usize,
    pub(crate) notice: Option<Arc<Notice>>,
    missed: AtomicU64,
}

/// The membership of a connection in a room, as far as the connection knows it.
pub(crate) struct Membership {
    pub(super) policy: Arc<Policy>,
    missed: AtomicU64,
    /// How many messages were missed since `Link::poll_missed` was last ready.
    pub(super) unreported: AtomicU64,
    /// The task in `Link::poll_missed`; woken when nothing is waiting any more.
    waker: Mutex<Option<Waker>>,
}

/// The waiting messages of a connection, in one queue for each membership; empty unless the peer
/// reads slowly.
#[derive(Default)]
pub(super) struct Backlog {
    queues: VecDeque<Queue>,
}

/// The waiting messages of one membership, in order.
pub(super) struct Queue {
    membership: Arc<Membership>,
    items: VecDeque<Item>,
    bytes: usize,
}

enum Item {
    Frames(Frames),
    /// The place of this many dropped messages, of which the peer is notified.
    Gap(u64),
}

impl Policy {
    pub(crate) const fn new(
        slow: SlowMember,
        backlog_bytes_max: usize,
        notice: Option<Arc<Notice>>,
    ) -> Self {
        Self {
            slow,
            backlog_bytes_max,
            notice,
            missed: AtomicU64::new(0),
        }
    }

    /// Returns how many messages all members together have missed.
    pub(crate) fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }
}

impl Membership {
    pub(crate) fn new(policy: Arc<Policy>) -> Self {
        Self {
            policy,
            missed: AtomicU64::new(0),
            unreported: AtomicU64::new(0),
            waker: Mutex::default(),
        }
    }

    /// Returns how many messages the member has missed.
    pub(crate) fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    pub(super) fn miss(&self, messages: u64) {
        for count in [&self.missed, &self.unreported, &self.policy.missed] {
            count.fetch_add(messages, Ordering::Relaxed);
        }
    }

    pub(super) fn waker(&self) -> MutexGuard<'_, Option<Waker>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Backlog {
    pub(super) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Returns the size of all waiting messages in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.queues.iter().map(|queue| queue.bytes).sum()
    }

    /// Discards and counts everything.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Takes the next message; memberships take turns. Returns `None` at a gap without a
    /// notice, and if nothing is waiting.
    pub(super) fn pop(&mut self) -> Option<Frames> {
        let mut queue = self.queues.pop_front()?;
        let frames = queue.pop();
        if !queue.items.is_empty() {
            self.queues.push_back(queue);
        } else if self.queues.is_empty() {
            // Peers that have caught up must not keep memory.
            self.queues = VecDeque::new();
        }
        frames
    }

    pub(super) fn find(&self, membership: &Arc<Membership>) -> Option<usize> {
        let is_it = |queue: &Queue| Arc::ptr_eq(&queue.membership, membership);
        self.queues.iter().position(is_it)
    }

    /// Returns the queue of `membership`, which is created if necessary.
    pub(super) fn queue(&mut self, membership: &Arc<Membership>) -> &mut Queue {
        let found = self.find(membership);
        let index = found.unwrap_or(self.queues.len());
        if found.is_none() {
            self.queues.push_back(Queue {
                membership: membership.clone(),
                items: VecDeque::new(),
                bytes: 0,
            });
        }
        &mut self.queues[index]
    }

    pub(super) fn remove(&mut self, membership: &Arc<Membership>) -> Option<Queue> {
        let index = self.find(membership)?;
        self.queues.remove(index)
    }
}

impl Queue {
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= self.membership.policy.backlog_bytes_max.max(1)
    }

    pub(super) fn push(&mut self, frames: &Frames) {
        self.bytes += frames.len() + ITEM_BYTES;
        self.items.push_back(Item::Frames(frames.clone()));
    }

    /// Takes the next message or, at a gap, the notice of it.
    pub(super) fn pop(&mut self) -> Option<Frames> {
        match self.items.pop_front()? {
            Item::Frames(frames) => {
                self.bytes -= frames.len() + ITEM_BYTES;
                Some(frames)
            }
            Item::Gap(missed) => {
                let notice = self.membership.policy.notice.as_ref()?;
                Some(Frames::from(&notice(missed)))
            }
        }
    }

    /// Counts a message that is not queued.
    pub(super) fn drop_newest(&mut self, messages: u64) {
        self.membership.miss(messages);
        match self.items.back_mut() {
            Some(Item::Gap(missed)) => *missed += messages,
            _ => self.items.push_back(Item::Gap(messages)),
        }
    }

    /// Drops the oldest messages until there is room.
    pub(super) fn drop_oldest(&mut self) {
        let mut gap = 0;
        while self.is_full()
            && let Some(item) = self.items.pop_front()
        {
            gap += self.lose(item);
        }
        if let Some(Item::Gap(missed)) = self.items.front_mut() {
            *missed += gap;
        } else {
            self.items.push_front(Item::Gap(gap));
        }
    }

    /// Counts an item that is dropped; returns how many messages are missing in its place.
    fn lose(&mut self, item: Item) -> u64 {
        match item {
            Item::Frames(frames) => {
                self.bytes -= frames.len() + ITEM_BYTES;
                self.membership.miss(frames.messages());
                frames.messages()
            }
            Item::Gap(missed) => missed,
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        while let Some(item) = self.items.pop_front() {
            self.lose(item);
        }
        let waker = self.membership.waker().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
