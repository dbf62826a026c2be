//! Workers: each is one thread with a listener, a driver and its connections.

mod accept;
mod adopt;
mod deadlines;
mod deliver;
mod dial;
mod end;
pub(crate) mod letters;
mod linger;
mod opening;
mod post;
mod read;
mod records;
pub(crate) mod wheel;

use std::{
    collections::{HashMap, VecDeque},
    io,
    os::fd::{AsFd, OwnedFd},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use self::{
    deliver::Delivery,
    end::{ends_output, is_over},
};
use crate::{
    connection::{Connection, Stage, gather::Spare, output::Output},
    driver::{Driver, Event, InFlight, Interest, Source, TOKEN_MAX, Watch, What, socket},
    mailbox::Mail,
    memory::{pool::Pool, table::Table},
    outbound::Dialer,
    remote::Shared,
    route::Serve,
    topics::{
        Topics,
        burst::{Burst, Delivered},
    },
    worker::{
        letters::Letters,
        wheel::{TICK, Tick, Wheel, tick_after},
    },
};

/// The size of a read in bytes: enough for many small messages or a good part of a large one, and
/// still in the cache.
const READ_BYTES: usize = 256 << 10;

/// The size of a read in bytes while a long message arrives: fewer, larger system calls then matter
/// more than the cache.
const LONG_READ_BYTES: usize = 1 << 20;

/// Letters are delivered before the end of a turn once they use this many bytes.
const LETTERS_BYTES_MAX: usize = 256 << 10;

/// The tokens of the listener and the mailbox; no connection has these indices.
const LISTENER: u64 = TOKEN_MAX;
const MAILBOX: u64 = TOKEN_MAX - 1;

/// The largest serial number of a connection. It keeps the connection's token below the two tokens
/// above.
const SERIAL_MAX: u32 = (1 << 28) - 1;

/// The state that all connections of a worker share and that callbacks can use.
pub(crate) struct Core {
    /// The number of this worker.
    pub(crate) number: u16,
    pub(crate) shared: Arc<Shared>,
    pub(crate) driver: Driver,
    /// The time since the worker started, updated once per turn.
    pub(crate) now: Duration,
    pub(crate) output: Output,
    pub(crate) pool: Pool,
    pub(crate) spare: Spare,
    pub(crate) topics: Topics,
    pub(crate) burst: Burst,
    /// Bursts that may still be referenced.
    pub(crate) delivered: Delivered,
    /// What callbacks have requested for connections other than their own.
    pub(crate) letters: Letters,
    pub(crate) dialer: Dialer,
}

impl Core {
    /// Writes the output followed by `tail`.
    #[inline]
    pub(crate) fn flush(&mut self, connection: &mut Connection, input: &[u8], tail: &[u8]) {
        let stall_due = self.stall_due();
        self.output.flush(
            connection,
            input,
            tail,
            &mut self.driver,
            &mut self.pool,
            stall_due,
        );
        self.write_behind(connection, stall_due);
        self.limit_backlog(connection);
    }

    /// Writes the output followed by `tail`, whose memory may become the backlog.
    pub(crate) fn flush_owned(&mut self, connection: &mut Connection, input: &[u8], tail: Vec<u8>) {
        let stall_due = self.stall_due();
        self.output.flush_owned(
            connection,
            input,
            tail,
            &mut self.driver,
            &mut self.pool,
            stall_due,
        );
        self.write_behind(connection, stall_due);
        self.limit_backlog(connection);
    }

    /// Writes queued output now, so that nothing else is written together with it. Returns whether
    /// all output has been written.
    fn write_queued(&mut self, connection: &mut Connection) -> bool {
        if !connection.backlog.is_empty() {
            return false;
        }
        if !connection.watch.may_be_sending() {
            return true;
        }
        let token = connection.id.token();
        let bytes = match self.driver.withdraw(token, &mut connection.watch) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return true,
            Err(InFlight) => return false,
        };
        match socket::write(&connection.socket, &bytes) {
            Ok(written) if written == bytes.len() => self.driver.give_back(bytes),
            Ok(written) => self.keep_unsent(connection, bytes, written),
            Err(_) => connection.lost = true,
        }
        connection.backlog.is_empty()
    }

    /// Adds queued output to the backlog, except the first `sent` bytes, which the kernel accepted.
    fn keep_unsent(&mut self, connection: &mut Connection, bytes: Vec<u8>, sent: usize) {
        if connection.backlog.is_empty() {
            connection.stall_due = self.stall_due();
        }
        connection.backlog.prepend(bytes, sent, &mut self.pool);
        self.limit_backlog(connection);
    }

    /// Writes a backlog that exists only because output was queued before it.
    #[inline]
    fn write_behind(&mut self, connection: &mut Connection, stall_due: Tick) {
        if connection.watch.may_be_sending() && !connection.backlog.is_empty() {
            connection.write_backlog(&mut self.driver, &mut self.pool, stall_due);
        }
    }

    /// Returns when a connection is dropped if its peer accepts none of the backlog from now on.
    fn stall_due(&self) -> Tick {
        tick_after(self.now + self.shared.options.write_timeout)
    }

    /// Removes a connection from the count.
    fn count_closed(&self) {
        let counter = &self.shared.counters.connections;
        counter.fetch_sub(1, Ordering::Relaxed);
    }

    /// Keeps the backlog below its limit by dropping the oldest publications. If none may be
    /// dropped, marks the connection as congested.
    #[inline]
    fn limit_backlog(&mut self, connection: &mut Connection) {
        if !connection.backlog.is_empty() {
            self.drop_excess(connection);
        }
    }

    #[cold]
    fn drop_excess(&mut self, connection: &mut Connection) {
        let bytes_max = self.shared.options.backlog_bytes_max.max(1);
        if connection.backlog.charge() >= bytes_max {
            let dropped = connection.backlog.drop_oldest(bytes_max, &mut self.pool);
            self.shared.counters.dropped_oldest.add(dropped);
            connection.congested = connection.backlog.charge() >= bytes_max;
        }
    }
}

