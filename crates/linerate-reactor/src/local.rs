//! A reactor that is a part of another event loop.

mod collect;
mod connection;
mod stream;

#[cfg(unix)]
use std::os::fd::RawFd;
use std::{collections::HashMap, fmt, io, time::Duration};

#[cfg(unix)]
use linerate_proto::portable::Version;

use self::collect::{Collector, Discarder};
pub use self::{
    connection::{LocalConnection, LocalStatus},
    stream::LocalStream,
};
#[cfg(unix)]
use crate::export::{ExportError, Exported, ImportError, ImportOptions};
use crate::{
    adoption::Adoption,
    connection::{
        charge::MemoryUse,
        id::{ConnectionId, Slot},
    },
    core::{events::LocalEvent, io::traffic::Traffic},
    driver::kind::DriverKind,
    options::Options,
    platform::Socket,
    reactor::Reactor,
    route::{Route, pages::Pages, routes::Routes},
    tls::adopted::TlsConnection,
    topics::options::TopicRules,
    worker::{Worker, service::Service},
};

/// What becomes of the messages of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum LocalMessages {
    /// Each message becomes a [`LocalEvent::Message`].
    Collected,
    /// Messages are checked, counted and discarded. No message is kept as a whole.
    Discarded,
}

impl LocalMessages {
    /// Returns the index of the handler.
    fn route(self) -> u16 {
        match self {
            Self::Collected => 0,
            Self::Discarded => 1,
        }
    }
}

/// The server side of WebSockets, and of streaming HTTP responses, on a thread that has an event
/// loop already, for example that of an async runtime.
///
/// There are no callbacks. The owner adopts sockets whose requests have been answered, and then, on
/// one thread, does this again and again:
///
/// 1. wait until the [descriptor](Self::descriptor) is readable or
///    [`poll_timeout`](Self::poll_timeout) has passed;
/// 2. call [`turn`](Self::turn), which handles what is ready and never blocks;
/// 3. take the [events](Self::poll_event);
/// 4. send on any [`connection`](Self::connection) or [`stream`](Self::stream).
///
/// The owner limits the number of connections; [`Options::connections_max`] does not apply.
///
/// ```
/// use std::{io, time::Duration};
///
/// use linerate_reactor::{LocalEvent, LocalReactor, Message, MessageKind, Options};
///
/// /// Echoes what has arrived.
/// fn turn(reactor: &mut LocalReactor) -> io::Result<()> {
///     reactor.turn()?;
///     while let Some(event) = reactor.poll_event() {
///         if let LocalEvent::Message { connection, kind: MessageKind::Binary, payload } = event
///             && let Some(mut connection) = reactor.connection(connection)
///         {
///             // This fails only if the connection is closing.
///             _ = connection.send(Message::Binary(&payload));
///         }
///     }
///     Ok(())
/// }
///
/// let mut reactor = LocalReactor::new(Options::default())?;
/// turn(&mut reactor)?;
/// // Nothing is left to do until a connection is adopted.
/// assert_eq!(reactor.poll_timeout(), None);
/// # Ok::<(), io::Error>(())
/// ```
pub struct LocalReactor {
    worker: Worker,
    /// The connection whose output is in the cork.
    corked: Option<Slot>,
}

impl LocalReactor {
    /// Creates a reactor without connections. Options that concern listeners, opening handshakes,
    /// topics and other threads have no effect. The driver is never io_uring, because the
    /// descriptor of a ring does not become readable in all cases.
    ///
    /// # Errors
    /// If the process is out of file descriptors.
    pub fn new(mut options: Options) -> io::Result<Self> {
        if options.driver == DriverKind::IoUring {
            options.driver = DriverKind::default();
        }
        let reactor = Reactor::new(options, TopicRules::default(), 1, None, None)?;
        let routes = Routes {
            by_path: HashMap::new(),
            fallback: None,
            pages: Pages(HashMap::new()),
            handlers: vec![
                Box::new(Route::new(Collector)),
                Box::new(Route::new(Discarder)),
            ],
        };
        Ok(Self {
            worker: Worker::new(0, None, reactor, routes)?,
            corked: None,
        })
    }

    /// Continues a connection whose request another server has answered with 101. What was read
    /// behind the request is handled at once.
    ///
    /// # Errors
    /// If the driver cannot watch the socket, which is then closed.
    pub fn adopt(
        &mut self,
        adoption: Adoption,
        messages: LocalMessages,
    ) -> io::Result<ConnectionId> {
        self.uncork();
        let service = &mut self.worker.service;
        service.parts.core.begin_turn();
        service.parts.core.reactor.count_accepted();
        let slot = service.adopt_on(Some(messages.route()), adoption.answered())?;
        Ok(ConnectionId { worker: 0, slot })
    }

