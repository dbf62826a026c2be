//! The connections of a worker's clients on the reactor.

use std::{io, sync::Arc, time::Duration};

use linerate::{Config, Deflate, Traffic, axum::StreamUpgrade};
use linerate_budget::{Account, Share};
#[cfg(unix)]
use linerate_proto::portable::Version;
use linerate_reactor::{ConnectionId, LocalConnection, LocalMessages, LocalReactor, LocalStream};
#[cfg(unix)]
use linerate_reactor::{Exported, ImportError, ImportOptions};
use slab::Slab;

use super::super::{
    DATA_BYTES_MAX,
    wire::{Compression, close_frame},
};
use super::chunks;
#[cfg(unix)]
use super::moved::{MovedConnection, UNREAD_BYTES_MAX};
use crate::{
    node::Accounts,
    protocol::{
        Block,
        codes::Disconnect,
        dialect::{StreamTransport, Transport, WebSocketTransport},
    },
    server::{Detached, adoption},
    session::Settings,
};

/// The reactor of a worker, and the state of each client's output.
pub(super) struct Table {
    pub(super) reactor: LocalReactor,
    links: Slab<Link>,
    /// The key of the client of each connection, by the index of the connection.
    keys: Vec<usize>,
    /// The clients whose sessions have something to do.
    changed: Vec<usize>,
    /// The settings of the newest connections.
    config: Arc<Config>,
    /// How long messages that begin now may take to arrive.
    pub(super) message_timeout: Duration,
    backlogs: Share,
    messages: Share,
    messages_sent: u64,
}

/// The output of one client.
#[derive(Debug)]
struct Link {
    /// `None` until the connection is open.
    connection: Option<ConnectionId>,
    transport: &'static Transport,
    compression: Option<Box<Compression>>,
    /// True if the client is in the list of changed ones.
    is_changed: bool,
    /// True while no input is read.
    is_paused: bool,
}

/// The open connection of a client.
enum Output<'a> {
    Stream(LocalStream<'a>, &'static StreamTransport),
    WebSocket(LocalConnection<'a>, &'static WebSocketTransport),
}

impl Table {
    pub(super) fn new(reactor: LocalReactor, accounts: &Accounts) -> Self {
        Self {
            reactor,
            links: Slab::new(),
            keys: Vec::new(),
            changed: Vec::new(),
            config: Arc::default(),
            message_timeout: Duration::MAX,
            backlogs: accounts.backlogs.share(0),
            messages: accounts.messages.share(0),
            messages_sent: 0,
        }
    }

    /// Adds a client whose connection is not open yet; returns its key.
    pub(super) fn add(&mut self, transport: &'static Transport) -> usize {
        self.links.insert(Link {
            connection: None,
            transport,
            compression: None,
            is_changed: false,
            is_paused: false,
        })
    }

    /// Removes a client. Its connection continues until the closing handshake is over.
    pub(super) fn remove(&mut self, key: usize) {
        self.links.remove(key);
    }

    /// Opens the WebSocket of a client.
    ///
    /// # Errors
    /// If the kernel refuses to watch the socket.
    pub(super) fn open(
        &mut self,
        key: usize,
        upgrade: StreamUpgrade,
        options: &ConnectionOptions,
    ) -> io::Result<()> {
        self.configure(options);
        let adoption = adoption(upgrade.stream, upgrade.request)?;
        let mut adoption = adoption.with_config(self.config.clone());
        if let (Some(agreed), Some(deflate)) = (upgrade.compression, &options.deflate) {
            adoption = adoption.with_deflate(agreed, deflate);
        }
        let id = self.reactor.adopt(adoption, options.messages)?;
        self.links[key].compression = self.compression(id, options).map(Box::new);
        self.connect(key, id);
        Ok(())
    }

    /// Opens the stream of a client with the head of the response.
    ///
    /// # Errors
    /// If the socket cannot leave the runtime, or the kernel refuses to watch it.
    pub(super) fn open_stream(&mut self, key: usize, detached: Detached) -> io::Result<()> {
        let socket = detached.socket.into_std()?;
        let id = match detached.tls {
            Some(tls) => self.reactor.adopt_tls_stream(socket, tls)?,
            None => self.reactor.adopt_stream(socket)?,
        };
        if let Some(mut stream) = self.reactor.stream(id) {
            // Written with the first chunk, or at the next turn.
            stream.send(&detached.head);
        }
        self.connect(key, id);
        Ok(())
    }

