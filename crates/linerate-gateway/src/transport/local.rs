//! Clients of a worker whose connections are on the reactor, without a task for each.
//!
//! The sessions, the hub and the reactor never call each other in circles: the reactor only records
//! events, and so do the outlets; one task of the worker hands them to the sessions.

mod alarm;
mod chunks;
#[cfg(unix)]
mod moved;
#[cfg(unix)]
mod moving;
#[cfg(unix)]
mod restore;
mod session;
mod table;
mod wire;

use std::{
    cell::{Cell, RefCell},
    fmt, io,
    sync::Arc,
    task::Waker,
    time::Duration,
};

use linerate::{Counters, MessageKind, axum::StreamUpgrade};
use linerate_reactor::{ConnectionId, LocalEvent, LocalReactor, Options};
use send_wrapper::SendWrapper;
use tokio::{task::yield_now, time::timeout};

use super::{DATA_BYTES_MAX, running::late};
use crate::{
    clock::now,
    node::Worker,
    platform::Readable,
    protocol::{Dialect, codes::Disconnect, dialect::Transport},
    server::{ConnectionGuard, Detached},
    session::{Gate, Gates, SessionEnvironment},
};
use alarm::Alarm;
#[cfg(unix)]
pub(crate) use moved::MovedConnection;
#[cfg(unix)]
pub(crate) use moving::{MovedClient, SESSION_BYTES_MAX};
#[cfg(unix)]
use moving::{Pace, Suspended};
pub(super) use session::Running;
use session::{LocalSession, Sessions};
pub(super) use table::ConnectionOptions;
use table::Table;
pub(super) use wire::LocalWire;

/// The clients of a worker whose connections are on the reactor. They are used only on the thread
/// of the worker.
pub(crate) struct LocalClients {
    /// Never borrowed while a session or the worker is called.
    table: SendWrapper<RefCell<Table>>,
    sessions: SendWrapper<RefCell<Sessions>>,
    #[cfg(unix)]
    pace: SendWrapper<Cell<Pace>>,
    #[cfg(unix)]
    suspended: SendWrapper<RefCell<Vec<Suspended>>>,
    alarm: Arc<Alarm>,
    counters: Arc<Counters>,
    worker: Arc<Worker>,
    environment: Arc<SessionEnvironment>,
    gates: Gates,
}

impl LocalClients {
    /// Creates the state without clients.
    ///
    /// # Errors
    /// If the process is out of file descriptors.
    pub(crate) fn new(
        worker: Arc<Worker>,
        environment: Arc<SessionEnvironment>,
        counters: Arc<Counters>,
    ) -> io::Result<Self> {
        let mut reactor = Options::default();
        reactor.backlog_bytes_max = DATA_BYTES_MAX;
        // A client that reads nothing between two pings is considered gone.
        reactor.write_timeout = environment.settings().config.client.ping_interval * 2;
        let table = Table::new(LocalReactor::new(reactor)?, worker.accounts());
        Ok(Self {
            table: SendWrapper::new(RefCell::new(table)),
            sessions: SendWrapper::new(RefCell::default()),
            #[cfg(unix)]
            pace: SendWrapper::new(Cell::default()),
            #[cfg(unix)]
            suspended: SendWrapper::new(RefCell::default()),
            alarm: Arc::default(),
            counters,
            gates: Gates::new(&worker, &environment),
            worker,
            environment,
        })
    }

    /// Returns what authenticates and authorizes the clients that use a dialect.
    pub(super) fn gate(&self, dialect: &'static Dialect) -> Arc<Gate> {
        self.gates.of(dialect)
    }

    /// Returns the wire of a client whose connection is not open yet.
    pub(super) fn wire(self: &Arc<Self>, transport: &'static Transport) -> LocalWire {
        LocalWire {
            key: self.table.borrow_mut().add(transport),
            clients: self.clone(),
        }
    }

    /// Opens the WebSocket of a client, whose session has been started with the wire of this key.
    pub(super) fn open(
        &self,
        key: usize,
        upgrade: StreamUpgrade,
        options: &ConnectionOptions,
        running: Running,
        guard: Option<ConnectionGuard>,
    ) {
        let opened = self.table.borrow_mut().open(key, upgrade, options);
        self.begin(key, opened, running, guard);
    }

    /// Opens the stream of a client, whose session has been started with the wire of this key.
    pub(super) fn open_stream(
        &self,
        key: usize,
        detached: Detached,
        running: Running,
        guard: Option<ConnectionGuard>,
    ) {
        let opened = self.table.borrow_mut().open_stream(key, detached);
        self.begin(key, opened, running, guard);
    }

    /// Runs the sessions. Spawn it on the worker's thread.
    ///
    /// # Errors
    /// If the reactor fails permanently.
    pub(crate) async fn run(&self) -> io::Result<()> {
        let _end = EndOnDrop(self);
        let readable = Readable::new(&self.table.borrow().reactor)?;
        loop {
            let time = self.turn()?;
            let is_serving = self.is_serving();
            let something = async {
                tokio::select! {
                    ready = readable.wait(), if is_serving => ready,
                    () = self.alarm.wait() => Ok(()),
                }
            };
            match time {
                None => something.await?,
                Some(Duration::ZERO) => yield_now().await,
                // An error means that a deadline may have passed.
                Some(time) => timeout(time, something).await.unwrap_or(Ok(()))?,
            }
        }
    }

