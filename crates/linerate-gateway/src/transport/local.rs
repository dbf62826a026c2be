//! Clients of a worker whose connections are on the reactor, without a task for each.
//!
//! The sessions, the hub and the reactor never call each other in circles: the reactor only records
//! events, and so do the outlets; one task of the worker hands them to the sessions.

mod table;
mod wire;

use std::{
    cell::RefCell,
    collections::BTreeSet,
    fmt, io,
    sync::Arc,
    time::{Duration, Instant},
};

use linerate::{Counters, axum::TcpUpgrade};
use linerate_reactor::{LocalEvent, LocalReactor, Options};
use send_wrapper::SendWrapper;
use tokio::{sync::Notify, task::yield_now, time::timeout};

use super::{DATA_BYTES_MAX, running::RunningSession, wire::Farewell};
use crate::{
    clock::now, config::ClientOptions, node::Worker, platform::Readable,
    protocol::codes::Disconnect, server::ConnectionGuard,
};
pub(super) use table::ConnectionOptions;
use table::Table;
pub(super) use wire::LocalWire;

/// The clients of a worker whose connections are on the reactor. They are used only on the thread
/// of the worker.
pub(crate) struct LocalClients {
    /// Never borrowed while a session or the worker is called.
    table: SendWrapper<RefCell<Table>>,
    sessions: SendWrapper<RefCell<Sessions>>,
    /// Wakes the task that runs the sessions.
    changed: Notify,
    counters: Arc<Counters>,
    worker: Arc<Worker>,
}

/// The sessions of the clients, by their keys.
#[derive(Default)]
struct Sessions {
    sessions: Vec<Option<Box<LocalSession>>>,
    /// When sessions have to be handled, even if nothing happens before.
    deadlines: BTreeSet<(Instant, usize)>,
}

/// The session of a client.
struct LocalSession {
    running: RunningSession,
    /// The deadline of the session.
    due: Option<Instant>,
    _guard: Option<ConnectionGuard>,
}

impl LocalClients {
    /// Creates the state without clients.
    ///
    /// # Errors
    /// If the process is out of file descriptors.
    pub(crate) fn new(
        worker: Arc<Worker>,
        options: &ClientOptions,
        counters: Arc<Counters>,
    ) -> io::Result<Self> {
        let mut reactor = Options::default();
        reactor.backlog_bytes_max = DATA_BYTES_MAX;
        // A client that reads nothing between two pings is considered gone.
        reactor.write_timeout = options.ping_interval * 2;
        let table = Table::new(LocalReactor::new(reactor)?, worker.accounts());
        Ok(Self {
            table: SendWrapper::new(RefCell::new(table)),
            sessions: SendWrapper::new(RefCell::default()),
            changed: Notify::new(),
            counters,
            worker,
        })
    }

    /// Returns the wire of a client whose connection is not open yet.
    pub(super) fn wire(self: &Arc<Self>, farewell: Farewell) -> LocalWire {
        LocalWire {
            key: self.table.borrow_mut().add(farewell),
            clients: self.clone(),
        }
    }

