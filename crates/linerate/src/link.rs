//! One connection: socket, engine and queues, shared by the application's handles and the driver.
//!
//! The driver is the one task that is responsible for the connection. Of a server it is the task
//! that also runs the handler, so that a reply needs no hop to another task; of a client it runs in
//! the background. Receiving reads from the socket in the task of the receiver; writing is done by
//! the driver, or by the application's task where no driver is about to run.

mod alarm;
mod driver;
mod inbox;
mod outbox;
mod readiness;
#[cfg(test)]
mod tests;
mod transport;

use std::{
    future::{Future, poll_fn},
    io,
    pin::{Pin, pin},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker, ready},
};

#[cfg(feature = "deflate")]
use linerate_proto::deflate::{Agreement, ThreadPool};
use linerate_proto::{
    CloseCode, Endpoint, Engine, MaskKey, Role, SendError,
    engine::{Closed, State},
    handshake::{Acceptance, Negotiated},
};

use tokio::task::unconstrained;

use crate::{
    Error, Frames, Message, Options, Result, TrySendError, clock, counters,
    options::Settings,
    parts::{Parts, PartsError, RawStream},
};

pub(crate) use alarm::{Alarm, Tick};
pub(crate) use driver::Driver;
use inbox::Inbox;
pub(crate) use inbox::{Mode, Piece};
use outbox::Outbox;
use readiness::Readiness;
pub(crate) use transport::Transport;

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

/// What the opening handshake agreed on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Agreed {
    subprotocol: Option<Box<str>>,
    #[cfg(feature = "deflate")]
    deflate: Option<Agreement>,
}

impl From<&Acceptance<'_>> for Agreed {
    fn from(acceptance: &Acceptance<'_>) -> Self {
        Self {
            subprotocol: acceptance.subprotocol().map(Into::into),
            #[cfg(feature = "deflate")]
            deflate: acceptance.deflate(),
        }
    }
}

impl From<&Negotiated> for Agreed {
    fn from(negotiated: &Negotiated) -> Self {
        Self {
            subprotocol: negotiated.subprotocol().map(Into::into),
            #[cfg(feature = "deflate")]
            deflate: negotiated.deflate(),
        }
    }
}

pub(crate) struct Link {
    /// Whether the driver will look at the connection as soon as the code that runs now yields.
    driver_active: AtomicBool,
    connection: Mutex<Connection>,
}

/// What the handles and the driver share.
pub(crate) struct Connection {
    engine: Engine<Side>,
    /// The socket, until the connection is over.
    io: Option<Transport>,
    options: Arc<Options>,
    inbox: Inbox,
    outbox: Outbox,
    receiver: Receiver,
    driver: Option<Waker>,
    aside: Option<Box<Aside>>,
    /// The tick for which a shared alarm is set.
    alarm_set: Option<Tick>,
    alarm_rang: bool,
    /// Handles that the application holds.
    handles: u32,
    receiver_gone: bool,
    /// Whether the driver was woken and has not run since.
    driver_notified: bool,
    stream_shut_down: bool,
    /// Whether the driver has no handler to run, or none any more.
    handler_done: bool,
    /// Reads since the receiver last had to wait.
    reads_in_a_row: u8,
}

/// Whether somebody waits for a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Receiver {
    /// Nobody does.
    Absent,
    /// Somebody whom the driver's waker wakes does, as the handler of a server.
    InDriver,
    /// Somebody whose waker stands aside does.
    Other,
}

/// What an idle connection does without.
#[derive(Default)]
struct Aside {
    receiver: Option<Waker>,
    /// Exists once somebody has received in another task than the driver's.
    readiness: Option<Arc<Readiness>>,
    waiting: Vec<(Until, Waker)>,
    /// What the receiver is still to be told.
    error: Option<Error>,
    closed: Option<Closed>,
    close_reason: Option<Box<str>>,
    subprotocol: Option<Box<str>>,
}

/// After so many reads in a row the receiver yields, so that other connections have their turn.
const READS_IN_A_ROW_MAX: u8 = 16;

