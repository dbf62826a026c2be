//! What was handed to a client that may return, so that the last event that it has received tells
//! what it has of all its channels.
//!
//! A client names only the last event that has arrived. All that was handed to it before has
//! arrived as well, because a connection keeps the order, and nothing that was handed to it later.
//! The journal has this order, for all channels of the client together: not each event, but runs
//! of events of the same channel.

use std::collections::VecDeque;

use bytes::Bytes;
use linerate_budget::{Account, Share};
use linerate_hub::{ChannelName, Epoch, StreamPosition};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::{
    node::ENTRY_BYTES,
    protocol::{
        event_offset::{EventOffset, StreamDigest},
        socketio::namespace,
    },
};

/// The maximum number of runs; beyond it, the oldest are forgotten.
const RUNS_MAX: usize = 256;

/// The maximum number of rooms of a client that may return, including those that it has left.
const ROOMS_MAX: usize = 256;

/// What was handed to a client. The mutex exists only because outlets must be `Sync`; it is never
/// contended.
#[derive(Debug)]
pub(crate) struct Journal(Mutex<Entries>);

#[derive(Debug)]
struct Entries {
    rooms: Vec<Room>,
    /// The oldest first.
    runs: VecDeque<Run>,
    /// True while no run was forgotten.
    is_whole: bool,
    /// The namespaces with rooms whose events cannot be delivered later.
    inexact: Vec<String>,
    /// True while what was handed to the client is known.
    is_exact: bool,
    share: Share,
}

/// A room of the client.
#[derive(Clone, Debug)]
struct Room {
    channel: ChannelName,
    stream: StreamDigest,
    /// The position before the oldest run.
    start: StreamPosition,
    /// How the application has made the client join; `None` if it is in the room from the
    /// beginning.
    joined: Option<Joined>,
    has_left: bool,
}

/// How the application has made a client join a room.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Joined {
    /// The information about the client that others in the channel see, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) info: Option<String>,
}

/// Consecutive events of a room.
#[derive(Clone, Copy, Debug)]
struct Run {
    room: u32,
    /// The offset of the last event.
    to: u64,
}

/// A journal in the form in which it is stored.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct StoredJournal {
    rooms: Vec<StoredRoom>,
    /// The room of each run, and the offset of its last event.
    runs: Vec<(u32, u64)>,
    is_whole: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    inexact: Vec<String>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct StoredRoom {
    channel: String,
    epoch: String,
    offset: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    joined: Option<Joined>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    has_left: bool,
}

/// What is stored about a session in a namespace.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct DetachedSession {
    /// The user of the client; empty if anonymous.
    pub(crate) user: String,
    /// The ID of the client.
    pub(crate) client: String,
    pub(crate) namespace: String,
    pub(crate) journal: StoredJournal,
}

/// A room to which a client returns.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReturnedRoom {
    pub(crate) channel: ChannelName,
    /// What the client has received.
    pub(crate) position: StreamPosition,
    pub(crate) joined: Option<Joined>,
}

impl Journal {
    /// Creates an empty journal. Its memory is charged to `account`.
    pub(crate) fn new(account: &Account) -> Self {
        Self(Mutex::new(Entries {
            rooms: Vec::new(),
            runs: VecDeque::new(),
            is_whole: true,
            inexact: Vec::new(),
            is_exact: true,
            share: account.share(0),
        }))
    }

    /// Continues a journal of another process. Without valid contents, the client cannot return.
    pub(crate) fn restored(stored: StoredJournal, account: &Account) -> Self {
        let journal = Self::new(account);
        let mut entries = journal.0.lock();
        let rooms = stored.rooms.into_iter().map(StoredRoom::into_room);
        let rooms: Option<Vec<_>> = rooms.collect();
        entries.is_exact = rooms.is_some();
        entries.rooms = rooms.unwrap_or_default();
        entries.is_whole = stored.is_whole;
        entries.inexact = stored.inexact;
        let runs = stored.runs.into_iter().map(|(room, to)| Run { room, to });
        let count = entries.rooms.len();
        let is_known = |run: &Run| (run.room as usize) < count;
        entries.runs = runs.filter(is_known).collect();
        entries.charge();
        drop(entries);
        journal
    }

