//! Rooms: connections that receive the same messages.
//!
//! A chat server, in which the path of the URL names the room:
//!
//! ```no_run
//! use linerate::{Message, Request, Result, WebSocket, room::Rooms};
//!
//! async fn chat(mut ws: WebSocket, request: Request, rooms: Rooms) -> Result<()> {
//!     let member = rooms.join(request.path(), &ws)?;
//!     while let Some(message) = ws.recv().await? {
//!         member.room().send(message);
//!     }
//!     Ok(())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:9001").await?;
//! let stop = async { _ = tokio::signal::ctrl_c().await };
//! let rooms = Rooms::new();
//! let handler = move |ws, request| chat(ws, request, rooms.clone());
//! linerate::serve(listener, handler, stop).await
//! # }
//! ```
//!
//! A message is encoded once, and compressed at most once, for all members. Sending never waits:
//! messages for a member that reads slowly are queued up to
//! [`backlog_bytes_max`](RoomOptions::backlog_bytes_max), and then its [`SlowMember`] policy
//! applies. Every message that a member misses is counted.

mod member;
mod options;
mod rooms;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

pub use crate::{error::JoinError, link::SlowMember};
pub use member::Member;
pub use options::RoomOptions;
pub use rooms::Rooms;

use crate::{
    Frames, Message, Sender, WebSocket,
    link::{Link, Offered, Policy},
};

use member::Entry;
use rooms::Home;
use sealed::HasLink;

/// How many members [`Room::send`] writes to itself; the tasks of the others' connections write to
/// theirs. This limits the time of the call to about that of as many writes to sockets.
const WRITES_MAX: usize = 128;

/// Connections that receive the same messages.
///
/// Clones are the same room. All members receive the messages in the same order, also if several
/// tasks send at the same time. Dropping the room does not affect its members: they stay members
/// until they leave.
///
/// ```
/// use linerate::{CloseCode, room::Room};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> linerate::Result<()> {
/// # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// # let url = format!("ws://{}/", listener.local_addr()?);
/// let room = Room::new();
/// let joining = room.clone();
/// tokio::spawn(linerate::serve(listener, move |mut ws, _request| {
///     let room = joining.clone();
///     async move {
///         let _member = room.join(&ws)?;
///         ws.send("welcome").await?;
///         while ws.recv().await?.is_some() {}
///         Ok(())
///     }
/// }, std::future::pending()));
///
/// let mut ws = linerate::connect(&url).await?;
/// assert_eq!(ws.recv().await?, Some("welcome".into()));
/// assert_eq!(room.send("hello, everybody"), 1);
/// assert_eq!(ws.recv().await?, Some("hello, everybody".into()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Room {
    shared: Arc<Shared>,
}

struct Shared {
    options: RoomOptions,
    policy: Arc<Policy>,
    members: Mutex<Members>,
    /// The rooms among which this one has a name.
    home: Option<Home>,
}

/// The members. Their order has no meaning.
#[derive(Default)]
struct Members {
    entries: Vec<Arc<Entry>>,
    /// How many members receive compressed messages.
    compressed: usize,
    /// True once the room is no longer among its [`Rooms`].
    has_vanished: bool,
}

/// A connection that can join a room: a [`WebSocket`] or a [`Sender`].
///
/// This trait is sealed.
pub trait Connection: HasLink {}

impl Connection for Sender {}

impl Connection for WebSocket {}

impl Room {
    /// Creates a room with the default options.
    pub fn new() -> Self {
        Self::with_options(RoomOptions::default())
    }

    /// Creates a room.
    pub fn with_options(options: RoomOptions) -> Self {
        Self::build(options, None)
    }

    fn build(options: RoomOptions, home: Option<Home>) -> Self {
        let policy = options.policy();
        Self {
            shared: Arc::new(Shared {
                options,
                policy: Arc::new(policy),
                members: Mutex::default(),
                home,
            }),
        }
    }

    /// Adds a connection, which receives all messages that are sent from now on. It leaves when the
    /// returned [`Member`] is dropped, or when the room finds it closed.
    ///
    /// The room does not keep the connection open. A connection that joins twice receives messages
    /// twice.
    ///
    /// # Errors
    /// The connection is closing or closed, the room has
    /// [`members_max`](RoomOptions::members_max) members, or it has vanished from its [`Rooms`]
    /// because it was empty.
    pub fn join(&self, connection: &impl Connection) -> Result<Member, JoinError> {
        let entry = Entry::new(connection.link(), &self.shared.policy)?;
        let mut members = self.lock();
        if members.has_vanished {
            return Err(JoinError::RoomVanished);
        }
        let members_max = self.shared.options.members_max;
        if members.entries.len() >= members_max {
            return Err(JoinError::MembersMax { members_max });
        }
        members.add(entry.clone());
        drop(members);
        Ok(Member::new(self.clone(), entry))
    }

