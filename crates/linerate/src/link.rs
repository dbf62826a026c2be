//! One connection: its socket, engine and queues, shared by the application's handles and the
//! driver.
//!
//! The driver is the one task that is responsible for the connection. On a server, it is the task
//! that also runs the handler, so that a reply does not have to hop to another task; on a client,
//! it runs in the background. The receiver's task reads from the socket. The driver writes, or the
//! application's task does if the driver is not about to run.

mod alarm;
mod backlog;
mod connection;
mod driver;
mod driver_state;
mod for_each;
mod futures;
mod inbox;
mod offer;
mod opening;
mod outbox;
mod readiness;
mod registry;
mod round_trips;
#[cfg(test)]
mod tests;
mod tick;
mod turn;

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
};

#[cfg(feature = "deflate")]
use linerate_proto::deflate::{Agreement, ThreadPool};
use linerate_proto::{
    CloseCode, Endpoint, Engine, MaskKey, ProtocolError, Role, SendError,
    engine::State,
    handshake::{Acceptance, Negotiated},
};

use crate::{
    Batch, Closed, Frames, Message, Result, TrySendError, clock, counters,
    describe::describe,
    info::ConnectionInfo,
    memory::Counted,
    options::Settings,
    parts::{Parts, PartsError, RawStream},
    pool::Recycled,
    transport::Transport,
};

pub(crate) use alarm::Alarm;
pub use backlog::SlowMember;
pub(crate) use backlog::{Membership, Notice, Policy};
pub(crate) use connection::Connection;
use connection::{LazyState, Receiver, WaitReason};
pub(crate) use driver::Driver;
use driver_state::DriverState;
pub(crate) use for_each::ForEach;
pub(crate) use futures::{
    Recv, SendMessage, recv_batch, round_trip, send_ping, send_replies, send_uncompressed,
};
pub(crate) use inbox::{Chunk, End, Mode, Received};
use inbox::{Inbox, Parsed};
pub(crate) use offer::Offered;
pub(crate) use opening::{Answer, Answered, OpeningDriver};
use outbox::Outbox;
pub(crate) use registry::Connections;
#[cfg(any(feature = "http2", feature = "http3"))]
pub(crate) use registry::Slot;

/// The role of a connection, known at run time, with masking keys from the thread's generator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side(pub(crate) Role);

impl Endpoint for Side {
    fn role(&self) -> Role {
        self.0
    }

    fn next_mask_key(&mut self) -> Option<MaskKey> {
        match self.0 {
            Role::Client => Some(MaskKey(rand::random())),
            Role::Server => None,
        }
    }
}

/// The subprotocol and the extensions that were negotiated in the opening handshake.
#[derive(Clone, Debug, Default)]
pub(crate) struct HandshakeResult {
    subprotocol: Option<Box<str>>,
    #[cfg(feature = "deflate")]
    pub(crate) deflate: Option<Agreement>,
}

impl From<&Acceptance<'_>> for HandshakeResult {
    fn from(acceptance: &Acceptance<'_>) -> Self {
        Self {
            subprotocol: acceptance.subprotocol().map(Into::into),
            #[cfg(feature = "deflate")]
            deflate: acceptance.deflate(),
        }
    }
}

impl From<&Negotiated> for HandshakeResult {
    fn from(negotiated: &Negotiated) -> Self {
        Self {
            subprotocol: negotiated.subprotocol().map(Into::into),
            #[cfg(feature = "deflate")]
            deflate: negotiated.deflate(),
        }
    }
}

impl From<&mut Parts> for HandshakeResult {
    fn from(parts: &mut Parts) -> Self {
        Self {
            subprotocol: parts.subprotocol.take().map(Into::into),
            #[cfg(feature = "deflate")]
            deflate: parts.deflate,
        }
    }
}

pub(crate) struct Link {
    /// True if the driver will process the connection as soon as the running code yields.
    driver_active: AtomicBool,
    connection: Mutex<Connection>,
}

