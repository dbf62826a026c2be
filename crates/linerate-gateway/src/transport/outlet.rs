//! What stands between a session, its worker and its wire: data and replies out, events in.

#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    fmt, mem,
    sync::{Mutex, MutexGuard, PoisonError},
    task::Poll,
};

use bytes::Bytes;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use linerate_budget::{Account, Consumer, Holder, Share};
use linerate_hub::{ChannelName, Gap};
use tokio::sync::Notify;

use super::wire::Wire;
use crate::{
    node::{Notice, Outlet, most_of},
    protocol::{Block, Transmit, centrifuge::Disconnect, event_stream, native, raw},
    server::CONNECTION_BYTES,
};

/// Events that may wait for the session's task. It takes all of them whenever it runs, so this many come only
/// if it can't.
const EVENTS_MAX: usize = 4_096;

/// Larger replies and pushes are written from where they are, without a copy.
const COPIED_BYTES_MAX: usize = 4 << 10;

/// How a client is told of gaps.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum GapNotice {
    /// By an event.
    EventStream,
    /// By a native block.
    Native,
    /// Not at all, or by the end of its subscription.
    None,
    /// By a message on its raw WebSocket.
    Raw,
}

/// The way out to a client, shared by its session and its worker, both on the worker's thread.
///
/// Replies and pushes never wait behind data in here: what the wire has no room for is queued, and goes before any
/// further data.
pub(crate) struct ClientOutlet {
    wire: Box<dyn Wire>,
    gap_notice: GapNotice,
    /// Bytes of replies and pushes that may wait.
    control_bytes_max: usize,
    /// Where replies and pushes are counted.
    backlogs: Account,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    control: VecDeque<Bytes>,
    control_bytes: usize,
    /// What is counted of them.
    share: Share,
    events: VecDeque<Event>,
    /// The numbers that stand for channels in native blocks.
    channel_ids: HashMap<ChannelName, u32, RandomState>,
    /// Whether no data may be sent yet, because the client has to hear something else first.
    is_held: bool,
    /// Whether somebody was told that there is no room.
    is_full: bool,
    /// Whether the client takes less than it is sent.
    is_slow: bool,
    is_closed: bool,
}

/// Something for the session to do.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// Publications are missing. The client is told already, if its protocol can.
    Gap(ChannelName),
    /// From the node.
    Notice(Notice),
    /// The client is to be disconnected, because it is slow.
    Slow,
    /// A publication can't be expressed in the client's protocol.
    Unencodable(ChannelName),
}

impl ClientOutlet {
    /// Creates the way out through `wire`. Replies and pushes are counted in `backlogs` until they are sent.
    pub(crate) fn new(
        wire: impl Wire,
        gap_notice: GapNotice,
        control_bytes_max: usize,
        backlogs: &Account,
    ) -> Self {
        let state = State {
            share: backlogs.share(0),
            ..State::default()
        };
        Self {
            wire: Box::new(wire),
            gap_notice,
            control_bytes_max,
            backlogs: backlogs.clone(),
            state: Mutex::new(state),
            changed: Notify::new(),
        }
    }

    /// Sends a reply or a push, ahead of all data that is not with the wire yet.
    pub(crate) fn send(&self, bytes: Bytes) {
        let mut state = self.state();
        if bytes.is_empty() || state.is_closed {
            return;
        }
        if state.control.is_empty() && self.wire.room() > 0 {
            self.wire.send(&Block::new(self.counted(bytes), 1));
            return self.wire.flush();
        }
        // One is taken beyond the bound, so that the length of a single reply is no reason.
        if state.control_bytes > self.control_bytes_max {
            state.is_slow = true;
        } else {
            state.control_bytes += bytes.len();
            state.control.push_back(bytes);
            state.count();
        }
        state.is_full = true;
        self.changed.notify_one();
    }

    /// Ends the stream behind what is with the wire. Replies that wait are sent if there is room; for want of memory,
    /// everything that waits is dropped.
    pub(crate) fn close(&self, disconnect: &Disconnect) {
        if disconnect.reason == Disconnect::OVERLOADED.reason {
            self.wire.discard();
        } else {
            self.send_waiting();
        }
        let mut state = self.state();
        state.is_closed = true;
        state.control = VecDeque::new();
        state.control_bytes = 0;
        state.count();
        self.wire.close(disconnect);
    }

    /// Takes note of the number that stands for a channel in native blocks.
    pub(crate) fn set_channel_id(&self, channel: &ChannelName, id: u32) {
        if self.gap_notice == GapNotice::Native {
            self.state().channel_ids.insert(channel.clone(), id);
        }
    }

    /// Forgets the number of a channel.
    pub(crate) fn forget_channel_id(&self, channel: &ChannelName) {
        self.state().channel_ids.remove(channel);
    }

