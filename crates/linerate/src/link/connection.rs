//! What the handles of a connection and its driver share.

use std::{
    future::{Future, poll_fn},
    io,
    pin::{Pin, pin},
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll, Waker, ready},
};

use linerate_proto::{
    Endpoint, Engine, Role, SendError,
    engine::{Closed, State},
};

use tokio::task::unconstrained;

use super::{
    Side,
    alarm::Tick,
    inbox::{Inbox, Mode, Piece},
    outbox::Outbox,
    readiness::Readiness,
    transport::Transport,
};
use crate::{
    Error, Frames, Options, Result, counters,
    memory::Counted,
    parts::{Parts, PartsError, RawStream},
};

/// What the handles and the driver share.
pub(crate) struct Connection {
    pub(super) engine: Engine<Side>,
    /// The socket, until the connection is over.
    pub(super) io: Option<Transport>,
    pub(super) options: Arc<Options>,
    pub(super) inbox: Inbox,
    pub(super) outbox: Outbox,
    pub(super) receiver: Receiver,
    pub(super) driver: Option<Waker>,
    pub(super) aside: Option<Box<Aside>>,
    /// The tick for which a shared alarm is set.
    pub(super) alarm_set: Option<Tick>,
    pub(super) alarm_rang: bool,
    /// Handles that the application holds.
    pub(super) handles: u32,
    pub(super) receiver_gone: bool,
    /// Whether the driver was woken and has not run since.
    pub(super) driver_notified: bool,
    pub(super) stream_shut_down: bool,
    /// Whether the driver has no handler to run, or none any more.
    pub(super) handler_done: bool,
    /// Reads since the receiver last had to wait.
    pub(super) reads_in_a_row: u8,
    pub(super) counted: Counted,
}

/// Whether somebody waits for a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Receiver {
    /// Nobody does.
    Absent,
    /// Somebody whom the driver's waker wakes does, as the handler of a server.
    InDriver,
    /// Somebody whose waker stands aside does.
    Other,
}

/// What an idle connection does without.
#[derive(Default)]
pub(super) struct Aside {
    pub(super) receiver: Option<Waker>,
    /// Exists once somebody has received in another task than the driver's.
    pub(super) readiness: Option<Arc<Readiness>>,
    pub(super) waiting: Vec<(Until, Waker)>,
    /// What the receiver is still to be told.
    pub(super) error: Option<Error>,
    pub(super) closed: Option<Closed>,
    pub(super) close_reason: Option<Box<str>>,
    pub(super) subprotocol: Option<Box<str>>,
}

/// After so many reads in a row the receiver yields, so that other connections have their turn.
pub(super) const READS_IN_A_ROW_MAX: u8 = 16;

/// What somebody waits for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Until {
    /// The end of the closing handshake.
    Closed,
    /// A message, or the end of the input.
    Input,
    /// Room in the outbox, or that nothing can be sent any more.
    Room,
    /// That everything is written.
    Written,
}

impl Connection {
    pub(crate) const fn engine(&self) -> &Engine<Side> {
        &self.engine
    }

    pub(crate) fn subprotocol(&self) -> Option<&str> {
        self.aside.as_ref()?.subprotocol.as_deref()
    }

    /// Returns how the connection ended, and the reason that the peer gave.
    pub(crate) fn closed(&self) -> Option<(Closed, &str)> {
        let aside = self.aside.as_ref()?;
        Some((
            aside.closed?,
            aside.close_reason.as_deref().unwrap_or_default(),
        ))
    }

    pub(super) fn aside_mut(&mut self) -> &mut Aside {
        self.aside.get_or_insert_default()
    }

    /// Receives; the socket is to wake `reader`.
    pub(super) fn poll_receive(
        &mut self,
        cx: &Context<'_>,
        reader: &Waker,
        mode: Mode,
    ) -> Poll<Result<Option<Piece>>> {
        let received = self.try_receive(cx, reader, mode);
        self.receiver = match (&received, &self.driver) {
            (Poll::Ready(_), _) => Receiver::Absent,
            (Poll::Pending, Some(driver)) if driver.will_wake(cx.waker()) => Receiver::InDriver,
            (Poll::Pending, _) => {
                self.aside_mut().receiver = Some(cx.waker().clone());
                Receiver::Other
            }
        };
        received
    }

    fn try_receive(
        &mut self,
        cx: &Context<'_>,
        reader: &Waker,
        mode: Mode,
    ) -> Poll<Result<Option<Piece>>> {
        loop {
            let next = self.inbox.next(&mut self.engine, &mut self.outbox, mode);
            self.count_messages();
            match next {
                Ok(Some(piece)) => return Poll::Ready(Ok(Some(piece))),
                Ok(None) => {}
                Err(error) => self.fail(error.into()),
            }
            if self.is_input_over() {
                self.note_peer_close();
                let error = self.aside.as_mut().and_then(|aside| aside.error.take());
                return Poll::Ready(error.map_or(Ok(None), Err));
            }
            if self.reads_in_a_row == READS_IN_A_ROW_MAX {
                self.reads_in_a_row = 0;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if self
                .poll_read(&mut Context::from_waker(reader))
                .is_pending()
            {
                self.reads_in_a_row = 0;
                return Poll::Pending;
            }
            self.reads_in_a_row += 1;
        }
    }

    /// Returns whether the driver has anything to do after a message was received; if not, the socket
    /// will wake somebody when it has.
    pub(super) fn is_anything_left(&mut self, reader: &Waker) -> bool {
        !self.inbox.is_empty()
            || !self.outbox.is_empty()
            || self.engine.wants_transmit()
            || self.poll_read(&mut Context::from_waker(reader)).is_ready()
    }

    /// Tells the socket's waker who waits, if there is such a waker.
    pub(super) fn update_readiness(&self) {
        if let Some(aside) = &self.aside
            && let Some(readiness) = &aside.readiness
        {
            let waits = self.receiver == Receiver::Other;
            let receiver = aside.receiver.as_ref().filter(|_| waits);
            readiness.set(receiver, self.driver.as_ref());
        }
    }

    /// Reads once; an end of the stream or an error ends the connection.
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(io) = &mut self.io else {
            return Poll::Ready(());
        };
        match ready!(self.inbox.poll_read(Pin::new(io), cx)) {
            Ok(0) => self.end(Some(Error::Abnormal)),
            Ok(bytes) => {
                if let Some(counters) = &self.options.counters {
                    counters::add(&counters.bytes_received, bytes as u64);
                }
            }
            Err(error) => self.end(Some(error.into())),
        }
        Poll::Ready(())
    }