/// The socket on which connections arrive.
struct Listener {
    socket: OwnedFd,
    watch: Watch,
}

/// The routes of a server, as cloned for one worker.
pub(crate) struct Routes {
    pub(crate) by_path: HashMap<String, u16>,
    pub(crate) fallback: Option<u16>,
    pub(crate) handlers: Vec<Box<dyn Serve>>,
}

/// The state of one worker thread.
pub(crate) struct Worker {
    started: Instant,
    mailbox: Watch,
    /// `None` once the server shuts down.
    listener: Option<Listener>,
    /// When to resume accepting after the process ran out of file descriptors. A connection that
    /// ends makes it due at once.
    accept_due: Option<Tick>,
    /// Accepted connections that wait for their turn to start.
    arrivals: VecDeque<OwnedFd>,
    connections: Table<Connection>,
    next_serial: u32,
    /// The number of connections that are being refused.
    refused: usize,
    routes: Routes,
    core: Core,
    read_buffer: Vec<u8>,
    mail: Mail,
    delivery: Delivery,
    /// Connections whose held input waits for its turn; some may no longer exist.
    deferred: VecDeque<u64>,
    /// When to check the deadlines of connections, identified by their keys.
    wheel: Wheel,
    /// When the connections that remain at shutdown are dropped.
    shutdown_due: Option<Duration>,
}

impl Worker {
    pub(crate) fn new(
        number: u16,
        listener: Option<OwnedFd>,
        shared: Arc<Shared>,
        routes: Routes,
    ) -> io::Result<Self> {
        let mut driver = Driver::new(shared.options.driver)?;
        let listener = match listener {
            Some(socket) => Some(Listener {
                watch: driver.add(Source::Listener, socket.as_fd(), LISTENER, Interest::READ)?,
                socket,
            }),
            None => None,
        };
        let mailbox = shared.mailboxes[usize::from(number)].as_fd();
        let mailbox = driver.add(Source::Wake, mailbox, MAILBOX, Interest::READ)?;
        Ok(Self {
            started: Instant::now(),
            mailbox,
            listener,
            accept_due: None,
            arrivals: VecDeque::new(),
            connections: Table::new(),
            next_serial: 0,
            refused: 0,
            routes,
            core: Core {
                number,
                shared,
                driver,
                now: Duration::ZERO,
                output: Output::default(),
                pool: Pool::default(),
                spare: Spare::default(),
                topics: Topics::default(),
                burst: Burst::default(),
                delivered: Delivered::default(),
                letters: Letters::default(),
                dialer: Dialer::default(),
            },
            read_buffer: vec![0; LONG_READ_BYTES],
            mail: Mail::default(),
            delivery: Delivery::default(),
            deferred: VecDeque::new(),
            wheel: Wheel::new(),
            shutdown_due: None,
        })
    }

