//! The state that the handles of a connection share with its driver.

use std::{
    future::{Future, poll_fn},
    io,
    pin::{Pin, pin},
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll, Waker, ready},
};

use linerate_proto::{
    Endpoint, Engine, ProtocolError, Role, SendError,
    engine::{Initiator, State},
};

use tokio::task::unconstrained;

use super::{
    Side,
    backlog::Backlog,
    driver_state::DriverState,
    inbox::{Control, Inbox, Mode, Parsed, Received},
    outbox::Outbox,
    readiness::Readiness,
    round_trips::RoundTrips,
};
use crate::{
    Batch, CloseFrame, Closed, Error, Frames, Options, Result, counters,
    memory::Counted,
    parts::{Parts, PartsError, RawStream},
    pool::{READ_BYTES, ReadSize, Recycled},
    transport::Transport,
};

/// The state that the handles and the driver share.
pub(crate) struct Connection {
    pub(super) engine: Engine<Side>,
    /// The socket; `None` once the connection is over.
    pub(super) io: Option<Transport>,
    pub(super) options: Arc<Options>,
    pub(super) inbox: Inbox,
    pub(super) outbox: Recycled<Outbox>,
    pub(super) receiver: Receiver,
    pub(super) driver: DriverState,
    pub(super) lazy: Option<Box<LazyState>>,
    /// The number of handles that the application holds.
    pub(super) handles: u32,
    /// True if our side of the stream has ended.
    pub(super) is_shut_down: bool,
    /// How many of the next reads are long.
    pub(super) long_reads: u8,
    pub(super) counted: Counted,
}

/// The state of the application's receiver: which task is waiting for a message, if any.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Receiver {
    /// No task is waiting.
    Absent,
    /// The application has dropped the receiver, so that messages are discarded.
    Gone,
    /// The driver's task, as for the handler of a server.
    InDriver,
    /// Another task, whose waker is in [`LazyState`].
    Other,
}

/// State that an idle connection does not need.
#[derive(Default)]
pub(super) struct LazyState {
    pub(super) receiver: Option<Waker>,
    /// `Some` once a task other than the driver's has received.
    pub(super) readiness: Option<Arc<Readiness>>,
    pub(super) waiting: Vec<(WaitReason, Waker)>,
    /// The error that the receiver has not been told yet.
    pub(super) error: Option<Error>,
    /// The peer's Close frame.
    pub(super) received_close: Option<Box<CloseFrame>>,
    /// True if both sides have sent their Close frames, or the stream has ended.
    pub(super) has_ended: bool,
    pub(super) subprotocol: Option<Box<str>>,
    pub(super) backlog: Backlog,
    pub(super) round_trips: RoundTrips,
}

/// How many reads are long after one of [`READ_BYTES`] or more. A connection with several long
/// messages in flight may alternate between long and short reads.
const LONG_READS: u8 = 4;

/// What a task is waiting for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum WaitReason {
    /// The end of the closing handshake.
    Closed,
    /// A message, or the end of the input.
    Input,
    /// Room in the outbox, or the end of the connection.
    Room,
    /// The moment when everything has been written.
    Written,
}

impl Connection {
    pub(crate) const fn engine(&self) -> &Engine<Side> {
        &self.engine
    }

    pub(crate) fn subprotocol(&self) -> Option<&str> {
        self.lazy.as_ref()?.subprotocol.as_deref()
    }

    /// Returns how the connection ended; `None` while the peer may still send messages.
    pub(crate) fn closed(&self) -> Option<Closed> {
        if !self.is_input_over() {
            return None;
        }
        let received = self
            .lazy
            .as_ref()
            .and_then(|lazy| lazy.received_close.clone());
        let sent = self.engine.sent_close();
        let sent = sent.map(|(frame, initiator)| (frame.into(), initiator));
        Some(Closed::new(received.map(|frame| *frame), sent))
    }

