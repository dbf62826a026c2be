//! Connects a session, its worker and its wire: data and replies out, events in.

#[cfg(test)]
mod tests;

use std::{collections::VecDeque, fmt, future::pending, mem, task::Poll};

use bytes::Bytes;
use linerate_budget::{Account, Share};
use linerate_hub::{ChannelName, Gap};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::wire::Wire;
use crate::{
    node::{Notice, Outlet},
    protocol::{Block, Transmit, codes::Disconnect, dialect::GapNotice},
    session::{Event, SessionOutlet},
    webhook::{Tracked, Webhooks},
};

/// The maximum number of events queued for the session's task. The task takes all of them whenever
/// it runs, so the limit is reached only if it cannot run.
const EVENTS_MAX: usize = 4_096;

/// Larger replies and pushes are passed on without a copy.
const COPIED_BYTES_MAX: usize = 4 << 10;

/// The output side of a client, shared by its session and its worker, both on the worker's thread.
///
/// Replies and pushes take precedence over data: those for which the wire has no room are queued
/// here and sent before any further data.
pub(crate) struct ClientOutlet {
    wire: Box<dyn Wire>,
    gap_notice: &'static GapNotice,
    /// The account that replies and pushes are charged to.
    backlogs: Account,
    state: Mutex<State>,
    /// `None` if there were no webhooks when the client connected.
    tracked: Option<Box<Tracked>>,
    /// Wakes the session if it is a task.
    changed: Option<Box<Notify>>,
}

#[derive(Debug, Default)]
struct State {
    /// `None` while nothing waits, as for nearly all clients.
    waiting: Option<Box<Waiting>>,
    /// The maximum number of bytes of queued replies and pushes.
    control_bytes_max: u32,
    /// True while data is held back because the client must receive something else first.
    is_held: bool,
    /// True if the worker or the session waits for room.
    is_full: bool,
    /// True if the client reads more slowly than it is sent data.
    is_slow: bool,
    is_closed: bool,
}

/// What waits for the socket or for the session.
#[derive(Debug)]
struct Waiting {
    control: VecDeque<Bytes>,
    control_bytes: usize,
    /// The part of the account that the queued replies and pushes use.
    share: Share,
    events: VecDeque<Event>,
    /// The memory of commands that the session keeps.
    command_bytes: usize,
}

impl ClientOutlet {
    /// Creates an outlet that writes to `wire`. Replies and pushes are charged to `backlogs` until
    /// they are sent.
    pub(crate) fn new(
        wire: impl Wire,
        gap_notice: &'static GapNotice,
        control_bytes_max: usize,
        backlogs: &Account,
    ) -> Self {
        Self {
            changed: wire.has_task().then(Box::default),
            wire: Box::new(wire),
            gap_notice,
            backlogs: backlogs.clone(),
            tracked: None,
            state: Mutex::new(State {
                control_bytes_max: control_bytes_max.try_into().unwrap_or(u32::MAX),
                ..State::default()
            }),
        }
    }

    /// Notes what webhooks are told of the client, if there are any.
    pub(crate) fn tracked_for(mut self, webhooks: &Webhooks) -> Self {
        self.tracked = webhooks.track();
        self
    }

    /// Sends a reply or a push, ahead of all data that has not reached the wire.
    pub(crate) fn send(&self, bytes: Bytes) {
        let mut state = self.state.lock();
        if bytes.is_empty() || state.is_closed {
            return;
        }
        self.count_sent(bytes.len());
        if !state.has_control() && self.wire.room() > 0 {
            self.wire.send(&Block::new(self.counted(bytes), 1));
            return self.wire.flush();
        }
        // Accept one message beyond the limit, so that a single long reply does not make the client
        // slow.
        if state.control_bytes() > state.control_bytes_max as usize {
            state.is_slow = true;
        } else {
            state.waiting(&self.backlogs).push_control(bytes);
        }
        state.is_full = true;
        self.wake();
    }

    /// Ends the stream after everything already on the wire. Queued replies are sent if there is
    /// room. If the disconnect is for lack of memory, everything queued is dropped instead.
    pub(crate) fn close(&self, disconnect: &Disconnect) {
        self.part(disconnect);
        if disconnect.reason == Disconnect::OVERLOADED.reason {
            self.wire.discard();
        } else {
            self.send_waiting();
        }
        let mut state = self.state.lock();
        state.is_closed = true;
        if let Some(waiting) = &mut state.waiting {
            waiting.take_control();
        }
        state.tidy();
        self.wire.close(disconnect);
    }