    /// Continues the connection of a client that was [exported](Self::export), by another process
    /// or by this one.
    ///
    /// # Errors
    /// If the state is invalid, or the kernel refuses to watch the socket.
    #[cfg(unix)]
    pub(super) fn import(
        &mut self,
        key: usize,
        connection: MovedConnection,
        options: &ConnectionOptions,
    ) -> Result<(), ImportError> {
        self.configure(options);
        let mut import = ImportOptions::new().with_config(self.config.clone());
        if let Some(deflate) = &options.deflate {
            import = import.with_deflate(deflate);
        }
        let socket = match Arc::try_unwrap(connection.socket) {
            Ok(socket) => socket,
            Err(shared) => shared.try_clone()?,
        };
        let id = self.reactor.import(socket, &connection.state, &import)?;
        let is_here = self.links[key].compression.is_some();
        if !is_here && let Some(mut compression) = self.compression(id, options) {
            // What the other process has sent is not among the blocks of this one.
            compression.leave();
            self.links[key].compression = Some(Box::new(compression));
        }
        self.connect(key, id);
        self.pause(id, self.links[key].is_paused);
        Ok(())
    }

    /// Returns whether the connection of a client is open, and what it has received is not too much
    /// to hand over.
    #[cfg(unix)]
    pub(super) fn is_movable(&self, key: usize) -> bool {
        let status = self.status(key);
        status.is_some_and(|status| status.is_open && status.input_bytes <= UNREAD_BYTES_MAX)
    }

    /// Takes the connection of a client out of the reactor, without closing it. Returns `None` if
    /// it is closing, or cannot be handed over at the moment.
    #[cfg(unix)]
    pub(super) fn export(&mut self, key: usize, version: Version) -> Option<Exported> {
        let id = self.links[key].connection?;
        match self.reactor.export(id, version) {
            Ok(exported) => {
                self.links[key].connection = None;
                Some(exported)
            }
            Err(error) => {
                tracing::debug!(%error, "connection stays in this process");
                None
            }
        }
    }

    /// Stores the settings of the newest connections, which may have been reloaded.
    fn configure(&mut self, options: &ConnectionOptions) {
        if *self.config != options.config {
            self.config = Arc::new(options.config);
        }
        self.message_timeout = options.message_timeout;
        let message_timeout = Some(self.message_timeout);
        self.reactor.set_message_timeout(message_timeout);
    }

    fn compression(
        &mut self,
        id: ConnectionId,
        options: &ConnectionOptions,
    ) -> Option<Compression> {
        let agreed = self.reactor.connection(id)?.compression();
        Compression::new(options.deflate, agreed, options.compressed.clone())
    }

    /// Stores the connection of a client.
    fn connect(&mut self, key: usize, id: ConnectionId) {
        let index = id.index();
        if self.keys.len() <= index {
            self.keys.resize(index + 1, usize::MAX);
        }
        self.keys[index] = key;
        self.links[key].connection = Some(id);
    }

    fn pause(&mut self, id: ConnectionId, is_paused: bool) {
        if let Some(mut connection) = self.reactor.connection(id) {
            match is_paused {
                false => connection.resume(),
                true => connection.pause(),
            }
            connection.flush();
        }
    }

    /// Returns the client of a connection, unless its session has ended.
    pub(super) fn find(&self, connection: ConnectionId) -> Option<usize> {
        let key = *self.keys.get(connection.index())?;
        let link = self.links.get(key)?;
        (link.connection == Some(connection)).then_some(key)
    }

    /// Sends a block.
    pub(super) fn send(&mut self, key: usize, block: &Block) {
        let link = &mut self.links[key];
        let mut connection = match output(&mut self.reactor, link) {
            Some(Output::Stream(mut stream, _)) => {
                chunks::send(&mut stream, block);
                self.messages_sent += block.messages();
                return;
            }
            Some(Output::WebSocket(connection, _)) => connection,
            None => return,
        };
        let frames = match &mut link.compression {
            Some(compression) => compression.frames(block),
            None => block.frames(),
        };
        let is_compressed = link.compression.is_some();
        let sent = match frames.prepared() {
            Some(messages) if is_compressed => {
                let mut messages = messages.iter();
                messages.try_for_each(|message| connection.send_prepared(message))
            }
            _ => connection.send_frames(frames.shared()),
        };
        match sent {
            Ok(()) => self.messages_sent += frames.messages(),
            Err(error) => {
                if let Some(compression) = &mut link.compression {
                    compression.leave();
                }
                tracing::debug!(%error, "cannot send to client");
            }
        }
    }

    /// Writes what was sent to a client.
    pub(super) fn flush(&mut self, key: usize) {
        match output(&mut self.reactor, &self.links[key]) {
            Some(Output::Stream(stream, _)) => stream.flush(),
            Some(Output::WebSocket(connection, _)) => connection.flush(),
            None => {}
        }
        self.count_memory();
    }

    /// Discards what waits for a client.
    pub(super) fn discard(&mut self, key: usize) {
        match output(&mut self.reactor, &self.links[key]) {
            Some(Output::Stream(mut stream, _)) => stream.discard_unsent(),
            Some(Output::WebSocket(mut connection, _)) => connection.discard_unsent(),
            None => {}
        }
    }