    /// Notes that the client is in a room from now on, and receives what follows `start`. Without
    /// a position, the client cannot return to the namespace.
    pub(crate) fn enter(&self, channel: &ChannelName, start: Option<StreamPosition>) {
        let mut entries = self.0.lock();
        let Some(start) = start.filter(|_| entries.rooms.len() < ROOMS_MAX) else {
            let namespace = namespace::split(channel.as_str()).0;
            if !entries.inexact.iter().any(|one| one == namespace) {
                entries.inexact.push(namespace.to_owned());
            }
            return;
        };
        let stream = StreamDigest::of(channel, &start.epoch);
        // An offset must name one channel, even if two names were chosen for their equal digests.
        let is_equal = |room: &Room| room.stream == stream && room.channel != *channel;
        entries.is_exact &= !entries.rooms.iter().any(is_equal);
        let room = Room {
            channel: channel.clone(),
            stream,
            start,
            joined: None,
            has_left: false,
        };
        entries.rooms.push(room);
        entries.charge();
    }

    /// Notes that the application has made the client join a room.
    pub(crate) fn set_joined(&self, channel: &ChannelName, joined: Joined) {
        if let Some(room) = self.0.lock().current_mut(channel) {
            room.joined = Some(joined);
        }
    }

    /// Notes that the client has left a room, which it does not return to.
    pub(crate) fn leave(&self, channel: &ChannelName) {
        if let Some(room) = self.0.lock().current_mut(channel) {
            room.has_left = true;
        }
    }

    /// Forgets the rooms of a namespace, which the client has left on purpose.
    pub(crate) fn forget_namespace(&self, namespace: &str) {
        let mut entries = self.0.lock();
        let left = entries.without_namespace(namespace);
        (entries.rooms, entries.runs) = left;
        entries.inexact.retain(|one| one != namespace);
        entries.charge();
    }

    /// Returns what is stored about the rooms of a namespace; `None` if the client cannot return.
    pub(crate) fn of_namespace(&self, namespace: &str) -> Option<StoredJournal> {
        let entries = self.0.lock();
        entries.is_exact_in(namespace).then(|| {
            let (rooms, runs) = entries.select(|room| room.namespace() == namespace);
            StoredJournal::of(&rooms, &runs, entries.is_whole)
        })
    }

    /// Returns everything; `None` if the client cannot return.
    pub(crate) fn stored(&self) -> Option<StoredJournal> {
        let entries = self.0.lock();
        entries.is_exact.then(|| StoredJournal {
            inexact: entries.inexact.clone(),
            ..StoredJournal::of(&entries.rooms, &entries.runs, entries.is_whole)
        })
    }

    /// Returns whether the client can return to a namespace.
    pub(crate) fn is_exact_in(&self, namespace: &str) -> bool {
        self.0.lock().is_exact_in(namespace)
    }

    /// Notes that a block was handed to the client, which ends with this event.
    pub(super) fn note(&self, end: EventOffset) {
        self.0.lock().note(end);
    }
}

impl Entries {
    fn is_exact_in(&self, namespace: &str) -> bool {
        self.is_exact && !self.inexact.iter().any(|one| one == namespace)
    }

    fn note(&mut self, end: EventOffset) {
        if !self.is_exact {
            return;
        }
        let is_of = |room: &Room| room.stream == end.stream && !room.has_left;
        if let Some(run) = self.runs.back_mut()
            && is_of(&self.rooms[run.room as usize])
        {
            run.to = run.to.max(end.offset);
            return;
        }
        let Some(room) = self.rooms.iter().position(is_of) else {
            // Another epoch has begun.
            self.is_exact = false;
            return;
        };
        if self.runs.len() == RUNS_MAX
            && let Some(oldest) = self.runs.pop_front()
        {
            self.rooms[oldest.room as usize].start.offset = oldest.to;
            self.is_whole = false;
        }
        self.runs.push_back(Run {
            room: room as u32,
            to: end.offset,
        });
        self.charge();
    }

    fn current_mut(&mut self, channel: &ChannelName) -> Option<&mut Room> {
        let mut rooms = self.rooms.iter_mut();
        rooms.find(|room| room.channel == *channel && !room.has_left)
    }

    fn without_namespace(&self, namespace: &str) -> (Vec<Room>, VecDeque<Run>) {
        self.select(|room| room.namespace() != namespace)
    }