    /// Notes why the connection is about to be closed.
    pub(crate) fn part(&self, disconnect: &Disconnect) {
        if let Some(tracked) = &self.tracked {
            tracked.close(disconnect);
        }
    }

    /// Counts the bytes of a message of the client.
    pub(crate) fn count_received(&self, bytes: usize) {
        if let Some(tracked) = &self.tracked {
            tracked.count_received(bytes);
        }
    }

    fn count_sent(&self, bytes: usize) {
        if let Some(tracked) = &self.tracked {
            tracked.count_sent(bytes);
        }
    }

    /// Tells the client of a gap in a channel, which has this number in the hub, if its protocol
    /// allows it.
    pub(crate) fn tell_gap(&self, (id, channel): (u32, &ChannelName), gap: Gap) {
        let mut notice = Vec::new();
        match self.gap_notice {
            GapNotice::ById(append) => append(id, gap, &mut notice),
            GapNotice::ByName(append) | GapNotice::OnRequest(append) => {
                append(channel, gap, &mut notice);
            }
            GapNotice::None => {}
        }
        if !notice.is_empty() {
            self.wire.send(&Block::new(notice, 1));
            self.wire.flush();
        }
    }

    /// Stops holding data back. The caller must then tell the worker that there is room.
    pub(crate) fn release(&self) {
        self.state.lock().is_held = false;
    }

    /// Waits until events have arrived or the room has run out. For sessions that are tasks.
    pub(crate) async fn changed(&self) {
        match &self.changed {
            Some(changed) => changed.notified().await,
            None => pending().await,
        }
    }

    /// Removes and returns the queued events.
    pub(crate) fn take_events(&self) -> VecDeque<Event> {
        let mut state = self.state.lock();
        let waiting = state.waiting.as_mut();
        let mut events = waiting.map_or_else(VecDeque::new, |it| mem::take(&mut it.events));
        state.tidy();
        if mem::take(&mut state.is_slow) {
            events.push_front(Event::Slow);
        }
        events
    }

    /// Returns whether replies or pushes are queued.
    pub(crate) fn has_waiting(&self) -> bool {
        self.state.lock().has_control()
    }

    /// Returns whether the caller must wait for [`room`](Self::room).
    pub(crate) fn is_full(&self) -> bool {
        self.state.lock().is_full
    }

    /// Waits until there is room, sending queued replies first. Returns `true` if data may follow,
    /// `false` if the client has disconnected.
    pub(crate) async fn room(&self) -> bool {
        std::future::poll_fn(|cx| {
            loop {
                if self.wire.poll_room(cx).is_pending() {
                    return Poll::Pending;
                }
                // Ready without room means that the client has disconnected. Replies to it are
                // dropped.
                let is_gone = self.wire.room() == 0;
                if self.send_waiting() || is_gone {
                    self.state.lock().is_full = false;
                    return Poll::Ready(!is_gone);
                }
            }
        })
        .await
    }

    /// Sends queued replies if there is room. Returns whether data may follow.
    pub(crate) fn take_room(&self) -> bool {
        while self.wire.room() > 0 {
            if self.send_waiting() {
                self.state.lock().is_full = false;
                return true;
            }
        }
        false
    }

    /// Sends queued replies, whether or not the wire has room.
    pub(crate) fn send_all_waiting(&self) {
        let mut state = self.state.lock();
        if let Some(waiting) = &mut state.waiting {
            for bytes in waiting.take_control() {
                self.wire.send(&Block::new(self.counted(bytes), 1));
            }
        }
        state.tidy();
        self.wire.flush();
    }

    /// Returns whether no event waits for the session, and the stream has not ended.
    pub(crate) fn is_quiet(&self) -> bool {
        let state = self.state.lock();
        !state.has_events() && !state.is_slow && !state.is_closed
    }

    /// Returns whether the client is told of gaps.
    pub(crate) const fn tells_gaps(&self) -> bool {
        !matches!(self.gap_notice, GapNotice::None)
    }

    /// Sends queued replies while there is room. Returns whether the queue is empty.
    fn send_waiting(&self) -> bool {
        let mut state = self.state.lock();
        if let Some(waiting) = &mut state.waiting {
            while self.wire.room() > 0
                && let Some(bytes) = waiting.pop_control()
            {
                self.wire.send(&Block::new(self.counted(bytes), 1));
            }
        }
        state.tidy();
        self.wire.flush();
        !state.has_control()
    }