impl Link {
    /// Creates a connection with one handle; `leftover` holds the bytes that were read after the
    /// handshake.
    pub(crate) fn new(
        io: Transport,
        role: Role,
        settings: &Settings,
        leftover: &[u8],
        agreed: HandshakeResult,
    ) -> Arc<Self> {
        if let Some(counters) = &settings.options.counters {
            counters::add(&counters.connections, 1);
            counters::add(&counters.connections_total, 1);
        }
        let engine = Engine::new(Side(role), settings.config.clone(), clock::now());
        #[cfg(feature = "deflate")]
        let engine = match (agreed.deflate, &settings.options.deflate) {
            (Some(agreement), Some(options)) => {
                engine.with_deflate(agreement, options, &ThreadPool)
            }
            _ => engine,
        };
        Arc::new(Self {
            driver_active: AtomicBool::new(false),
            connection: Mutex::new(Connection {
                engine,
                io: Some(io),
                options: settings.options.clone(),
                inbox: Inbox::new(leftover, settings.streaming.clone()),
                outbox: Recycled::default(),
                receiver: Receiver::Absent,
                driver: DriverState::default(),
                lazy: agreed.subprotocol.map(|subprotocol| {
                    Box::new(LazyState {
                        subprotocol: Some(subprotocol),
                        ..LazyState::default()
                    })
                }),
                handles: 1,
                is_shut_down: false,
                long_reads: 0,
                counted: Counted::default(),
            }),
        })
    }

    /// Creates a connection with one handle from its parts.
    pub(crate) fn from_parts(mut parts: Parts, settings: &Settings) -> Arc<Self> {
        let agreed = HandshakeResult::from(&mut parts);
        let RawStream(io) = parts.stream;
        let io = io.rewind(Vec::new(), parts.unsent);
        let link = Self::new(io, parts.role, settings, &parts.unread, agreed);
        *link.lock().outbox = Outbox::unflushed();
        link
    }