    /// Continues a connection on which another server has read a request, and streams the response:
    /// what is sent on the [`stream`](Self::stream) is written as it is, the head included. What
    /// the peer sends is read and ignored. The stream ends when the peer closes its side of the
    /// connection.
    ///
    /// ```
    /// use std::{io, net::TcpStream};
    ///
    /// use linerate_reactor::{ConnectionId, LocalReactor};
    ///
    /// /// Begins a response of unknown length.
    /// fn respond(reactor: &mut LocalReactor, socket: TcpStream) -> io::Result<ConnectionId> {
    ///     let id = reactor.adopt_stream(socket)?;
    ///     if let Some(mut stream) = reactor.stream(id) {
    ///         stream.send(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhello");
    ///         stream.flush();
    ///     }
    ///     Ok(id)
    /// }
    /// # _ = respond;
    /// ```
    ///
    /// # Errors
    /// If the driver cannot watch the socket, which is then closed.
    pub fn adopt_stream(&mut self, socket: impl Into<Socket>) -> io::Result<ConnectionId> {
        self.adopt_any_stream(socket.into(), None)
    }

    /// Like [`adopt_stream`](Self::adopt_stream), for a connection that is encrypted. What the
    /// other server has not sent is sent before anything else.
    ///
    /// # Errors
    /// If the driver cannot watch the socket, which is then closed.
    #[cfg(feature = "rustls")]
    pub fn adopt_tls_stream(
        &mut self,
        socket: impl Into<Socket>,
        tls: TlsConnection,
    ) -> io::Result<ConnectionId> {
        self.adopt_any_stream(socket.into(), Some(tls))
    }

    /// Takes a connection out of the reactor, so that another process can continue it without its
    /// peer noticing. The output in the cork is written; what the kernel does not accept is a part
    /// of the state, and so is input that was read and not handled yet.
    ///
    /// The connection no longer exists here, and has no further events. Those that have been
    /// recorded remain: take them with [`poll_event`](Self::poll_event), best before the export,
    /// so that what they cause is sent on this connection.
    ///
    /// If the other process does not take the connection, [`import`](Self::import) it again. The
    /// owner can keep a duplicate of the socket for this.
    ///
    /// ```
    /// use linerate_reactor::{
    ///     ConnectionId, ExportError, Exported, LocalReactor, portable::Version,
    /// };
    ///
    /// /// Exports the connections that can be exported now.
    /// fn export_all(reactor: &mut LocalReactor, open: &mut Vec<ConnectionId>) -> Vec<Exported> {
    ///     let mut exported = Vec::new();
    ///     open.retain(|&connection| match reactor.export(connection, Version::NEWEST) {
    ///         Ok(connection) => {
    ///             exported.push(connection);
    ///             false
    ///         }
    ///         // It continues here. If it has ended, an event reports it.
    ///         Err(_) => true,
    ///     });
    ///     exported
    /// }
    /// # let mut reactor = LocalReactor::new(Default::default())?;
    /// # assert!(export_all(&mut reactor, &mut Vec::new()).is_empty());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the connection has ended or cannot be exported now. It then continues as it was.
    #[cfg(unix)]
    pub fn export(&mut self, id: ConnectionId, version: Version) -> Result<Exported, ExportError> {
        if self.corked != Some(id.slot) {
            self.uncork();
        }
        let service = &mut self.worker.service;
        let key = service.connections.find(id.slot.token());
        let key = key.ok_or(ExportError::Ended)?;
        // If this fails, the next turn settles the connection.
        self.corked = Some(id.slot);
        let (socket, state) = service.export(key, version)?;
        self.corked = None;
        Ok(Exported { socket, state })
    }

    /// Continues a connection that was [exported](Self::export), by another process or by this one.
    /// Output that waits is written before everything else, and input that waits is handled at
    /// once.
    ///
    /// The memory of what waits is in proportion to the length of `state`, and counts like that of
    /// other connections. A backlog above [`Options::backlog_bytes_max`] stops the input until it
    /// is written. Deadlines continue, but are not later than those of a new connection.
    ///
    /// ```
    /// use std::io;
    ///
    /// use linerate_reactor::{
    ///     ConnectionId, Exported, ImportError, ImportOptions, LocalReactor,
    /// };
    ///
    /// /// Continues a connection for which another process was not found.
    /// fn take_back(
    ///     reactor: &mut LocalReactor,
    ///     exported: Exported,
    /// ) -> Result<ConnectionId, ImportError> {
    ///     reactor.import(exported.socket, &exported.state, &ImportOptions::new())
    /// }
    /// # _ = take_back;
    /// ```
    ///
    /// # Errors
    /// If the state is not one that a connection can be in, or the driver cannot watch the socket.
    /// The descriptor `socket` is then closed.
    #[cfg(unix)]
    pub fn import(
        &mut self,
        socket: impl Into<Socket>,
        state: &[u8],
        options: &ImportOptions,
    ) -> Result<ConnectionId, ImportError> {
        self.uncork();
        let service = &mut self.worker.service;
        let slot = service.import(socket.into(), state, options)?;
        Ok(ConnectionId { worker: 0, slot })
    }