    /// Reads input of a client, or stops reading until this is called again.
    pub(super) fn set_reading(&mut self, key: usize, is_reading: bool) {
        let link = &mut self.links[key];
        if link.is_paused != is_reading {
            return;
        }
        link.is_paused = !is_reading;
        if let Some(id) = link.connection {
            self.pause(id, !is_reading);
        }
    }

    /// Starts the closing handshake with a client, or ends its stream.
    pub(super) fn close(&mut self, key: usize, disconnect: &Disconnect) {
        // The answer has to be read.
        self.set_reading(key, true);
        match output(&mut self.reactor, &self.links[key]) {
            Some(Output::Stream(mut stream, transport)) => {
                if let Some(last) = (transport.farewell)(disconnect) {
                    chunks::send_copy(&mut stream, &last);
                }
                chunks::end(&mut stream);
                stream.flush();
            }
            Some(Output::WebSocket(mut connection, transport)) => {
                let (code, reason) = close_frame(transport.farewell, disconnect);
                // This can fail only because of the length of the reason, which has been truncated.
                _ = connection.close(code, &reason);
                connection.flush();
            }
            None => {}
        }
    }

    /// Returns how many bytes may be sent to a client.
    pub(super) fn room(&self, key: usize) -> usize {
        let status = self.status(key).filter(|status| status.is_open);
        status.map_or(0, |status| {
            DATA_BYTES_MAX.saturating_sub(status.backlog_bytes)
        })
    }

    /// Returns the state of a client's connection, unless it has ended or is not open yet.
    pub(super) fn status(&self, key: usize) -> Option<linerate_reactor::LocalStatus> {
        self.reactor.status(self.links.get(key)?.connection?)
    }

    /// Records that the session of a client has something to do. Returns whether that is new.
    pub(super) fn change(&mut self, key: usize) -> bool {
        let is_new = !std::mem::replace(&mut self.links[key].is_changed, true);
        if is_new {
            self.changed.push(key);
        }
        is_new
    }

    /// Returns a client whose session has something to do.
    pub(super) fn take_changed(&mut self) -> Option<usize> {
        loop {
            let key = self.changed.pop()?;
            // A client that was removed may have been replaced by another one.
            if let Some(link) = self.links.get_mut(key)
                && std::mem::take(&mut link.is_changed)
            {
                return Some(key);
            }
        }
    }

    /// Updates the memory accounts of the worker.
    pub(super) fn count_memory(&mut self) {
        let used = self.reactor.memory();
        for (share, bytes) in [
            (&mut self.backlogs, used.backlog_bytes),
            (&mut self.messages, used.input_bytes),
        ] {
            if share.bytes() != bytes {
                share.set(bytes);
            }
        }
    }

    /// Returns the traffic since this was last called.
    pub(super) fn take_traffic(&mut self) -> Traffic {
        let traffic = self.reactor.take_traffic();
        Traffic {
            bytes_received: traffic.bytes_received,
            bytes_sent: traffic.bytes_sent,
            messages_received: traffic.messages_received,
            messages_sent: std::mem::take(&mut self.messages_sent),
        }
    }
}

/// Returns the connection of a client, if it is open.
fn output<'a>(reactor: &'a mut LocalReactor, link: &Link) -> Option<Output<'a>> {
    let id = link.connection?;
    Some(match link.transport {
        Transport::Stream(transport) => Output::Stream(reactor.stream(id)?, transport),
        Transport::WebSocket(transport) => Output::WebSocket(reactor.connection(id)?, transport),
    })
}

/// The options of a connection.
#[derive(Debug)]
pub(in crate::transport) struct ConnectionOptions {
    pub(crate) config: Config,
    pub(crate) deflate: Option<Deflate>,
    /// The account that compressed blocks are charged to.
    pub(crate) compressed: Account,
    pub(crate) messages: LocalMessages,
    pub(crate) message_timeout: Duration,
}

impl ConnectionOptions {
    /// Returns the options of the connections of clients that send commands, or of those that do
    /// not.
    pub(in crate::transport) fn new(
        settings: &Settings,
        accounts: &Accounts,
        has_commands: bool,
    ) -> Self {
        let client = &settings.config.client;
        let mut config = Config::default();
        config.limits.message_bytes_max = client.message_bytes_max as u64;
        // A session that takes commands sends pings in its own protocol.
        config.ping_interval = (!has_commands).then_some(client.ping_interval);
        if !has_commands {
            config.ping_timeout = client.pong_timeout;
        }
        Self {
            config,
            deflate: settings.config.deflate(),
            compressed: accounts.blocks.clone(),
            messages: match has_commands {
                true => LocalMessages::Collected,
                false => LocalMessages::Discarded,
            },
            message_timeout: client.message_timeout,
        }
    }
}