    /// Returns what is known about the stream, or `None` once the connection is over.
    pub(crate) fn info(&self) -> Option<ConnectionInfo> {
        self.lock().io.as_ref().map(describe)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Discards queued frames of which no part has been written.
    pub(crate) fn discard_unsent(&self) {
        let mut connection = self.lock();
        connection.outbox.discard_unbegun();
        connection.driver.wake();
    }

    fn is_driver_active(&self) -> bool {
        self.driver_active.load(Ordering::Relaxed)
    }

    /// Receives the next message, or the next chunk of one.
    pub(crate) fn poll_receive(&self, cx: &mut Context<'_>, mode: Mode) -> Poll<Received> {
        self.poll_receive_with(cx, |connection| connection.next(mode))
    }

    /// Receives all messages that have arrived.
    pub(crate) fn poll_receive_batch(&self, cx: &mut Context<'_>) -> Poll<Received<Batch>> {
        self.poll_receive_with(cx, Connection::next_batch)
    }

    /// Puts the messages back that were not taken from a batch.
    pub(crate) fn put_back(&self, batch: &mut Batch) {
        let mut connection = self.lock();
        connection.inbox.put_back(batch);
        connection.driver.wake();
    }

    fn poll_receive_with<T>(
        &self,
        cx: &mut Context<'_>,
        next: impl FnMut(&mut Connection) -> Result<Parsed<T>, Box<ProtocolError>>,
    ) -> Poll<Received<T>> {
        let mut connection = self.lock();
        if self.is_driver_active() {
            return connection.poll_receive(cx, cx.waker(), next);
        }
        connection.inbox.let_time_pass();
        let readiness = connection
            .lazy_mut()
            .readiness
            .get_or_insert_default()
            .clone();
        // This must happen before reading from the socket, which may wake a task from then on.
        readiness.set(Some(cx.waker()), connection.driver.waker());
        let reader = Waker::from(readiness);
        let received = connection.poll_receive(cx, &reader, next);
        connection.update_readiness();
        if received.is_pending() {
            _ = connection.write_now(cx, false);
            connection.release_queues();
        } else if connection.is_anything_left(&reader) {
            connection.driver.wake();
        }
        received
    }

    /// Receives the next message for a caller that may never poll again: in the meantime, the
    /// driver keeps reading.
    pub(crate) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Result<Option<Message>>> {
        let received = self.poll_receive(cx, Mode::Messages);
        if received.is_pending() {
            self.lock().wait(WaitReason::Input, cx);
            self.cancel_receive();
        }
        received.map(into_message)
    }

    /// Waits until there is room, queues with `append`, and then writes or wakes the driver to do
    /// so. `append` returns how many messages it has completed.
    pub(crate) fn poll_queue(
        &self,
        cx: &mut Context<'_>,
        urgency: Urgency,
        append: impl FnOnce(&mut Outbox, &mut Engine<Side>) -> Result<u64>,
    ) -> Poll<Result<()>> {
        self.poll_queue_with(cx, urgency, |connection| {
            append(&mut connection.outbox, &mut connection.engine)
        })
    }

    /// Like [`poll_queue`](Self::poll_queue), for an `append` that needs more of the connection.
    fn poll_queue_with(
        &self,
        cx: &mut Context<'_>,
        urgency: Urgency,
        append: impl FnOnce(&mut Connection) -> Result<u64>,
    ) -> Poll<Result<()>> {
        let mut guard = self.lock();
        let connection = &mut *guard;
        let is_driver_active = self.is_driver_active();
        if connection.is_full() && connection.engine.state() == State::Open {
            _ = connection.write_now(cx, is_driver_active);
        }
        if connection.engine.state() != State::Open {
            return Poll::Ready(Err(connection.not_open()));
        }
        if connection.is_full() {
            connection.wait(WaitReason::Room, cx);
            return Poll::Pending;
        }
        let messages = append(connection)?;
        if let Some(counters) = &connection.options.counters {
            counters::add(&counters.messages_sent, messages);
        }
        let is_corked = is_driver_active || !connection.inbox.is_empty();
        if connection.is_full() || urgency == Urgency::Now && !is_corked {
            _ = connection.write_now(cx, is_driver_active);
        } else if !is_driver_active {
            connection.driver.wake();
        }
        Poll::Ready(Ok(()))
    }

    /// Queues shared frames, unless the queue is full or the connection is not open.
    pub(crate) fn try_queue_frames<'f>(
        &self,
        frames: impl IntoIterator<Item = &'f Frames>,
    ) -> Result<(), TrySendError> {
        let mut connection = self.lock();
        if connection.engine.state() != State::Open {
            return Err(SendError::Closed.into());
        }
        if connection.is_full() {
            return Err(TrySendError::Full {
                bytes: connection.outbox.len(),
                bytes_max: connection.options.send_queue_bytes_max,
            });
        }
        for frames in frames {
            connection.push_frames(frames)?;
        }
        Ok(())
    }

    /// Writes as much of the queue as the socket accepts, and leaves the rest to the driver.
    pub(crate) fn try_flush(&self) {
        let mut connection = self.lock();
        if self.is_driver_active() || connection.outbox.is_empty() {
            return;
        }
        if connection.inbox.is_empty() {
            connection.write_at_once();
        } else {
            connection.driver.wake();
        }
    }

    /// Waits until there is room in the outbox.
    pub(crate) fn poll_room(&self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let mut connection = self.lock();
        if connection.engine.state() != State::Open {
            return Poll::Ready(Err(connection.not_open()));
        }
        if !connection.is_full() {
            return Poll::Ready(Ok(()));
        }
        connection.wait(WaitReason::Room, cx);
        Poll::Pending
    }

    /// Returns how many bytes the outbox accepts before it is full.
    pub(crate) fn room(&self) -> usize {
        let connection = self.lock();
        if connection.engine.state() != State::Open {
            return 0;
        }
        let bytes_max = connection.options.send_queue_bytes_max.max(1);
        bytes_max.saturating_sub(connection.outbox.len())
    }

    /// Returns how many bytes may be queued for the socket before a send has to wait.
    pub(crate) fn send_queue_bytes_max(&self) -> usize {
        self.lock().options.send_queue_bytes_max.max(1)
    }