impl Link {
    /// Creates a connection with one handle; `leftover` is what was read behind the handshake.
    pub(crate) fn new(
        io: Transport,
        role: Role,
        settings: &Settings,
        leftover: &[u8],
        agreed: Agreed,
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
                inbox: Inbox::new(leftover),
                outbox: Outbox::default(),
                receiver: Receiver::Absent,
                driver: None,
                aside: agreed.subprotocol.map(|subprotocol| {
                    Box::new(Aside {
                        subprotocol: Some(subprotocol),
                        ..Aside::default()
                    })
                }),
                alarm_set: None,
                alarm_rang: false,
                handles: 1,
                receiver_gone: false,
                driver_notified: false,
                stream_shut_down: false,
                handler_done: false,
                reads_in_a_row: 0,
            }),
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn is_driver_active(&self) -> bool {
        self.driver_active.load(Ordering::Relaxed)
    }

    /// Receives the next message, or the next piece of one.
    pub(crate) fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        mode: Mode,
    ) -> Poll<Result<Option<Piece>>> {
        let mut connection = self.lock();
        if self.is_driver_active() {
            return connection.poll_receive(cx, cx.waker(), mode);
        }
        connection.inbox.let_time_pass();
        let readiness = connection
            .aside_mut()
            .readiness
            .get_or_insert_default()
            .clone();
        // Before the socket is asked, which may wake somebody from then on.
        readiness.set(Some(cx.waker()), connection.driver.as_ref());
        let reader = Waker::from(readiness);
        let received = connection.poll_receive(cx, &reader, mode);
        connection.update_readiness();
        if received.is_pending() {
            _ = connection.write_now(cx, false);
        } else if connection.is_anything_left(&reader) {
            connection.wake_driver();
        }
        received
    }

    /// Receives the next message for a caller who may never ask again: the driver goes on reading
    /// meanwhile.
    pub(crate) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Result<Option<Message>>> {
        let received = self.poll_receive(cx, Mode::Messages);
        if received.is_pending() {
            self.lock().wait(Until::Input, cx);
            self.cancel_receive();
        }
        received.map(|received| received.map(|piece| piece.map(|piece| piece.message)))
    }

    /// Waits until there is room, then queues by `append`, and writes or sees to it that the driver
    /// does. `append` returns how many messages it has ended.
    pub(crate) fn poll_queue(
        &self,
        cx: &mut Context<'_>,
        urgency: Urgency,
        append: impl FnOnce(&mut Outbox, &mut Engine<Side>) -> Result<u64>,
    ) -> Poll<Result<()>> {
        let mut guard = self.lock();
        let connection = &mut *guard;
        let is_driver_active = self.is_driver_active();
        if connection.is_full() && connection.engine.state() == State::Open {
            _ = connection.write_now(cx, is_driver_active);
        }
        if connection.engine.state() != State::Open {
            return Poll::Ready(Err(SendError::Closed.into()));
        }
        if connection.is_full() {
            connection.wait(Until::Room, cx);
            return Poll::Pending;
        }
        let messages = append(&mut connection.outbox, &mut connection.engine)?;
        if let Some(counters) = &connection.options.counters {
            counters::add(&counters.messages_sent, messages);
        }
        let is_corked = is_driver_active || !connection.inbox.is_empty();
        if connection.is_full() || urgency == Urgency::Now && !is_corked {
            _ = connection.write_now(cx, is_driver_active);
        } else if !is_driver_active {
            connection.wake_driver();
        }
        Poll::Ready(Ok(()))
    }

    /// Queues frames that others send too, all or none, and writes unless the driver is about to.
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

    /// Writes what is queued as far as the socket takes it, and leaves the rest to the driver.
    pub(crate) fn try_flush(&self) {
        let mut connection = self.lock();
        if self.is_driver_active() || connection.outbox.is_empty() {
            return;
        }
        if connection.inbox.is_empty() {
            connection.write_at_once();
        } else {
            connection.wake_driver();
        }
    }

    /// Ready when there is room in the outbox.
    pub(crate) fn poll_room(&self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let mut connection = self.lock();
        if connection.engine.state() != State::Open {
            return Poll::Ready(Err(SendError::Closed.into()));
        }
        if !connection.is_full() {
            return Poll::Ready(Ok(()));
        }
        connection.wait(Until::Room, cx);
        Poll::Pending
    }

    /// Returns how many bytes the outbox takes until it is full.
    pub(crate) fn room(&self) -> usize {
        let connection = self.lock();
        if connection.engine.state() != State::Open {
            return 0;
        }
        let bytes_max = connection.options.send_queue_bytes_max.max(1);
        bytes_max.saturating_sub(connection.outbox.len())
    }

    /// Returns how many bytes wait for the socket.
    pub(crate) fn queued_bytes(&self) -> usize {
        self.lock().outbox.len()
    }

    /// Queues a message whether there is room or not; for a caller who has asked before.
    pub(crate) fn queue(&self, message: Message) -> Result<()> {
        let mut guard = self.lock();
        let connection = &mut *guard;
        if connection.io.is_none() {
            return Err(SendError::Closed.into());
        }
        connection.outbox.push(&mut connection.engine, message)?;
        if let Some(counters) = &connection.options.counters {
            counters::add(&counters.messages_sent, 1);
        }
        if !self.is_driver_active() {
            connection.wake_driver();
        }
        Ok(())
    }

    /// Writes everything queued.
    pub(crate) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let mut connection = self.lock();
        let written = connection.write_now(cx, self.is_driver_active());
        if connection.io.is_none() {
            return Poll::Ready(connection.lost());
        }
        if written.is_pending() {
            connection.wait(Until::Written, cx);
        }
        written.map(Ok)
    }

    /// Queues our Close frame unless there was one.
    pub(crate) fn start_close(&self, code: CloseCode, reason: &str) -> Result<()> {
        let mut connection = self.lock();
        connection.engine.close(code, reason, clock::now())?;
        if !self.is_driver_active() {
            connection.wake_driver();
        }
        Ok(())
    }

    /// Waits for the end of the closing handshake.
    pub(crate) fn poll_closed(&self, cx: &mut Context<'_>) -> Poll<Closed> {
        let mut connection = self.lock();
        if let Some((closed, _)) = connection.closed() {
            return Poll::Ready(closed);
        }
        connection.wait(Until::Closed, cx);
        Poll::Pending
    }

    /// Forgets that the receiver waits, because its future was dropped.
    pub(crate) fn cancel_receive(&self) {
        let mut connection = self.lock();
        connection.receiver = Receiver::Absent;
        connection.update_readiness();
        if !self.is_driver_active() {
            connection.wake_driver();
        }
    }

    /// Takes the connection apart; for everybody who still has a part in it, it is over.
    pub(crate) fn take_parts(&self) -> Result<Parts, PartsError> {
        self.lock().take_parts()
    }

    pub(crate) fn add_handle(&self) {
        self.lock().handles += 1;
    }

    /// Drops a handle; without any the connection is closed.
    pub(crate) fn drop_handle(&self, is_receiver: bool) {
        let mut connection = self.lock();
        connection.handles -= 1;
        connection.receiver_gone |= is_receiver;
        if connection.handles == 0 || is_receiver {
            connection.wake_driver();
        }
    }
}