    /// Opens the connection of a client, whose session has been started with the wire of this key.
    pub(super) fn open(
        &self,
        key: usize,
        upgrade: TcpUpgrade,
        options: &ConnectionOptions,
        running: RunningSession,
        guard: Option<ConnectionGuard>,
    ) {
        let mut table = self.table.borrow_mut();
        table
            .reactor
            .set_message_timeout(Some(running.message_timeout));
        let opened = table.open(key, upgrade, options);
        drop(table);
        if let Err(error) = opened {
            return tracing::warn!(%error, "connection not continued");
        }
        self.counters.add_connection();
        running.begin();
        self.sessions.borrow_mut().insert(key, running, guard);
        self.wake(key);
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
            let something = async {
                tokio::select! {
                    ready = readable.wait() => ready,
                    () = self.changed.notified() => Ok(()),
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

    /// Wakes the session of a client.
    fn wake(&self, key: usize) {
        if self.table.borrow_mut().change(key) {
            self.changed.notify_one();
        }
    }

    /// Handles everything that has happened. Returns how long to wait for more.
    fn turn(&self) -> io::Result<Option<Duration>> {
        self.table.borrow_mut().reactor.turn()?;
        while let Some(event) = self.next_event() {
            self.handle_event(event);
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
        let times = [table.reactor.poll_timeout(), self.time_to_deadline()];
        Ok(times.into_iter().flatten().min())
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
        let sessions = self.sessions.borrow();
        let (due, _) = sessions.deadlines.first()?;
        Some(due.saturating_duration_since(now()))
    }

    fn handle_event(&self, event: LocalEvent) {
        match event {
            LocalEvent::Closed { connection, .. } => {
                self.counters.remove_connection();
                let key = self.table.borrow().find(connection);
                // Dropped while nothing is borrowed.
                let ended = key.and_then(|key| self.sessions.borrow_mut().remove(key));
                drop(ended);
            }
            LocalEvent::Drained { connection } => {
                let key = self.table.borrow().find(connection);
                if let Some(key) = key {
                    self.handle_changed(key);
                }
            }
            LocalEvent::MessageLate { connection } => {
                let key = self.table.borrow().find(connection);
                if let Some(key) = key {
                    self.end_late(key);
                }
            }
            // The messages of these clients are discarded.
            _ => {}
        }
    }

    /// Hands the events of an outlet to its session, and resumes delivery if there is room again.
    fn handle_changed(&self, key: usize) {
        let Some(mut session) = self.sessions.borrow_mut().take(key) else {
            return;
        };
        let disconnect = session.running.handle_changed();
        self.put_back(key, session, disconnect);
    }

    fn handle_timeout(&self, key: usize) {
        let Some(session) = self.sessions.borrow_mut().take(key) else {
            return;
        };
        let disconnect = session.running.handle_timeout(now());
        self.put_back(key, session, disconnect);
    }

    fn end_late(&self, key: usize) {
        let Some(session) = self.sessions.borrow_mut().take(key) else {
            return;
        };
        let disconnect = session.running.late();
        self.put_back(key, session, Some(disconnect));
    }

    /// Puts a session back that was handled, or ends it.
    fn put_back(&self, key: usize, session: Box<LocalSession>, disconnect: Option<Disconnect>) {
        match disconnect {
            None => self.sessions.borrow_mut().put_back(key, session),
            Some(disconnect) => {
                self.sessions.borrow_mut().forget(key, &session);
                session.running.close(&disconnect);
            }
        }
    }
}

impl Sessions {
    fn insert(&mut self, key: usize, running: RunningSession, guard: Option<ConnectionGuard>) {
        if self.sessions.len() <= key {
            self.sessions.resize_with(key + 1, || None);
        }
        let session = LocalSession {
            running,
            due: None,
            _guard: guard,
        };
        self.put_back(key, Box::new(session));
    }

    /// Takes a session out to handle it.
    fn take(&mut self, key: usize) -> Option<Box<LocalSession>> {
        self.sessions.get_mut(key)?.take()
    }

    /// Puts a session back that was taken out, and updates its deadline.
    fn put_back(&mut self, key: usize, mut session: Box<LocalSession>) {
        let due = session.running.poll_timeout();
        if due != session.due {
            self.forget(key, &session);
            self.deadlines.extend(due.map(|due| (due, key)));
            session.due = due;
        }
        self.sessions[key] = Some(session);
    }

    /// Removes the deadline of a session.
    fn forget(&mut self, key: usize, session: &LocalSession) {
        if let Some(due) = session.due {
            self.deadlines.remove(&(due, key));
        }
    }

    fn remove(&mut self, key: usize) -> Option<Box<LocalSession>> {
        let session = self.take(key)?;
        self.forget(key, &session);
        Some(session)
    }

    /// Returns a session whose deadline has passed.
    fn take_due(&mut self, now: Instant) -> Option<usize> {
        let (due, key) = *self.deadlines.first()?;
        if due > now {
            return None;
        }
        self.deadlines.pop_first();
        if let Some(Some(session)) = self.sessions.get_mut(key) {
            session.due = None;
        }
        Some(key)
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