    /// Returns some of the rooms, and their runs.
    fn select(&self, is_wanted: impl Fn(&Room) -> bool) -> (Vec<Room>, VecDeque<Run>) {
        let mut places = Vec::with_capacity(self.rooms.len());
        let mut rooms = Vec::new();
        for room in &self.rooms {
            let place = is_wanted(room).then_some(rooms.len() as u32);
            places.push(place);
            rooms.extend(place.map(|_| room.clone()));
        }
        let place = |run: &Run| {
            let room = places[run.room as usize]?;
            Some(Run { room, ..*run })
        };
        (rooms, self.runs.iter().filter_map(place).collect())
    }

    fn charge(&mut self) {
        let names = self.rooms.iter().map(|room| room.channel.as_str().len());
        let rooms = self.rooms.capacity() * size_of::<Room>() + names.sum::<usize>();
        let runs = self.runs.capacity() * size_of::<Run>();
        self.share.set((ENTRY_BYTES + rooms + runs) as u64);
    }
}

impl Room {
    fn namespace(&self) -> &str {
        namespace::split(self.channel.as_str()).0
    }
}

impl StoredRoom {
    fn into_room(self) -> Option<Room> {
        let channel = ChannelName::new(&self.channel).ok()?;
        let epoch = Epoch::new(&self.epoch);
        Some(Room {
            stream: StreamDigest::of(&channel, &epoch),
            channel,
            start: StreamPosition {
                epoch,
                offset: self.offset,
            },
            joined: self.joined,
            has_left: self.has_left,
        })
    }
}

impl StoredJournal {
    fn of(rooms: &[Room], runs: &VecDeque<Run>, is_whole: bool) -> Self {
        let stored = |room: &Room| StoredRoom {
            channel: room.channel.to_string(),
            epoch: room.start.epoch.to_string(),
            offset: room.start.offset,
            joined: room.joined.clone(),
            has_left: room.has_left,
        };
        Self {
            rooms: rooms.iter().map(stored).collect(),
            runs: runs.iter().map(|run| (run.room, run.to)).collect(),
            is_whole,
            inexact: Vec::new(),
        }
    }

    /// Returns the rooms to which a client returns whose last event had this offset, or that has
    /// received none. Returns `None` if it cannot be told what the client has received, or if it
    /// has missed events of a room that it has left.
    pub(crate) fn rooms_after(self, last: Option<EventOffset>) -> Option<Vec<ReturnedRoom>> {
        let rooms: Option<Vec<_>> = self.rooms.into_iter().map(StoredRoom::into_room).collect();
        let mut rooms = rooms?;
        let mut received: Vec<_> = rooms.iter().map(|room| room.start.offset).collect();
        let mut handed = received.clone();
        let mut is_found = false;
        for (room, to) in self.runs {
            let index = usize::try_from(room).ok()?;
            let before = *handed.get(index)?;
            handed[index] = to;
            if is_found {
                continue;
            }
            let is_of = |last: &EventOffset| last.stream == rooms[index].stream;
            let within = last.filter(|last| is_of(last) && before < last.offset);
            match within.filter(|last| last.offset <= to) {
                Some(last) => {
                    received[index] = last.offset;
                    is_found = true;
                }
                None => received[index] = to,
            }
        }
        if !is_found {
            // The client has received nothing in this session; an event that it names is of an
            // earlier one.
            if !self.is_whole {
                return None;
            }
            received = rooms.iter().map(|room| room.start.offset).collect();
        }
        let mut each = rooms.iter().zip(received.iter().zip(&handed));
        if each.any(|(room, (received, handed))| room.has_left && received != handed) {
            return None;
        }
        for (room, received) in rooms.iter_mut().zip(received) {
            room.start.offset = received;
        }
        let current = rooms.into_iter().filter(|room| !room.has_left);
        let returned = current.map(|room| ReturnedRoom {
            channel: room.channel,
            position: room.start,
            joined: room.joined,
        });
        Some(returned.collect())
    }
}

impl Joined {
    /// Returns the information as it was given.
    pub(crate) fn into_info(self) -> Option<Bytes> {
        self.info.map(Bytes::from)
    }
}

#[cfg(test)]
mod tests;