    /// Handles what is ready, without blocking.
    ///
    /// # Errors
    /// If the driver fails permanently.
    pub fn turn(&mut self) -> io::Result<()> {
        self.uncork();
        let service = &mut self.worker.service;
        for slot in service.parts.core.events.take_stopped() {
            service.resume(slot);
        }
        self.worker.turn(Some(Duration::ZERO))
    }

    /// Removes and returns the oldest event.
    pub fn poll_event(&mut self) -> Option<LocalEvent> {
        self.worker.service.parts.core.events.pop()
    }

    /// Returns a WebSocket, unless it has ended.
    pub fn connection(&mut self, id: ConnectionId) -> Option<LocalConnection<'_>> {
        let (service, key) = self.cork(id, false)?;
        Some(LocalConnection::new(service, key))
    }

    /// Returns a [stream](Self::adopt_stream), unless it has ended.
    pub fn stream(&mut self, id: ConnectionId) -> Option<LocalStream<'_>> {
        let (service, key) = self.cork(id, true)?;
        Some(LocalStream::new(service, key))
    }

    /// Returns the state of a WebSocket or stream, unless it has ended.
    pub fn status(&self, id: ConnectionId) -> Option<LocalStatus> {
        let service = &self.worker.service;
        let key = service.connections.find(id.slot.token())?;
        let corked = match self.corked == Some(id.slot) {
            true => service.parts.core.io.cork.len(),
            false => 0,
        };
        let connection = &service.connections[key];
        Some(LocalStatus {
            backlog_bytes: connection.backlog.len() + corked,
            input_bytes: connection.input_bytes(),
            is_open: connection.is_open(),
        })
    }

    /// Sets how long messages that begin from now on may take to arrive; see
    /// [`Options::message_timeout`].
    pub fn set_message_timeout(&mut self, timeout: Option<Duration>) {
        self.worker.service.parts.core.message_timeout = timeout;
    }

    /// Returns how long the owner may wait for the descriptor before the next turn: not at all
    /// while there is something to do, and without limit if nothing is due.
    pub fn poll_timeout(&self) -> Option<Duration> {
        let core = &self.worker.service.parts.core;
        let has_found_all = core.io.driver.has_found_all();
        match self.corked.is_none() && core.events.is_empty() && has_found_all {
            true => self.worker.timeout(),
            false => Some(Duration::ZERO),
        }
    }

    /// Returns the descriptor that is readable if a turn has something to handle. It is open while
    /// the reactor exists. Windows has no such descriptor; call [`turn`](Self::turn) every few
    /// milliseconds there.
    #[cfg(unix)]
    pub fn descriptor(&self) -> RawFd {
        let driver = &self.worker.service.parts.core.io.driver;
        driver.descriptor().expect("the driver is not io_uring")
    }

    /// Returns the number of connections.
    pub fn connections(&self) -> usize {
        let reactor = &self.worker.service.parts.core.reactor;
        reactor.counters.connections()
    }

    /// Returns the memory that connections use for what their peers send or do not read, including
    /// messages that the owner has not taken. Inflating draws on [`Budget`](crate::Budget).
    pub fn memory(&self) -> MemoryUse {
        let core = &self.worker.service.parts.core;
        let mut used = core.io.memory.used;
        used.input_bytes += core.events.message_bytes() as u64;
        used
    }

    /// Returns what has been received and sent since this was last called.
    pub fn take_traffic(&mut self) -> Traffic {
        std::mem::take(&mut self.worker.service.parts.core.io.traffic)
    }

    fn adopt_any_stream(
        &mut self,
        socket: Socket,
        tls: Option<TlsConnection>,
    ) -> io::Result<ConnectionId> {
        self.uncork();
        let service = &mut self.worker.service;
        service.parts.core.begin_turn();
        service.parts.core.reactor.count_accepted();
        let slot = service.adopt_stream(socket, tls)?;
        Ok(ConnectionId { worker: 0, slot })
    }

    /// Prepares the cork for a WebSocket or a stream; returns its key, unless it has ended.
    fn cork(&mut self, id: ConnectionId, is_stream: bool) -> Option<(&mut Service, usize)> {
        if self.corked != Some(id.slot) {
            self.uncork();
        }
        let service = &mut self.worker.service;
        let key = service.connections.find(id.slot.token())?;
        if service.connections[key].is_stream() != is_stream {
            return None;
        }
        self.corked = Some(id.slot);
        Some((service, key))
    }

    /// Writes the output in the cork.
    fn uncork(&mut self) {
        if let Some(slot) = self.corked.take() {
            self.worker.service.settle_slot(slot);
        }
    }
}

impl fmt::Debug for LocalReactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalReactor")
            .field("connections", &self.connections())
            .finish_non_exhaustive()
    }
}