    /// Queues frames that others send too; a client sends masked copies of its own.
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

    /// Writes as much as the socket takes; pending if something is left, which is the driver's.
    pub(super) fn write_now(&mut self, cx: &mut Context<'_>, is_driver_active: bool) -> Poll<()> {
        let written = self.poll_write(cx);
        match written {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(error)) => self.end(Some(error.into())),
            // An active driver will try again by itself; to wake it would make it turn for ever.
            Poll::Pending if is_driver_active => return Poll::Pending,
            Poll::Pending => {
                self.wake_driver();
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }

    /// Writes what the socket takes, whatever the task that runs has done before: one that sends to thousands would
    /// have used up tokio's budget after 128 writes, and each further one would be left to a driver.
    pub(super) fn write_at_once(&mut self) {
        let write = poll_fn(|cx| {
            _ = self.write_now(cx, false);
            Poll::Ready(())
        });
        _ = pin!(unconstrained(write)).poll(&mut Context::from_waker(Waker::noop()));
    }

    /// Writes what is queued, control frames at the next frame boundary.
    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(io) = &mut self.io else {
            return Poll::Ready(Ok(()));
        };
        loop {
            self.outbox.take_control(&mut self.engine);
            if self.outbox.is_empty() {
                return self.outbox.poll_flush(Pin::new(io), cx);
            }
            let bytes = ready!(self.outbox.poll_write(Pin::new(io), cx))?;
            if let Some(counters) = &self.options.counters {
                counters::add(&counters.bytes_sent, bytes as u64);
            }
        }
    }

    /// Fails the connection because of the peer's fault or silence; the Close frame goes out.
    pub(super) fn fail(&mut self, error: Error) {
        self.aside_mut().error.get_or_insert(error);
        self.wake_all();
    }

    /// Ends the connection now: closes the socket and tells everybody. The `error` is for the
    /// receiver, unless that knows the end of the input already.
    pub(super) fn end(&mut self, error: Option<Error>) {
        let error = error.filter(|_| !self.engine.is_input_over());
        let closed = self.engine.handle_eof();
        self.note_peer_close();
        let aside = self.aside_mut();
        aside.closed.get_or_insert(closed);
        if let Some(error) = error {
            aside.error.get_or_insert(error);
        }
        self.outbox = Outbox::default();
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
        })
    }

    /// Counts the memory that the connection holds.
    pub(super) fn count_memory(&mut self) {
        let messages = self.received_bytes();
        let backlog = self.outbox.capacity();
        self.counted.set(&self.options.accounts, backlog, messages);
    }

    /// Returns the memory of input, whole messages or not, that the application has not taken.
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

    fn note_peer_close(&mut self) {
        if let Some(reason) = self.inbox.take_close_reason() {
            self.aside_mut().close_reason = Some(reason);
        }
    }

    /// Returns why nothing can be written any more.
    pub(super) fn lost(&self) -> Result<()> {
        match self.closed() {
            Some((Closed { clean: true, .. }, _)) => Ok(()),
            _ => Err(SendError::Closed.into()),
        }
    }

    pub(super) fn wait(&mut self, until: Until, cx: &mut Context<'_>) {
        let waiting = &mut self.aside_mut().waiting;
        let is_known =
            |(known, waker): &(Until, Waker)| *known == until && waker.will_wake(cx.waker());
        if !waiting.iter().any(is_known) {
            waiting.push((until, cx.waker().clone()));
        }
    }

    /// Wakes those who wait for what has come about.
    pub(super) fn wake_waiting(&mut self, has_come: impl Fn(Until) -> bool) {
        if let Some(aside) = &mut self.aside {
            aside.waiting.retain(|(until, waker)| {
                let wake = has_come(*until);
                if wake {
                    waker.wake_by_ref();
                }
                !wake
            });
        }
    }

    /// Takes note that both Close frames have passed.
    pub(super) fn note_closed(&mut self) {
        if self.closed().is_none() {
            self.note_peer_close();
            let closed = self.engine.handle_eof();
            self.aside_mut().closed = Some(closed);
            self.wake_waiting(|_| true);
        }
    }

    pub(super) fn wake_receiver(&mut self) {
        match std::mem::replace(&mut self.receiver, Receiver::Absent) {
            Receiver::Absent => {}
            Receiver::InDriver => self.wake_driver(),
            Receiver::Other => {
                if let Some(waker) = self.aside_mut().receiver.take() {
                    waker.wake();
                }
            }
        }
        self.wake_waiting(|until| until == Until::Input);
    }

    pub(super) fn wake_driver(&mut self) {
        if !self.driver_notified
            && let Some(waker) = &self.driver
        {
            self.driver_notified = true;
            waker.wake_by_ref();
        }
    }

    fn wake_all(&mut self) {
        self.wake_receiver();
        self.wake_waiting(|_| true);
        self.wake_driver();
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