    /// Serves a client whose connection was opened.
    fn begin(
        &self,
        key: usize,
        opened: io::Result<()>,
        running: Running,
        guard: Option<ConnectionGuard>,
    ) {
        if let Err(error) = opened {
            return tracing::warn!(%error, "connection not continued");
        }
        self.counters.add_connection();
        running.begin();
        self.sessions.borrow_mut().insert(key, running, guard);
        self.wake(key);
    }

    /// Wakes the session of a client.
    fn wake(&self, key: usize) {
        if self.table.borrow_mut().change(key) {
            self.alarm.ring();
        }
    }

    /// Handles everything that has happened. Returns how long to wait for more.
    fn turn(&self) -> io::Result<Option<Duration>> {
        #[cfg(unix)]
        if self.pace.get() == Pace::Suspended {
            return Ok(None);
        }
        if self.is_serving() {
            self.table.borrow_mut().reactor.turn()?;
        }
        while let Some(event) = self.next_event() {
            self.handle_event(event);
        }
        for key in self.alarm.take_woken() {
            self.handle_changed(key);
        }
        while let Some(key) = self.next_changed() {
            self.handle_changed(key);
        }
        while let Some(key) = self.next_due() {
            self.handle_timeout(key);
        }
        let mut table = self.table.borrow_mut();
        table.count_memory();
        self.counters.add_traffic(&table.take_traffic());
        let of_reactor = table.reactor.poll_timeout();
        let of_reactor = of_reactor.filter(|_| self.is_serving());
        let times = [of_reactor, self.time_to_deadline()];
        Ok(times.into_iter().flatten().min())
    }

    /// Returns whether clients are read from. Otherwise, the reactor is not turned.
    #[cfg(unix)]
    fn is_serving(&self) -> bool {
        self.pace.get() == Pace::Serving
    }

    #[cfg(not(unix))]
    const fn is_serving(&self) -> bool {
        true
    }

    fn next_event(&self) -> Option<LocalEvent> {
        self.table.borrow_mut().reactor.poll_event()
    }

    fn next_changed(&self) -> Option<usize> {
        self.table.borrow_mut().take_changed()
    }

    fn next_due(&self) -> Option<usize> {
        self.sessions.borrow_mut().take_due(now())
    }

    fn time_to_deadline(&self) -> Option<Duration> {
        let due = self.sessions.borrow().poll_timeout()?;
        Some(due.saturating_duration_since(now()))
    }

    fn handle_event(&self, event: LocalEvent) {
        match event {
            LocalEvent::Closed { connection, .. } => {
                self.counters.remove_connection();
                let key = self.find(connection);
                // Dropped while nothing is borrowed.
                let ended = key.and_then(|key| self.sessions.borrow_mut().remove(key));
                drop(ended);
            }
            LocalEvent::Drained { connection } => {
                if let Some(key) = self.find(connection) {
                    self.handle_changed(key);
                }
            }
            LocalEvent::Message {
                connection,
                kind,
                payload,
            } => {
                if let Some(key) = self.find(connection) {
                    self.handle_message(key, kind, &payload);
                }
            }
            LocalEvent::MessageLate { connection } => {
                if let Some(key) = self.find(connection) {
                    self.handle_late(key);
                }
            }
            _ => {}
        }
    }

    /// Returns the client of a connection, unless its session has ended.
    fn find(&self, connection: ConnectionId) -> Option<usize> {
        self.table.borrow().find(connection)
    }

    /// Hands the events of an outlet to its session, and resumes delivery if there is room again.
    fn handle_changed(&self, key: usize) {
        let Some(mut session) = self.sessions.borrow_mut().take(key) else {
            return;
        };
        let disconnect = session.running.handle_changed(|| self.waker(key));
        self.put_back(key, session, disconnect);
    }

    /// Hands a message to a session. What it answers is sent when all messages have been handled.
    fn handle_message(&self, key: usize, kind: MessageKind, payload: &[u8]) {
        let Some(mut session) = self.sessions.borrow_mut().take(key) else {
            return;
        };
        session.running.handle_message(kind, payload);
        self.put_back(key, session, None);
        self.wake(key);
    }

    fn handle_timeout(&self, key: usize) {
        let Some(mut session) = self.sessions.borrow_mut().take(key) else {
            return;
        };
        let disconnect = session.running.handle_timeout(now(), || self.waker(key));
        self.put_back(key, session, disconnect);
    }

    fn handle_late(&self, key: usize) {
        let Some(mut session) = self.sessions.borrow_mut().take(key) else {
            return;
        };
        let message_timeout = self.table.borrow().message_timeout;
        let disconnect = session.running.end(late(message_timeout));
        self.put_back(key, session, Some(disconnect));
    }

    fn waker(&self, key: usize) -> Waker {
        self.alarm.waker(key)
    }

    /// Puts a session back that was handled, or ends it.
    fn put_back(&self, key: usize, session: LocalSession, disconnect: Option<Disconnect>) {
        match disconnect {
            None => {
                let wants_input = session.running.wants_input();
                self.table.borrow_mut().set_reading(key, wants_input);
                self.sessions.borrow_mut().put_back(key, session);
            }
            Some(disconnect) => {
                self.sessions.borrow_mut().forget(key, &session);
                session.running.close(&disconnect);
            }
        }
    }
}

/// Ends all sessions when the task that runs them ends. They own the clients, which own them.
struct EndOnDrop<'a>(&'a LocalClients);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        // Dropped while nothing is borrowed.
        let sessions = std::mem::take(&mut *self.0.sessions.borrow_mut());
        drop(sessions);
    }
}

impl fmt::Debug for LocalClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalClients")
            .field("worker", &self.worker)
            .finish_non_exhaustive()
    }
}
