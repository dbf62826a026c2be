//! Rooms by name.

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use super::{Connection, JoinError, Member, Room, RoomOptions};
use crate::Message;

/// The largest length of a name in bytes, because a name may come from a peer.
const NAME_BYTES_MAX: usize = 1_024;

/// Rooms by name. A room is created when its first member joins, and vanishes when its last member
/// leaves.
///
/// Clones are the same rooms.
///
/// ```
/// use linerate::{Request, Result, WebSocket, room::Rooms};
///
/// async fn chat(mut ws: WebSocket, request: Request, rooms: Rooms) -> Result<()> {
///     let member = rooms.join(request.path(), &ws)?;
///     while let Some(message) = ws.recv().await? {
///         member.room().send(message);
///     }
///     Ok(())
/// }
///
/// let rooms = Rooms::new().with_rooms_max(1_000);
/// assert_eq!(rooms.send("/lobby", "is anybody there?"), 0);
/// ```
#[derive(Clone)]
pub struct Rooms {
    directory: Arc<Directory>,
    options: RoomOptions,
    rooms_max: usize,
}

#[derive(Default)]
struct Directory {
    rooms: Mutex<HashMap<Arc<str>, Room>>,
}

/// Where a room has its name.
pub(super) struct Home {
    directory: Weak<Directory>,
    name: Arc<str>,
}

impl Rooms {
    /// Creates rooms with the default options.
    pub fn new() -> Self {
        Self {
            directory: Arc::default(),
            options: RoomOptions::default(),
            rooms_max: 10_000,
        }
    }

    /// Sets the options of each room that is created from now on.
    pub fn with_options(mut self, options: RoomOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets how many rooms there may be at a time. Default: 10,000.
    pub fn with_rooms_max(mut self, rooms_max: usize) -> Self {
        self.rooms_max = rooms_max;
        self
    }

    /// Adds a connection to a room, which is created if necessary; see [`Room::join`].
    ///
    /// # Errors
    /// The name is longer than 1,024 bytes, a room would have to be created beyond the limit, the
    /// room is full, or the connection is closing or closed.
    pub fn join(&self, name: &str, connection: &impl Connection) -> Result<Member, JoinError> {
        let (bytes, bytes_max) = (name.len(), NAME_BYTES_MAX);
        if bytes > bytes_max {
            return Err(JoinError::NameTooLong { bytes, bytes_max });
        }
        let mut rooms = self.directory.lock();
        let count = rooms.len();
        match rooms.entry(name.into()) {
            Entry::Occupied(room) => room.get().join(connection),
            Entry::Vacant(_) if count >= self.rooms_max => Err(JoinError::RoomsMax {
                rooms_max: self.rooms_max,
            }),
            Entry::Vacant(place) => {
                let home = Home {
                    directory: Arc::downgrade(&self.directory),
                    name: place.key().clone(),
                };
                let room = Room::build(self.options.clone(), Some(home));
                // If this fails, the room never existed.
                let member = room.join(connection)?;
                place.insert(room);
                Ok(member)
            }
        }
    }

    /// Sends a message to all members of a room, like [`Room::send`]; 0 if there is no such room.
    pub fn send(&self, name: &str, message: impl Into<Message>) -> usize {
        self.room(name).map_or(0, |room| room.send(message))
    }

    /// Returns the room with this name, if it has members.
    pub fn room(&self, name: &str) -> Option<Room> {
        self.directory.lock().get(name).cloned()
    }

    /// Returns the number of rooms.
    pub fn len(&self) -> usize {
        self.directory.lock().len()
    }

    /// Returns whether there are no rooms.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Directory {
    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Room>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Home {
    /// Removes `room` if it is still empty. It cannot be joined any more.
    pub(super) fn remove_if_empty(&self, room: &Room) {
        let Some(directory) = self.directory.upgrade() else {
            return;
        };
        // The names are locked before the members, as in `Rooms::join`.
        let mut rooms = directory.lock();
        let mut members = room.lock();
        if members.entries.is_empty() && !members.has_vanished {
            members.has_vanished = true;
            rooms.remove(&self.name);
        }
        if rooms.len() < rooms.capacity() / 4 {
            rooms.shrink_to_fit();
        }
    }
}

impl Default for Rooms {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Rooms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rooms")
            .field("rooms", &self.len())
            .field("rooms_max", &self.rooms_max)
            .finish_non_exhaustive()
    }
}