    /// Counts a reply or push until the wire has released it. The wire copies small ones and counts
    /// them by the capacity of its buffer.
    fn counted(&self, bytes: Bytes) -> Bytes {
        if bytes.len() <= COPIED_BYTES_MAX {
            return bytes;
        }
        let _share = self.backlogs.share(bytes.len() as u64);
        Bytes::from_owner(AccountedBytes { bytes, _share })
    }

    fn push(&self, event: Event) {
        let mut state = self.state.lock();
        let events = &mut state.waiting(&self.backlogs).events;
        match events.len() < EVENTS_MAX {
            true => events.push_back(event),
            false => state.is_slow = true,
        }
        self.wake();
    }

    /// Wakes what runs the session.
    fn wake(&self) {
        match &self.changed {
            Some(changed) => changed.notify_one(),
            None => self.wire.wake_session(),
        }
    }
}

/// Bytes in flight to the socket, with their share of the account.
struct AccountedBytes {
    bytes: Bytes,
    _share: Share,
}

impl AsRef<[u8]> for AccountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl State {
    /// Returns where something can wait; replies and pushes are charged to `backlogs`.
    fn waiting(&mut self, backlogs: &Account) -> &mut Waiting {
        self.waiting.get_or_insert_with(|| {
            Box::new(Waiting {
                control: VecDeque::new(),
                control_bytes: 0,
                share: backlogs.share(0),
                events: VecDeque::new(),
                command_bytes: 0,
            })
        })
    }

    fn has_control(&self) -> bool {
        let waiting = self.waiting.as_ref();
        waiting.is_some_and(|waiting| !waiting.control.is_empty())
    }

    fn has_events(&self) -> bool {
        let waiting = self.waiting.as_ref();
        waiting.is_some_and(|waiting| !waiting.events.is_empty())
    }

    fn command_bytes(&self) -> usize {
        let waiting = self.waiting.as_ref();
        waiting.map_or(0, |waiting| waiting.command_bytes)
    }

    fn control_bytes(&self) -> usize {
        let waiting = self.waiting.as_ref();
        waiting.map_or(0, |waiting| waiting.control_bytes)
    }

    /// Frees memory if nothing waits any more, and updates the account otherwise.
    fn tidy(&mut self) {
        if !self.has_control() && !self.has_events() && self.command_bytes() == 0 {
            self.waiting = None;
        }
        if let Some(waiting) = &mut self.waiting {
            waiting.share.set(waiting.control_bytes as u64);
        }
    }
}

impl Waiting {
    fn push_control(&mut self, bytes: Bytes) {
        self.control_bytes += bytes.len();
        self.control.push_back(bytes);
        self.share.set(self.control_bytes as u64);
    }

    fn pop_control(&mut self) -> Option<Bytes> {
        let bytes = self.control.pop_front()?;
        self.control_bytes -= bytes.len();
        Some(bytes)
    }

    fn take_control(&mut self) -> VecDeque<Bytes> {
        self.control_bytes = 0;
        mem::take(&mut self.control)
    }
}

impl Outlet for ClientOutlet {
    fn has_room(&self) -> bool {
        let mut state = self.state.lock();
        if state.is_held {
            return false;
        }
        let has_room = !state.has_control() && self.wire.room() > 0;
        if !has_room && !state.is_full {
            state.is_full = true;
            self.wake();
        }
        has_room
    }

    fn transmit(&self, transmit: Transmit) {
        match transmit {
            Transmit::Block { block, .. } => {
                self.count_sent(block.bytes().len());
                self.wire.send(&block);
            }
            Transmit::Gap {
                channel,
                channel_id,
                gap,
                ..
            } => {
                // Sent in its place among the data.
                self.tell_gap((channel_id, &channel), gap);
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

    fn tracked(&self) -> Option<&Tracked> {
        self.tracked.as_deref()
    }

    fn pending_bytes(&self) -> usize {
        self.wire.queued_bytes() + self.state.lock().control_bytes()
    }

    fn received_bytes(&self) -> usize {
        self.wire.received_bytes() + self.state.lock().command_bytes()
    }
}

impl SessionOutlet for ClientOutlet {
    fn hold(&self) {
        self.state.lock().is_held = true;
    }

    fn keep_commands(&self, bytes: usize) {
        let mut state = self.state.lock();
        state.waiting(&self.backlogs).command_bytes = bytes;
        state.tidy();
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