    /// Sends a message to all members without waiting; returns for how many of them it was queued.
    ///
    /// The call writes to the sockets of at most 128 members; for the others, it wakes the tasks of
    /// their connections.
    pub fn send(&self, message: impl Into<Message>) -> usize {
        self.deliver(&self.encode(&message.into()), None)
    }

    /// Sends a message to all members except one, such as the member that it comes from.
    pub fn send_except(&self, except: &Member, message: impl Into<Message>) -> usize {
        self.deliver(&self.encode(&message.into()), Some(except.entry()))
    }

    /// Sends messages that are encoded already, like [`send`](Self::send). No other message comes
    /// between them.
    pub fn send_frames(&self, frames: &Frames) -> usize {
        self.deliver(frames, None)
    }

    /// Returns the number of members. A member whose connection has ended may still be included
    /// before the next message is sent.
    pub fn len(&self) -> usize {
        self.lock().entries.len()
    }

    /// Returns whether the room has no members.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many messages members have missed so far: a message that two members missed
    /// counts twice.
    ///
    /// This includes what was waiting for members when they left. It does not include messages
    /// that were in the send queue of a connection when that ended.
    pub fn missed(&self) -> u64 {
        self.shared.policy.missed()
    }

    fn lock(&self) -> MutexGuard<'_, Members> {
        let members = self.shared.members.lock();
        members.unwrap_or_else(PoisonError::into_inner)
    }

    fn encode(&self, message: &Message) -> Frames {
        let frames = Frames::from(message);
        #[cfg(feature = "deflate")]
        if let Some(deflate) = &self.shared.options.deflate
            && self.lock().compressed > 0
        {
            return frames.compressed(deflate);
        }
        frames
    }

    /// Queues frames for all members, then writes.
    ///
    /// All queueing happens under the lock, so that the order is the same everywhere; writing does
    /// not.
    fn deliver(&self, frames: &Frames, except: Option<&Arc<Entry>>) -> usize {
        let (mut written, mut closed): (Vec<Arc<Link>>, _) = (Vec::new(), Vec::new());
        let mut accepted = 0;
        let mut members = self.lock();
        let mut index = 0;
        while let Some(entry) = members.entries.get(index) {
            index += 1;
            if except.is_some_and(|except| Arc::ptr_eq(except, entry)) {
                continue;
            }
            let wakes = written.len() == WRITES_MAX;
            match entry.link.offer(frames, &entry.membership, wakes) {
                Offered::Accepted => {
                    accepted += 1;
                    if !wakes {
                        written.push(entry.link.clone());
                    }
                }
                Offered::Dropped => {}
                Offered::Closed => {
                    index -= 1;
                    closed.extend(members.remove(index));
                }
            }
        }
        drop(members);
        for link in written {
            link.try_flush();
        }
        if !closed.is_empty() {
            self.vanish_if_empty();
        }
        accepted
    }

    /// Removes a member, unless it was removed before.
    fn leave(&self, entry: &Arc<Entry>) {
        let removed = self.lock().remove_entry(entry);
        entry.link.leave(&entry.membership);
        if removed.is_some() {
            self.vanish_if_empty();
        }
    }

    fn vanish_if_empty(&self) {
        if let Some(home) = &self.shared.home {
            home.remove_if_empty(self);
        }
    }
}

mod sealed {
    use super::{Arc, Link, Sender, WebSocket};

    /// Access to the connection of a handle.
    pub trait HasLink {
        #[expect(private_interfaces, reason = "the trait is sealed")]
        fn link(&self) -> &Arc<Link>;
    }

    #[expect(private_interfaces, reason = "the trait is sealed")]
    impl HasLink for Sender {
        fn link(&self) -> &Arc<Link> {
            &self.link
        }
    }

    #[expect(private_interfaces, reason = "the trait is sealed")]
    impl HasLink for WebSocket {
        fn link(&self) -> &Arc<Link> {
            &self.link
        }
    }
}

impl Members {
    fn add(&mut self, entry: Arc<Entry>) {
        entry.set_index(self.entries.len());
        self.compressed += usize::from(entry.is_compressed);
        self.entries.push(entry);
    }

    fn remove_entry(&mut self, entry: &Arc<Entry>) -> Option<Arc<Entry>> {
        let index = entry.index();
        let is_there = |found: &Arc<Entry>| Arc::ptr_eq(found, entry);
        self.entries
            .get(index)
            .is_some_and(is_there)
            .then(|| self.remove(index))
            .flatten()
    }

    /// Removes the member at `index`; the last one takes its place.
    fn remove(&mut self, index: usize) -> Option<Arc<Entry>> {
        if index >= self.entries.len() {
            return None;
        }
        let removed = self.entries.swap_remove(index);
        self.compressed -= usize::from(removed.is_compressed);
        if let Some(moved) = self.entries.get(index) {
            moved.set_index(index);
        }
        if self.entries.len() < self.entries.capacity() / 4 {
            self.entries.shrink_to(self.entries.len() * 2);
        }
        Some(removed)
    }
}

impl Default for Room {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Room")
            .field("members", &self.len())
            .field("missed", &self.missed())
            .finish_non_exhaustive()
    }
}