    /// Returns how many bytes are queued for the socket.
    pub(crate) fn queued_bytes(&self) -> usize {
        self.lock().outbox.len()
    }

    /// Returns how many bytes of memory hold input that the application has not taken.
    pub(crate) fn received_bytes(&self) -> usize {
        self.lock().received_bytes()
    }

    /// Queues a message even if there is no room, for a caller that has checked already.
    pub(crate) fn queue(&self, message: Message) -> Result<()> {
        let mut guard = self.lock();
        let connection = &mut *guard;
        if connection.io.is_none() {
            return Err(connection.not_open());
        }
        connection.outbox.push(&mut connection.engine, message)?;
        if let Some(counters) = &connection.options.counters {
            counters::add(&counters.messages_sent, 1);
        }
        if !self.is_driver_active() {
            connection.driver.wake();
        }
        Ok(())
    }

    /// Writes everything that is queued.
    pub(crate) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let mut connection = self.lock();
        let written = connection.write_now(cx, self.is_driver_active());
        if connection.io.is_none() {
            return Poll::Ready(connection.lost());
        }
        if written.is_pending() {
            connection.wait(WaitReason::Written, cx);
        }
        written.map(Ok)
    }

    /// Queues our Close frame, unless it was queued already.
    pub(crate) fn start_close(&self, code: CloseCode, reason: &str) -> Result<()> {
        let mut connection = self.lock();
        connection.engine.close(code, reason, clock::now())?;
        if !self.is_driver_active() {
            connection.driver.wake();
        }
        Ok(())
    }

    /// Waits for the end of the closing handshake.
    pub(crate) fn poll_closed(&self, cx: &mut Context<'_>) -> Poll<Closed> {
        let mut connection = self.lock();
        if connection.has_ended()
            && let Some(closed) = connection.closed()
        {
            return Poll::Ready(closed);
        }
        connection.wait(WaitReason::Closed, cx);
        Poll::Pending
    }

    /// Returns the largest message that the application receives unless it chooses another limit.
    pub(crate) fn message_bytes_max(&self) -> u64 {
        self.lock().options.config.limits.message_bytes_max
    }

    /// Fails the connection because of a message that the application does not want.
    pub(crate) fn fail(&self, error: &ProtocolError) {
        let mut guard = self.lock();
        let connection = &mut *guard;
        connection.inbox.fail(&mut connection.engine, error);
        connection.driver.wake();
    }

    /// Unregisters the receiver, because its future was dropped.
    pub(crate) fn cancel_receive(&self) {
        let mut connection = self.lock();
        connection.receiver = Receiver::Absent;
        connection.update_readiness();
        if !self.is_driver_active() {
            connection.driver.wake();
        }
    }

    /// Takes the connection apart; for all other handles, the connection has ended.
    pub(crate) fn take_parts(&self) -> Result<Parts, PartsError> {
        self.lock().take_parts()
    }

    pub(crate) fn add_handle(&self) {
        self.lock().handles += 1;
    }

    /// Drops a handle; the last one closes the connection.
    pub(crate) fn drop_handle(&self, is_receiver: bool) {
        let mut connection = self.lock();
        connection.handles -= 1;
        if is_receiver {
            connection.receiver = Receiver::Gone;
        }
        if connection.handles == 0 || is_receiver {
            connection.driver.wake();
        }
    }
}

/// Returns what an application gets if it receives whole messages.
pub(crate) fn into_message(received: Received) -> Result<Option<Message>> {
    match received {
        Ok(chunk) => Ok(chunk.map(|chunk| chunk.message)),
        Err(error) => Err(*error),
    }
}

/// How soon a message should reach the socket.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Urgency {
    /// Soon: the driver writes it together with everything else that is queued by then.
    Gather,
    /// Before the call returns, unless more input is waiting to be answered.
    Now,
}

// An idle connection takes at most 256 bytes: the link and the two counters of its `Arc`. The
// driver's task, the timer of the server and tokio's state of the socket come in addition.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
const _: () = assert!(size_of::<Link>() <= 240);