    /// Serves until the server shuts down.
    ///
    /// # Errors
    /// If the listener or the driver fails permanently.
    pub(crate) fn run(mut self) -> io::Result<()> {
        loop {
            let timeout = self.timeout();
            self.core.driver.wait(timeout)?;
            self.core.now = self.started.elapsed();
            while let Some(event) = self.core.driver.next() {
                self.handle(event)?;
                self.deliver_if_urgent();
                if self.core.letters.bytes() > LETTERS_BYTES_MAX {
                    self.post();
                }
            }
            self.take_deferred();
            self.take_arrivals()?;
            self.keep_deadlines()?;
            self.post();
            self.dial();
            self.deliver_if_due();
            if let Some(due) = self.shutdown_due
                && (self.connections.is_empty() || self.core.now >= due)
            {
                self.drop_all();
                return Ok(());
            }
        }
    }

    fn timeout(&self) -> Option<Duration> {
        let attempts_max = self.core.shared.options.attempts_max;
        // Delivering and dialing call handlers, which may have written letters or requested more.
        let is_due = self.delivery.lingers()
            || !self.deferred.is_empty()
            || !self.arrivals.is_empty()
            || self.wheel.is_behind()
            || !self.core.letters.is_empty()
            || self.core.dialer.is_ready(attempts_max);
        if is_due {
            return Some(Duration::ZERO);
        }
        let waits = !self.wheel.is_empty()
            || self.accept_due.is_some()
            || self.core.dialer.has_delayed()
            || self.shutdown_due.is_some();
        waits.then_some(TICK)
    }

    fn handle(&mut self, event: Event) -> io::Result<()> {
        match event.token {
            LISTENER => self.handle_listener(event),
            MAILBOX => {
                self.open_mail();
                self.watch_mailbox(event.is_over)
            }
            _ => self.handle_socket(event),
        }
    }

    #[inline]
    fn handle_socket(&mut self, event: Event) -> io::Result<()> {
        if let What::Failed(error) = event.what {
            return Err(error);
        }
        if let Some(key) = self.find(event.token) {
            if event.is_over {
                self.connections[key].watch.input_is_over();
            }
            self.handle_connection(key, event.what);
        }
        Ok(())
    }

    /// Keeps watching the mailbox for further mail.
    fn watch_mailbox(&mut self, is_over: bool) -> io::Result<()> {
        if is_over {
            self.mailbox.input_is_over();
        }
        let core = &mut self.core;
        let mailbox = core.shared.mailboxes[usize::from(core.number)].as_fd();
        core.driver
            .update(mailbox, MAILBOX, &mut self.mailbox, Interest::READ)
    }

    /// Returns the key of the connection with this token, if it still exists.
    #[inline]
    fn find(&self, token: u64) -> Option<usize> {
        let key = token as u32 as usize;
        let connection = self.connections.get(key)?;
        (u64::from(connection.id.serial) == token >> 32).then_some(key)
    }

    fn handle_connection(&mut self, key: usize, what: What) {
        let connection = &mut self.connections[key];
        if connection.connecting {
            return self.take_connected(key);
        }
        match what {
            What::Ready { read, write, lost } => self.handle_ready(key, read, write, lost),
            What::Input(mut input) => {
                let goes_on = connection.gather.is_some();
                connection.watch.learn(input.len(), goes_on);
                self.take_input(key, &mut input);
            }
            What::End => connection.ended = true,
            What::Lost => connection.lost = true,
            What::Unsent(bytes, sent) => self.core.keep_unsent(connection, bytes, sent),
            What::Connection(_) | What::Failed(_) | What::Nothing | What::Shortage => {}
        }
        self.settle(key);
    }