/// Whether a message should reach the socket before the call returns.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Urgency {
    /// Soon: the driver writes it together with what else is queued by then.
    Gather,
    /// Now, unless further input is waiting to be answered.
    Now,
}

/// What somebody waits for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Until {
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

    fn aside_mut(&mut self) -> &mut Aside {
        self.aside.get_or_insert_default()
    }

    /// Receives; the socket is to wake `reader`.
    fn poll_receive(
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
    fn is_anything_left(&mut self, reader: &Waker) -> bool {
        !self.inbox.is_empty()
            || !self.outbox.is_empty()
            || self.engine.wants_transmit()
            || self.poll_read(&mut Context::from_waker(reader)).is_ready()
    }

    /// Tells the socket's waker who waits, if there is such a waker.
    fn update_readiness(&self) {
        if let Some(aside) = &self.aside
            && let Some(readiness) = &aside.readiness
        {
            let waits = self.receiver == Receiver::Other;
            let receiver = aside.receiver.as_ref().filter(|_| waits);
            readiness.set(receiver, self.driver.as_ref());
        }
    }

    /// Reads once; an end of the stream or an error ends the connection.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<()> {
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
    fn push_frames(&mut self, frames: &Frames) -> Result<(), SendError> {
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

    fn is_input_over(&self) -> bool {
        self.engine.is_input_over() || self.io.is_none()
    }

    fn is_full(&self) -> bool {
        self.outbox.len() >= self.options.send_queue_bytes_max.max(1)
    }

    /// Writes as much as the socket takes; pending if something is left, which is the driver's.
    fn write_now(&mut self, cx: &mut Context<'_>, is_driver_active: bool) -> Poll<()> {
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
    fn write_at_once(&mut self) {
        let write = poll_fn(|cx| {
            _ = self.write_now(cx, false);
            Poll::Ready(())
        });
        _ = pin!(unconstrained(write)).poll(&mut Context::from_waker(Waker::noop()));
    }

    /// Writes what is queued, control frames at the next frame boundary.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
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
    fn fail(&mut self, error: Error) {
        self.aside_mut().error.get_or_insert(error);
        self.wake_all();
    }

    /// Ends the connection now: closes the socket and tells everybody. The `error` is for the
    /// receiver, unless that knows the end of the input already.
    fn end(&mut self, error: Option<Error>) {
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

    fn take_parts(&mut self) -> Result<Parts, PartsError> {
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

    fn count_messages(&mut self) {
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
    fn lost(&self) -> Result<()> {
        match self.closed() {
            Some((Closed { clean: true, .. }, _)) => Ok(()),
            _ => Err(SendError::Closed.into()),
        }
    }

    fn wait(&mut self, until: Until, cx: &mut Context<'_>) {
        let waiting = &mut self.aside_mut().waiting;
        let is_known =
            |(known, waker): &(Until, Waker)| *known == until && waker.will_wake(cx.waker());
        if !waiting.iter().any(is_known) {
            waiting.push((until, cx.waker().clone()));
        }
    }

    /// Wakes those who wait for what has come about.
    fn wake_waiting(&mut self, has_come: impl Fn(Until) -> bool) {
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
    fn note_closed(&mut self) {
        if self.closed().is_none() {
            self.note_peer_close();
            let closed = self.engine.handle_eof();
            self.aside_mut().closed = Some(closed);
            self.wake_waiting(|_| true);
        }
    }

    fn wake_receiver(&mut self) {
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

    fn wake_driver(&mut self) {
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
    }
}
