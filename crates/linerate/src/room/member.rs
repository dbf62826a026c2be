//! The membership of a connection in a room.

use std::{
    fmt,
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use linerate_proto::engine::State;

use super::{JoinError, Room};
use crate::link::{Link, Membership, Policy};

/// A connection's membership in a room; dropping it leaves the room.
///
/// Leaving discards what is still waiting for this member because its peer reads slowly. It does
/// not close the connection.
///
/// ```
/// use linerate::{Result, WebSocket, room::Room};
///
/// /// Forwards messages to the other members, and tells the client when it missed any.
/// async fn chat(mut ws: WebSocket, room: Room) -> Result<()> {
///     let mut member = room.join(&ws)?;
///     loop {
///         tokio::select! {
///             message = ws.recv() => match message? {
///                 Some(message) => _ = room.send_except(&member, message),
///                 None => return Ok(()),
///             },
///             missed = member.lagged() => ws.send(format!("{missed} missed")).await?,
///         }
///     }
/// }
/// ```
#[must_use = "dropping the member leaves the room"]
pub struct Member {
    room: Room,
    entry: Arc<Entry>,
}

/// A member, as the room knows it.
pub(super) struct Entry {
    pub(super) link: Arc<Link>,
    pub(super) membership: Arc<Membership>,
    pub(super) is_compressed: bool,
    /// The place among the members; changed only under their lock.
    index: AtomicUsize,
}

impl Member {
    pub(super) fn new(room: Room, entry: Arc<Entry>) -> Self {
        Self { room, entry }
    }

    /// Returns the room.
    pub fn room(&self) -> &Room {
        &self.room
    }

    /// Returns how many messages of the room this member has missed so far.
    pub fn missed(&self) -> u64 {
        self.entry.membership.missed()
    }

    /// Waits until the member has missed messages and has caught up with those that were kept for
    /// it. Returns how many it missed since the last call, for instance to send it a snapshot.
    ///
    /// To tell the client at the place of the gap, use [`RoomOptions::with_notice`] instead.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    ///
    /// [`RoomOptions::with_notice`]: super::RoomOptions::with_notice
    pub async fn lagged(&mut self) -> u64 {
        let Entry {
            link, membership, ..
        } = &*self.entry;
        poll_fn(|cx| link.poll_missed(cx, membership)).await
    }

    pub(super) fn entry(&self) -> &Arc<Entry> {
        &self.entry
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.room.leave(&self.entry);
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member")
            .field("missed", &self.missed())
            .finish_non_exhaustive()
    }
}

impl Entry {
    pub(super) fn new(link: &Arc<Link>, policy: &Arc<Policy>) -> Result<Arc<Self>, JoinError> {
        let connection = link.lock();
        if connection.engine().state() != State::Open {
            return Err(JoinError::Closed);
        }
        #[cfg(feature = "deflate")]
        let is_compressed = connection.engine().compression().is_some();
        #[cfg(not(feature = "deflate"))]
        let is_compressed = false;
        Ok(Arc::new(Self {
            link: link.clone(),
            membership: Arc::new(Membership::new(policy.clone())),
            is_compressed,
            index: AtomicUsize::new(0),
        }))
    }

    pub(super) fn index(&self) -> usize {
        self.index.load(Ordering::Relaxed)
    }

    pub(super) fn set_index(&self, index: usize) {
        self.index.store(index, Ordering::Relaxed);
    }
}