    /// Tells the client of a gap, if its protocol can.
    pub(crate) fn tell_gap(&self, channel: &ChannelName, gap: Gap) {
        let mut notice = Vec::new();
        match self.gap_notice {
            GapNotice::EventStream => event_stream::append_gap(channel, gap, &mut notice),
            GapNotice::Native => {
                if let Some(id) = self.state().channel_ids.get(channel) {
                    native::append_gap(*id, gap, &mut notice);
                }
            }
            GapNotice::None => {}
            GapNotice::Raw => raw::append_gap(channel, gap, &mut notice),
        }
        if !notice.is_empty() {
            self.wire.send(&Block::new(notice, 1));
            self.wire.flush();
        }
    }

    /// Keeps data back until [`release`](Self::release).
    pub(crate) fn hold(&self) {
        self.state().is_held = true;
    }

    /// Lets data go. The worker is to be told that there is room.
    pub(crate) fn release(&self) {
        self.state().is_held = false;
    }

    /// Waits until something has changed: there are events, or no room any more.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Takes the events that wait.
    pub(crate) fn take_events(&self) -> VecDeque<Event> {
        let mut state = self.state();
        let mut events = mem::take(&mut state.events);
        if mem::take(&mut state.is_slow) {
            events.push_front(Event::Slow);
        }
        events
    }

    /// Returns whether replies or pushes wait for room.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.state().control.is_empty()
    }

    /// Returns whether somebody is to wait for room.
    pub(crate) fn is_full(&self) -> bool {
        self.state().is_full
    }

    /// Waits until there is room, and sends replies that waited for it. Says whether data may follow; if not, the
    /// client is gone.
    pub(crate) async fn room(&self) -> bool {
        std::future::poll_fn(|cx| {
            loop {
                if self.wire.poll_room(cx).is_pending() {
                    return Poll::Pending;
                }
                // Ready without room: the client is gone, and replies to it are dropped.
                let is_gone = self.wire.room() == 0;
                if self.send_waiting() || is_gone {
                    self.state().is_full = false;
                    return Poll::Ready(!is_gone);
                }
            }
        })
        .await
    }

    /// Sends replies that wait while there is room; says whether none waits any more.
    fn send_waiting(&self) -> bool {
        let mut state = self.state();
        while self.wire.room() > 0 {
            let Some(bytes) = state.control.pop_front() else {
                break;
            };
            state.control_bytes -= bytes.len();
            self.wire.send(&Block::new(self.counted(bytes), 1));
        }
        state.count();
        self.wire.flush();
        state.control.is_empty()
    }

    /// Counts a reply or push until the wire has let it go. What is small is copied there, and counted by its capacity.
    fn counted(&self, bytes: Bytes) -> Bytes {
        if bytes.len() <= COPIED_BYTES_MAX {
            return bytes;
        }
        let _share = self.backlogs.share(bytes.len() as u64);
        Bytes::from_owner(Counted { bytes, _share })
    }

    fn push(&self, event: Event) {
        let mut state = self.state();
        if state.events.len() < EVENTS_MAX {
            state.events.push_back(event);
        } else {
            state.is_slow = true;
        }
        self.changed.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes on their way to the socket.
struct Counted {
    bytes: Bytes,
    _share: Share,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl State {
    /// Counts the replies and pushes that wait.
    fn count(&mut self) {
        self.share.set(self.control_bytes as u64);
    }
}

impl Outlet for ClientOutlet {
    fn has_room(&self) -> bool {
        let mut state = self.state();
        if state.is_held {
            return false;
        }
        let has_room = state.control.is_empty() && self.wire.room() > 0;
        if !has_room && !state.is_full {
            state.is_full = true;
            self.changed.notify_one();
        }
        has_room
    }

    fn transmit(&self, transmit: Transmit) {
        match transmit {
            Transmit::Block { block, .. } => self.wire.send(&block),
            Transmit::Gap { channel, gap, .. } => {
                // In its place among the data.
                self.tell_gap(&channel, gap);
                self.push(Event::Gap(channel));
            }
            Transmit::Slow { .. } => self.push(Event::Slow),
            Transmit::Unencodable { channel, .. } => self.push(Event::Unencodable(channel)),
            _ => {}
        }
    }

    fn flush(&self) {
        self.wire.flush();
    }

    fn notify(&self, notice: Notice) {
        self.push(Event::Notice(notice));
    }

    fn pending_bytes(&self) -> usize {
        self.wire.queued_bytes() + self.state().control_bytes
    }

    fn received_bytes(&self) -> usize {
        self.wire.received_bytes()
    }
}

/// A session that its worker does not know yet: the client has not said who it is.
impl Holder for ClientOutlet {
    fn holds(&self) -> (Consumer, u64) {
        let parts = [
            (Consumer::Backlogs, self.pending_bytes() as u64),
            (Consumer::Connections, CONNECTION_BYTES),
            (Consumer::Messages, self.received_bytes() as u64),
        ];
        most_of(parts)
    }

    fn end(&self) {
        self.notify(Notice::Disconnect(Disconnect::OVERLOADED));
    }
}

impl fmt::Debug for ClientOutlet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientOutlet")
            .field("wire", &self.wire)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}