    /// Returns whether both sides have sent their Close frames, or the stream has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.lazy.as_ref().is_some_and(|lazy| lazy.has_ended)
    }

    pub(super) fn lazy_mut(&mut self) -> &mut LazyState {
        self.lazy.get_or_insert_default()
    }

    /// Receives what `next` finds in the input; the socket wakes `reader`.
    #[inline]
    pub(super) fn poll_receive<T>(
        &mut self,
        cx: &mut Context<'_>,
        reader: &Waker,
        mut next: impl FnMut(&mut Self) -> Result<Parsed<T>, Box<ProtocolError>>,
    ) -> Poll<Received<T>> {
        self.receiver = Receiver::Absent;
        loop {
            if self.inbox.turn.is_over() {
                self.inbox.turn.yield_to_others(cx);
                break;
            }
            let next = next(self);
            self.count_messages();
            match next {
                Ok(Parsed::Item(item)) => return Poll::Ready(Ok(Some(item))),
                Ok(Parsed::Nothing) => {}
                Ok(Parsed::Control(control)) => {
                    self.handle_control(control);
                    continue;
                }
                Err(error) => self.fail((*error).into()),
            }
            if self.is_input_over() {
                let error = self.lazy.as_mut().and_then(|lazy| lazy.error.take());
                return Poll::Ready(error.map_or(Ok(None), |error| Err(Box::new(error))));
            }
            if self.inbox.turn.is_over() {
                continue;
            }
            let size = self.read_size();
            if self
                .poll_read(&mut Context::from_waker(reader), size)
                .is_pending()
            {
                self.inbox.turn.restart();
                break;
            }
            self.inbox.turn.count_read(size);
        }
        self.receiver = match self.driver.waker() {
            Some(driver) if driver.will_wake(cx.waker()) => Receiver::InDriver,
            _ => {
                self.lazy_mut().receiver = Some(cx.waker().clone());
                Receiver::Other
            }
        };
        Poll::Pending
    }

    /// Returns the next message or chunk in the input.
    pub(super) fn next(&mut self, mode: Mode) -> Result<Parsed, Box<ProtocolError>> {
        self.inbox.next(&mut self.engine, mode)
    }

    /// Returns all messages in the input.
    pub(super) fn next_batch(&mut self) -> Result<Parsed<Batch>, Box<ProtocolError>> {
        let Self {
            engine,
            inbox,
            lazy,
            options,
            outbox,
            ..
        } = self;
        let bytes_max = options.recv_queue_bytes_max;
        inbox.next_batch(engine, bytes_max, |engine, control| {
            handle_control(control, engine, outbox, lazy);
        })
    }

    /// Handles a control frame.
    pub(super) fn handle_control(&mut self, control: Control) {
        handle_control(control, &mut self.engine, &mut self.outbox, &mut self.lazy);
    }

    /// Returns whether the driver has anything to do after a message was received; if not, the
    /// socket wakes a task when there is something to do.
    pub(super) fn is_anything_left(&mut self, reader: &Waker) -> bool {
        if !self.inbox.is_empty() || !self.outbox.is_empty() || self.engine.wants_transmit() {
            return true;
        }
        let size = self.read_size();
        (self.poll_read(&mut Context::from_waker(reader), size)).is_ready()
    }

    /// Updates the wakers in the connection's [`Readiness`], if it has one.
    pub(super) fn update_readiness(&self) {
        if let Some(lazy) = &self.lazy
            && let Some(readiness) = &lazy.readiness
        {
            let waits = self.receiver == Receiver::Other;
            let receiver = lazy.receiver.as_ref().filter(|_| waits);
            readiness.set(receiver, self.driver.waker());
        }
    }

    /// Returns how much to read for an application that receives.
    fn read_size(&self) -> ReadSize {
        if self.long_reads > 0 || self.inbox.reads_in_place(&self.engine) {
            ReadSize::Long
        } else {
            ReadSize::Usual
        }
    }

    /// Reads once; the end of the stream or an error ends the connection.
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>, size: ReadSize) -> Poll<()> {
        let Some(io) = &mut self.io else {
            return Poll::Ready(());
        };
        let is_in_place = self.inbox.reads_in_place(&self.engine);
        let (inbox, engine) = (&mut self.inbox, &mut self.engine);
        match ready!(inbox.poll_read(engine, Pin::new(io), cx, size)) {
            Ok(0) => self.end(Some(Error::Abnormal)),
            Ok(bytes) => {
                self.long_reads = if is_in_place {
                    0
                } else if bytes >= READ_BYTES {
                    LONG_READS
                } else {
                    self.long_reads.saturating_sub(1)
                };
                if let Some(counters) = &self.options.counters {
                    counters::add(&counters.bytes_received, bytes as u64);
                }
            }
            Err(error) => self.end(Some(error.into())),
        }
        Poll::Ready(())
    }

    /// Queues shared frames; a client sends its own masked copies.
    pub(super) fn push_frames(&mut self, frames: &Frames) -> Result<(), SendError> {
        match self.engine.endpoint().role() {
            Role::Server => self.outbox.push_frames(&mut self.engine, frames)?,
            Role::Client => {
                for (kind, payload) in frames.iter() {
                    self.outbox.push_copy(&mut self.engine, kind, payload)?;
                }
            }
        }
        if let Some(counters) = &self.options.counters {
            counters::add(&counters.messages_sent, frames.messages());
        }
        Ok(())
    }

    pub(super) fn is_input_over(&self) -> bool {
        self.engine.is_input_over() || self.io.is_none()
    }

    pub(super) fn is_full(&self) -> bool {
        self.outbox.len() >= self.options.send_queue_bytes_max.max(1)
    }

    /// Writes as much as the socket accepts; pending if anything is left, which the driver then
    /// writes.
    pub(super) fn write_now(&mut self, cx: &mut Context<'_>, is_driver_active: bool) -> Poll<()> {
        let written = self.poll_write(cx);
        match written {
            Poll::Ready(Ok(())) if is_driver_active => {}
            Poll::Ready(Ok(())) => self.outbox.release(),
            Poll::Ready(Err(error)) => self.end(Some(error.into())),
            // An active driver tries again by itself; waking it would make it loop forever.
            Poll::Pending if is_driver_active => return Poll::Pending,
            Poll::Pending => {
                self.driver.wake();
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }

    /// Writes as much as the socket accepts, ignoring tokio's cooperative budget. A task that sends
    /// to thousands of connections would exhaust the budget after 128 writes, and every further
    /// write would be left to a driver.
    pub(super) fn write_at_once(&mut self) {
        let write = poll_fn(|cx| {
            _ = self.write_now(cx, false);
            Poll::Ready(())
        });
        _ = pin!(unconstrained(write)).poll(&mut Context::from_waker(Waker::noop()));
    }

    /// Writes everything that is queued or waiting, with control frames at the next frame boundary.
    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            if self.engine.wants_transmit() || self.outbox.is_held() {
                self.outbox.take_control(&mut self.engine);
            }
            self.refill_outbox();
            let Some(io) = &mut self.io else {
                return Poll::Ready(Ok(()));
            };
            if !self.outbox.is_held() {
                return Poll::Ready(Ok(()));
            }
            if self.outbox.is_empty() {
                return self.outbox.poll_flush(Pin::new(io), cx);
            }
            let bytes = ready!(self.outbox.poll_write(Pin::new(io), cx))?;
            if let Some(counters) = &self.options.counters {
                counters::add(&counters.bytes_sent, bytes as u64);
            }
        }
    }

    /// Fails the connection because of an error or the silence of the peer; the Close frame is
    /// still sent.
    pub(super) fn fail(&mut self, error: Error) {
        let lazy = self.lazy_mut();
        lazy.error.get_or_insert(error);
        lazy.round_trips = RoundTrips::default();
        self.wake_all();
    }

    /// Ends the connection now: closes the socket and wakes all waiting tasks. The receiver gets
    /// the `error`, unless the input has already ended.
    pub(super) fn end(&mut self, error: Option<Error>) {
        let error = error.filter(|_| !self.engine.is_input_over());
        self.engine.handle_eof();
        let lazy = self.lazy_mut();
        lazy.has_ended = true;
        lazy.backlog.clear();
        lazy.round_trips = RoundTrips::default();
        if let Some(error) = error {
            lazy.error.get_or_insert(error);
        }
        self.outbox = Recycled::default();
        if self.io.take().is_some()
            && let Some(counters) = &self.options.counters
        {
            counters.connections.fetch_sub(1, Ordering::Relaxed);
        }
        self.wake_all();
    }

    pub(super) fn take_parts(&mut self) -> Result<Parts, PartsError> {
        if self.engine.state() != State::Open {
            return Err(PartsError::Closed);
        }
        if self.engine.is_message_in_progress() {
            return Err(PartsError::MessageInProgress);
        }
        let Some(io) = self.io.take() else {
            return Err(PartsError::Closed);
        };
        let Some(unread) = self.inbox.take_unread(&self.engine) else {
            self.io = Some(io);
            return Err(PartsError::Compressed);
        };
        self.outbox.take_control(&mut self.engine);
        let unsent = self.outbox.take_unsent();
        if let Some(counters) = &self.options.counters {
            counters.connections.fetch_sub(1, Ordering::Relaxed);
        }
        let subprotocol = self.subprotocol().map(Into::into);
        let role = self.engine.endpoint().role();
        self.end(None);
        Ok(Parts {
            role,
            stream: RawStream(io),
            unread,
            unsent,
            subprotocol,
            #[cfg(feature = "deflate")]
            deflate: None,
        })
    }

    /// Recycles the queues if they are empty, so that an idle connection has none.
    #[inline]
    pub(super) fn release_queues(&mut self) {
        self.inbox.release();
        self.outbox.release();
    }

    /// Charges the memory of the connection to the accounts.
    pub(super) fn count_memory(&mut self) {
        let is_idle = !self.inbox.is_held() && !self.outbox.is_held() && self.lazy.is_none();
        if is_idle
            && self.counted == Counted::default()
            && matches!(self.io, Some(Transport::Tcp(_)))
        {
            return;
        }
        let messages = self.received_bytes();
        let waiting = self.lazy.as_ref().map_or(0, |lazy| lazy.backlog.bytes());
        let backlog = self.outbox.capacity() + waiting;
        self.counted.set(&self.options.accounts, backlog, messages);
    }

    /// Returns the memory of all input that the application has not taken, in bytes.
    pub(super) fn received_bytes(&self) -> usize {
        let held = self.io.as_ref().map_or(0, Transport::held_bytes);
        self.inbox.capacity() + held
    }

    pub(super) fn count_messages(&mut self) {
        let messages = self.inbox.take_message_count();
        if messages > 0
            && let Some(counters) = &self.options.counters
        {
            counters::add(&counters.messages_received, messages);
        }
    }

    /// Returns why nothing can be sent: the peer has closed the connection, or it ended otherwise.
    pub(super) fn not_open(&self) -> Error {
        match self.closed() {
            Some(closed) if closed.initiator == Some(Initiator::Peer) => Error::PeerClosed {
                code: closed.code,
                reason: closed.reason().into(),
            },
            _ => SendError::Closed.into(),
        }
    }

    /// Returns an error, unless the connection was closed cleanly.
    pub(super) fn lost(&self) -> Result<()> {
        match self.closed() {
            Some(Closed { clean: true, .. }) => Ok(()),
            _ => Err(self.not_open()),
        }
    }

    pub(super) fn wait(&mut self, until: WaitReason, cx: &mut Context<'_>) {
        let waiting = &mut self.lazy_mut().waiting;
        let is_known =
            |(known, waker): &(WaitReason, Waker)| *known == until && waker.will_wake(cx.waker());
        if !waiting.iter().any(is_known) {
            waiting.push((until, cx.waker().clone()));
        }
    }

    /// Wakes the tasks that wait for an event for which `has_come` returns `true`.
    pub(super) fn wake_waiting(&mut self, has_come: impl Fn(WaitReason) -> bool) {
        if let Some(lazy) = &mut self.lazy {
            lazy.waiting.retain(|(until, waker)| {
                let wake = has_come(*until);
                if wake {
                    waker.wake_by_ref();
                }
                !wake
            });
        }
    }

    /// Records that both sides have sent their Close frames.
    pub(super) fn note_closed(&mut self) {
        if !self.has_ended() {
            self.engine.handle_eof();
            let lazy = self.lazy_mut();
            lazy.has_ended = true;
            lazy.round_trips = RoundTrips::default();
            self.wake_waiting(|_| true);
        }
    }

    pub(super) fn wake_receiver(&mut self) {
        match self.receiver {
            Receiver::Absent | Receiver::Gone => {}
            Receiver::InDriver => {
                self.receiver = Receiver::Absent;
                self.driver.wake();
            }
            Receiver::Other => {
                self.receiver = Receiver::Absent;
                if let Some(waker) = self.lazy_mut().receiver.take() {
                    waker.wake();
                }
            }
        }
        self.wake_waiting(|until| until == WaitReason::Input);
    }

    fn wake_all(&mut self) {
        self.wake_receiver();
        self.wake_waiting(|_| true);
        self.driver.wake();
    }
}

#[cold]
fn handle_control(
    control: Control,
    engine: &mut Engine<Side>,
    outbox: &mut Outbox,
    lazy: &mut Option<Box<LazyState>>,
) {
    match control {
        Control::Close(frame) => lazy.get_or_insert_default().received_close = Some(frame),
        Control::Ping => outbox.take_control(engine),
        Control::Pong(mark) => {
            if let Some(lazy) = lazy {
                lazy.round_trips.handle_pong(mark);
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.io.is_some() {
            self.end(None);
        }
        self.counted.set(&self.options.accounts, 0, 0);
    }
}