    fn handle_ready(&mut self, key: usize, read: bool, write: bool, lost: bool) {
        let connection = &mut self.connections[key];
        if write && !connection.backlog.is_empty() {
            let stall_due = self.core.stall_due();
            let Core { driver, pool, .. } = &mut self.core;
            connection.write_backlog(driver, pool, stall_due);
            if connection.backlog.is_empty() {
                self.go_on(key);
                self.take_held(key);
            }
        }
        let connection = &mut self.connections[key];
        if lost && !connection.wanted().read {
            connection.lost = true;
        } else if read && !connection.watch.is_receiving() {
            self.read(key);
        }
    }

    /// Ends congestion and tells the handler that the backlog has been written.
    fn go_on(&mut self, key: usize) {
        let connection = &mut self.connections[key];
        connection.congested = false;
        connection.congestion_told = false;
        if let Stage::Open { route, data } = connection.stage {
            self.routes.handlers[usize::from(route)].drain(data, &mut self.core, connection);
        }
    }

    /// Tells the handler that the backlog has reached its limit.
    #[cold]
    fn tell_congestion(&mut self, key: usize) {
        let (core, connection) = (&mut self.core, &mut self.connections[key]);
        connection.congestion_told = true;
        if let Stage::Open { route, data } = connection.stage {
            self.routes.handlers[usize::from(route)].congested(data, core, connection);
        }
        core.flush(connection, &[], &[]);
    }

    /// Writes the output that callbacks have left and updates everything that depends on the state
    /// of the connection. Ends the connection if it is over.
    fn settle(&mut self, key: usize) {
        self.take_held(key);
        let core = &mut self.core;
        let connection = &mut self.connections[key];
        let is_open = matches!(connection.stage, Stage::Open { .. });
        if is_open && connection.engine.wants_transmit() {
            connection.engine.poll_transmit(&mut core.output.cork);
        }
        if !core.output.is_empty() {
            core.flush(connection, &[], &[]);
        }
        if connection.congested && !connection.congestion_told {
            self.tell_congestion(key);
        }
        let core = &mut self.core;
        let connection = &mut self.connections[key];
        if !connection.lost && (is_over(connection) || ends_output(connection)) {
            core.close_tls(connection, None);
        }
        let ends = !connection.lost && is_over(connection);
        // Queued output keeps a connection alive. A backlog does not, once the connection is over.
        let waits = ends && connection.backlog.is_empty() && !core.write_queued(connection);
        if connection.lost || (ends && !waits) {
            return self.end(key);
        }
        if !connection.output_ended && ends_output(connection) && core.write_queued(connection) {
            connection.output_ended = true;
            socket::end_output(&connection.socket);
        }
        let wanted = connection.wanted();
        let updated = core.driver.update(
            connection.socket.as_fd(),
            connection.id.token(),
            &mut connection.watch,
            wanted,
        );
        if updated.is_err() {
            return self.end(key);
        }
        if connection.alarm == 0 || wanted.write || (is_open && connection.engine.is_output_over())
        {
            self.set_alarm(key);
        }
    }

    /// Processes what other threads have left in the mailbox.
    fn open_mail(&mut self) {
        let mut mail = std::mem::take(&mut self.mail);
        self.core.shared.mailboxes[usize::from(self.core.number)].take(&mut mail);
        self.delivery.add(&mut mail.bursts);
        for (index, serial) in mail.resumes.drain(..) {
            if let Some(key) = self.find(u64::from(serial) << 32 | u64::from(index)) {
                self.connections[key].paused = false;
                self.settle(key);
            }
        }
        for pending in mail.connects.drain(..) {
            self.take_pending(pending);
        }
        for adoption in mail.adoptions.drain(..) {
            self.adopt(adoption);
        }
        for answer in mail.answers.drain(..) {
            self.take_answer(answer);
        }
        if mail.shutdown && self.shutdown_due.is_none() {
            // Earlier publications are still delivered.
            self.deliver();
            self.close_all();
        }
        self.mail = mail;
    }
}
