//! A worker: one thread with its listener, its driver and its connections.

mod deliver;
mod opening;

use std::{
    collections::HashMap,
    io,
    os::fd::{AsFd, OwnedFd},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use linerate_proto::{
    CloseCode, Engine, Server,
    engine::{State, Timeout},
    handshake::RequestReader,
};

use crate::{
    ConnectionId,
    burst::Burst,
    connection::{Connection, Opening, Output, Remainder, Spare, Stage},
    driver::{Driver, Interest, Ready},
    mailbox::Mail,
    pool::Pool,
    remote::Shared,
    route::Serve,
    socket::{self, Accepted, Received},
    topics::Topics,
    wheel::{TICK, Tick, Wheel, tick_after, tick_at},
};

/// The size of a read: many small messages, or a good part of a large one, and still in the cache.
const READ_BYTES: usize = 256 << 10;

/// Reads of one connection before the others have their turn.
const READS_MAX: usize = 4;

/// Connections accepted before the open ones have their turn.
const ACCEPTS_MAX: usize = 64;

/// Publications are delivered before the end of a turn once they take so many bytes.
const BURST_BYTES_MAX: usize = 256 << 10;

/// What the driver reports for the listener and the mailbox; no connection has these indices.
const LISTENER: u64 = u64::MAX;
const MAILBOX: u64 = u64::MAX - 1;

/// What all connections of a worker share, and callbacks reach.
pub(crate) struct Core {
    pub(crate) shared: Arc<Shared>,
    /// The time since the worker started, as of this turn.
    pub(crate) now: Duration,
    pub(crate) output: Output,
    pub(crate) pool: Pool,
    pub(crate) spare: Spare,
    pub(crate) topics: Topics,
    pub(crate) burst: Burst,
}

impl Core {
    /// Writes the output and `tail` behind it.
    #[inline]
    pub(crate) fn flush(&mut self, connection: &mut Connection, input: &[u8], tail: &[u8]) {
        let stall_due = self.stall_due();
        self.output
            .flush(connection, input, tail, &mut self.pool, stall_due);
        self.limit_backlog(connection);
    }

    /// Writes the output and `tail` behind it, whose memory may become the backlog.
    pub(crate) fn flush_owned(&mut self, connection: &mut Connection, input: &[u8], tail: Vec<u8>) {
        let stall_due = self.stall_due();
        self.output
            .flush_owned(connection, input, tail, &mut self.pool, stall_due);
        self.limit_backlog(connection);
    }

    /// Returns when a backlog is given up of which nothing is taken from now on.
    fn stall_due(&self) -> Tick {
        tick_after(self.now + self.shared.options.write_timeout)
    }

    /// Counts a connection less.
    fn count_closed(&self) {
        let counter = &self.shared.counters.connections;
        counter.fetch_sub(1, Ordering::Relaxed);
    }

    fn limit_backlog(&self, connection: &mut Connection) {
        if connection.backlog.len() >= self.shared.options.backlog_bytes_max.max(1) {
            connection.congested = true;
        }
    }
}

/// The routes of a server, as one worker has them.
pub(crate) struct Routes {
    pub(crate) by_path: HashMap<String, u16>,
    pub(crate) fallback: Option<u16>,
    pub(crate) handlers: Vec<Box<dyn Serve>>,
}

/// What one thread does.
pub(crate) struct Worker {
    number: u16,
    started: Instant,
    driver: Driver,
    /// None once the server shuts down.
    listener: Option<OwnedFd>,
    /// Accepting waits for a file to become free, or for this tick.
    accept_due: Option<Tick>,
    connections: slab::Slab<Connection>,
    next_serial: u32,
    /// How many connections are being refused.
    refused: usize,
    routes: Routes,
    core: Core,
    read_buffer: Vec<u8>,
    mail: Mail,
    /// The subscribers that get what is being delivered.
    subscribers: Vec<u32>,
    wheel: Wheel,
    /// Entries of the wheel whose tick has come.
    due: Vec<u64>,
    /// When the connections that are left at shutdown are dropped.
    shutdown_due: Option<Duration>,
}

impl Worker {
    pub(crate) fn new(
        number: u16,
        listener: OwnedFd,
        shared: Arc<Shared>,
        routes: Routes,
    ) -> io::Result<Self> {
        let driver = Driver::new()?;
        driver.add(listener.as_fd(), LISTENER, Interest::READ)?;
        driver.add(
            shared.mailboxes[usize::from(number)].as_fd(),
            MAILBOX,
            Interest::READ,
        )?;
        Ok(Self {
            number,
            started: Instant::now(),
            driver,
            listener: Some(listener),
            accept_due: None,
            connections: slab::Slab::new(),
            next_serial: 0,
            refused: 0,
            routes,
            core: Core {
                shared,
                now: Duration::ZERO,
                output: Output::default(),
                pool: Pool::default(),
                spare: Spare::default(),
                topics: Topics::default(),
                burst: Burst::default(),
            },
            read_buffer: vec![0; READ_BYTES],
            mail: Mail::default(),
            subscribers: Vec::new(),
            wheel: Wheel::new(),
            due: Vec::new(),
            shutdown_due: None,
        })
    }

    /// Serves until the server shuts down.
    ///
    /// # Errors
    /// The listener or the driver failed for good.
    pub(crate) fn run(mut self) -> io::Result<()> {
        loop {
            let ready = self.driver.wait(self.timeout())?;
            self.core.now = self.started.elapsed();
            for index in 0..ready {
                self.handle(self.driver.ready(index))?;
                if self.core.burst.bytes() > BURST_BYTES_MAX {
                    self.deliver();
                }
            }
            self.keep_deadlines()?;
            self.deliver();
            if let Some(due) = self.shutdown_due
                && (self.connections.is_empty() || self.core.now >= due)
            {
                self.drop_all();
                return Ok(());
            }
        }
    }

    fn timeout(&self) -> Option<Duration> {
        let waits =
            !self.wheel.is_empty() || self.accept_due.is_some() || self.shutdown_due.is_some();
        waits.then_some(TICK)
    }

    fn handle(&mut self, ready: Ready) -> io::Result<()> {
        match ready.token {
            LISTENER => self.accept(),
            MAILBOX => {
                self.open_mail();
                Ok(())
            }
            token => {
                if let Some(key) = self.find(token) {
                    self.handle_connection(key, ready);
                }
                Ok(())
            }
        }
    }

    /// Returns the key of the connection with this token, if it is still there.
    #[inline]
    fn find(&self, token: u64) -> Option<usize> {
        let key = token as u32 as usize;
        let connection = self.connections.get(key)?;
        (u64::from(connection.id.serial) == token >> 32).then_some(key)
    }

    /// Accepts connections that wait.
    fn accept(&mut self) -> io::Result<()> {
        for _ in 0..ACCEPTS_MAX {
            let Some(listener) = &self.listener else {
                break;
            };
            match socket::accept(listener) {
                Ok(Accepted::Connection(socket)) => self.start(socket),
                Ok(Accepted::Nothing) => break,
                Ok(Accepted::Shortage) => {
                    // The listener stays ready; to be told so again and again would be to spin.
                    self.driver
                        .modify(listener.as_fd(), LISTENER, Interest::NONE)?;
                    self.accept_due = Some(tick_after(self.core.now));
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Goes on accepting after a shortage.
    fn resume_accepting(&mut self) -> io::Result<()> {
        if let (Some(listener), Some(_)) = (&self.listener, self.accept_due.take()) {
            self.driver
                .modify(listener.as_fd(), LISTENER, Interest::READ)?;
        }
        Ok(())
    }

    /// Starts with a connection that was accepted.
    fn start(&mut self, socket: OwnedFd) {
        let Core { shared, now, .. } = &self.core;
        let open = shared.counters.connections.fetch_add(1, Ordering::Relaxed);
        let entry = self.connections.vacant_entry();
        let key = entry.key();
        let id = ConnectionId {
            worker: self.number,
            index: key as u32,
            serial: self.next_serial,
        };
        self.next_serial = self.next_serial.wrapping_add(1);
        let time_max = shared.options.handshake.time_max;
        let connection = Connection {
            socket,
            id,
            stage: Stage::Opening(Box::new(Opening {
                reader: RequestReader::new(shared.options.handshake),
                due: *now + time_max,
            })),
            engine: Engine::new(Server, shared.config.clone(), *now),
            gather: None,
            backlog: Remainder::default(),
            held: Remainder::default(),
            stall_due: 0,
            alarm: 0,
            interest: Interest::READ,
            paused: false,
            congested: false,
            lost: false,
            ended: false,
            output_ended: false,
        };
        let added = self
            .driver
            .add(connection.socket.as_fd(), token(id), Interest::READ);
        let is_overload = open >= shared.options.connections_max;
        entry.insert(connection);
        if added.is_err() {
            return self.end(key);
        }
        if is_overload {
            self.refuse_overload(key);
        }
        self.settle(key);
    }

    fn handle_connection(&mut self, key: usize, ready: Ready) {
        let connection = &mut self.connections[key];
        if ready.write && !connection.backlog.is_empty() {
            let stall_due = self.core.stall_due();
            connection.write_backlog(&mut self.core.pool, stall_due);
            if connection.backlog.is_empty() {
                self.go_on(key);
                self.take_held(key);
            }
        }
        let connection = &mut self.connections[key];
        if ready.lost && !connection.wanted().read {
            connection.lost = true;
        } else if ready.read || ready.lost {
            self.read(key);
        }
        self.settle(key);
    }

    /// Reads what there is, up to a bound, and hands it over.
    fn read(&mut self, key: usize) {
        let mut buffer = std::mem::take(&mut self.read_buffer);
        for _ in 0..READS_MAX {
            let connection = &mut self.connections[key];
            if !connection.wanted().read {
                break;
            }
            match socket::receive(&connection.socket, &mut buffer) {
                Received::Bytes(bytes) => {
                    self.take_input(key, &mut buffer[..bytes]);
                    if bytes < buffer.len() {
                        break;
                    }
                }
                Received::End => connection.ended = true,
                Received::Nothing => break,
                Received::Lost => connection.lost = true,
            }
        }
        self.read_buffer = buffer;
    }

    /// Hands over what a read gave; what must not be looked at yet is kept.
    fn take_input(&mut self, key: usize, input: &mut [u8]) {
        let mut done = 0;
        if let Stage::Opening(_) = self.connections[key].stage {
            done = self.take_opening(key, input);
        }
        done += self.take_frames(key, &mut input[done..]);
        let connection = &mut self.connections[key];
        connection.held.append(&input[done..], &mut self.core.pool);
    }

    /// Hands over frames; returns how many bytes are done with. All output that refers to `input`
    /// has been written or copied then.
    #[inline]
    fn take_frames(&mut self, key: usize, input: &mut [u8]) -> usize {
        let connection = &mut self.connections[key];
        let Stage::Open { route, data } = connection.stage else {
            // What a client sends behind a refused request is nobody's.
            return input.len();
        };
        let core = &mut self.core;
        let done = self.routes.handlers[usize::from(route)].input(data, core, connection, input);
        if core.output.has_splices() {
            core.flush(connection, input, &[]);
        }
        done
    }

    /// Hands over the input that was kept.
    fn take_held(&mut self, key: usize) {
        let connection = &mut self.connections[key];
        if connection.held.is_empty() || connection.is_stopped() {
            return;
        }
        let mut held = std::mem::take(&mut connection.held);
        let done = self.take_frames(key, held.rest_mut());
        held.skip(done, &mut self.core.pool);
        self.connections[key].held = held;
    }

    /// Does what the end of a backlog allows.
    fn go_on(&mut self, key: usize) {
        let connection = &mut self.connections[key];
        connection.congested = false;
        if let Stage::Open { route, data } = connection.stage {
            self.routes.handlers[usize::from(route)].drain(data, &mut self.core, connection);
        }
    }

    /// Writes what callbacks have left, and brings everything in line with what has become of the
    /// connection. Ends it if it is over.
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
        if connection.lost || is_over(connection) {
            return self.end(key);
        }
        if connection.backlog.is_empty() && !connection.output_ended && ends_output(connection) {
            connection.output_ended = true;
            socket::end_output(&connection.socket);
        }
        let wanted = connection.wanted();
        if wanted != connection.interest {
            connection.interest = wanted;
            let modified =
                self.driver
                    .modify(connection.socket.as_fd(), token(connection.id), wanted);
            if modified.is_err() {
                return self.end(key);
            }
        }
        if connection.alarm == 0 || wanted.write || (is_open && connection.engine.is_output_over())
        {
            self.set_alarm(key);
        }
    }

    /// Sees to it that the connection is looked at when its next deadline has passed.
    fn set_alarm(&mut self, key: usize) {
        let connection = &mut self.connections[key];
        let Some(due) = deadline(connection) else {
            return;
        };
        if connection.alarm == 0 || due < connection.alarm {
            connection.alarm = self.wheel.push(due, token(connection.id));
        }
    }

    /// Does what is due.
    fn keep_deadlines(&mut self) -> io::Result<()> {
        let now = tick_at(self.core.now);
        if self.accept_due.is_some_and(|due| now >= due) {
            self.resume_accepting()?;
        }
        let mut due = std::mem::take(&mut self.due);
        while let Some(tick) = self.wheel.turn(now, &mut due) {
            for token in due.drain(..) {
                if let Some(key) = self.find(token)
                    && self.connections[key].alarm == tick
                {
                    self.connections[key].alarm = 0;
                    self.ring(key, now);
                }
            }
        }
        self.due = due;
        Ok(())
    }

    /// Looks at the deadlines of one connection.
    fn ring(&mut self, key: usize, now: Tick) {
        let connection = &mut self.connections[key];
        if !connection.backlog.is_empty() && now >= connection.stall_due {
            connection.lost = true;
        }
        match &connection.stage {
            Stage::Opening(opening) if self.core.now >= opening.due => self.refuse_late(key),
            Stage::Refused { due } if now >= *due => connection.lost = true,
            Stage::Open { .. } if engine_has_deadline(connection) => {
                match connection.engine.handle_timeout(self.core.now) {
                    // A keepalive that failed has queued our Close frame.
                    Ok(()) | Err(Timeout::Keepalive(_)) => {}
                    Err(_) => connection.lost = true,
                }
            }
            _ => {}
        }
        self.settle(key);
    }

    /// Takes what other threads have left.
    fn open_mail(&mut self) {
        let mut mail = std::mem::take(&mut self.mail);
        self.core.shared.mailboxes[usize::from(self.number)].take(&mut mail);
        self.deliver_here(&mail.burst);
        for (index, serial) in mail.resumes.drain(..) {
            if let Some(key) = self.find(u64::from(serial) << 32 | u64::from(index)) {
                self.connections[key].paused = false;
                self.settle(key);
            }
        }
        if mail.shutdown && self.shutdown_due.is_none() {
            self.close_all();
        }
        self.mail = mail;
    }

    /// Starts the end: closes the listener and all connections.
    fn close_all(&mut self) {
        self.listener = None;
        self.accept_due = None;
        let close_timeout = self.core.shared.config.close_timeout;
        self.shutdown_due = Some(self.core.now + close_timeout + Duration::from_secs(1));
        for key in self.keys() {
            let connection = &mut self.connections[key];
            match connection.stage {
                Stage::Open { .. } => {
                    // The reason is short enough, and nothing else can fail.
                    _ = connection.engine.close(
                        CloseCode::GOING_AWAY,
                        "server shuts down",
                        self.core.now,
                    );
                    // Our end does not wait for a handler that had stopped the input.
                    connection.paused = false;
                }
                Stage::Opening(_) => connection.lost = true,
                Stage::Refused { .. } => {}
            }
            self.settle(key);
        }
    }

    fn drop_all(&mut self) {
        for key in self.keys() {
            self.end(key);
        }
    }

    fn keys(&self) -> Vec<usize> {
        self.connections.iter().map(|(key, _)| key).collect()
    }

    /// Ends a connection: tells the handler and gives back what it held.
    fn end(&mut self, key: usize) {
        let mut connection = self.connections.remove(key);
        match connection.stage {
            Stage::Open { route, data } => {
                let closed = connection.engine.handle_eof();
                let route = &mut self.routes.handlers[usize::from(route)];
                route.close(data, &mut self.core, &mut connection, closed);
                self.core.topics.unsubscribe_all(connection.id.index);
            }
            Stage::Refused { .. } => self.refused -= 1,
            Stage::Opening(_) => {}
        }
        if !matches!(connection.stage, Stage::Refused { .. }) {
            self.core.count_closed();
        }
        let Core { pool, spare, .. } = &mut self.core;
        connection.backlog.clear(pool);
        connection.held.clear(pool);
        if let Some(mut gather) = connection.gather.take() {
            pool.give(gather.take());
            spare.give(gather);
        }
        // Closes the socket, so that a file is free.
        drop(connection);
        if self.accept_due.is_some() {
            self.accept_due = Some(tick_at(self.core.now));
        }
    }
}

/// Returns what the driver reports for this connection.
const fn token(id: ConnectionId) -> u64 {
    (id.serial as u64) << 32 | id.index as u64
}

/// Returns whether nothing is left to be done for a connection but to close its socket.
fn is_over(connection: &Connection) -> bool {
    let written = connection.backlog.is_empty();
    match connection.stage {
        Stage::Open { .. } if connection.ended => written || !connection.engine.is_input_over(),
        // §7.1.1: the server closes the TCP connection first. Both Close frames have passed, so
        // that no input is left that would turn this into a reset.
        Stage::Open { .. } => written && connection.engine.state() == State::Closed,
        Stage::Opening(_) => connection.ended,
        Stage::Refused { .. } => connection.ended && written,
    }
}

/// Returns whether our output ends once it is written, while input is read on and ignored, so that
/// closing does not reset the connection before the peer has read why.
fn ends_output(connection: &Connection) -> bool {
    match connection.stage {
        Stage::Open { .. } => connection.engine.ends_stream(),
        Stage::Opening(_) => false,
        Stage::Refused { .. } => true,
    }
}

/// Returns the tick at which something is due for a connection.
fn deadline(connection: &Connection) -> Option<Tick> {
    let stall = (!connection.backlog.is_empty()).then_some(connection.stall_due);
    let stage = match &connection.stage {
        Stage::Opening(opening) => Some(tick_after(opening.due)),
        Stage::Refused { due } => Some(*due),
        Stage::Open { .. } if engine_has_deadline(connection) => {
            connection.engine.poll_timeout().map(tick_after)
        }
        Stage::Open { .. } => None,
    };
    stall.into_iter().chain(stage).min()
}

/// Returns whether the engine's deadlines count: a peer whose input is not read can't prove that it
/// is alive, but it has to end the closing handshake in time.
fn engine_has_deadline(connection: &Connection) -> bool {
    !connection.is_stopped() || connection.engine.is_output_over()
}
