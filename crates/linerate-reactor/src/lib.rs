//! A callback-based WebSocket server and client: one thread per core, with corked output.
//!
//! Each worker thread has its own listener on the shared port, its own event loop and its own
//! connections. A connection stays on one worker for its whole life, and no lock is taken to handle
//! a message. Messages are borrowed from the worker's read buffer, and everything that the
//! callbacks of one read send goes out in a single write. An idle connection costs about 200 bytes:
//! memory for unfinished messages and for pending output belongs to the worker and is returned to
//! it.
//!
//! ```
//! use linerate_reactor::{Handler, Message, Opened, Server, Context};
//!
//! #[derive(Clone)]
//! struct Chat;
//!
//! impl Handler for Chat {
//!     /// The messages that this client has sent.
//!     type Data = u64;
//!
//!     fn open(&mut self, cx: &mut Context<'_>, _opened: Opened<'_>) -> u64 {
//!         _ = cx.subscribe("room");
//!         0
//!     }
//!
//!     fn message(&mut self, sent: &mut u64, cx: &mut Context<'_>, message: Message<'_>) {
//!         *sent += 1;
//!         cx.publish("room", message);
//!     }
//! }
//!
//! # fn main() -> std::io::Result<()> {
//! let server = Server::new()
//!     .with_workers(2)
//!     .with_route("/chat", Chat)
//!     .listen(([127, 0, 0, 1], 0).into())?;
//! println!("ws://{}/chat", server.local_addr());
//! # let remote = server.remote();
//! # remote.shut_down();
//! server.run()
//! # }
//! ```
//!
//! [`Options`] limits what a client may use; the defaults are suitable for production. When the
//! backlog of a client that does not read reaches its limit, the server stops reading from it and
//! drops it if it accepts nothing for a while. No other client waits for it. [`Overflow`] decides,
//! topic by topic, what happens to publications for such a client.
//!
//! A [`Connector`] is the counterpart: it runs many outbound connections on each thread, with the
//! same [`Handler`] trait. A server's handler can also open connections ([`Context::connect`]) and
//! send on other connections of its worker ([`Context::to`]), which is how a relay works. Another
//! HTTP server can hand over its sockets ([`Remote::adopt`]).
//!
//! The reactor is made for Linux, where each worker waits in epoll or io_uring. On macOS and
//! Windows it is meant for development: a [portable driver](DriverKind::Portable) takes their
//! place, and the workers share one listener. That driver is tested on Linux only.
//!
//! A [`LocalReactor`] is a worker without a thread of its own: it is a part of another event loop,
//! and reports what happened instead of calling handlers.
//!
//! The examples are small programs:
//!
//! - `reactor_echo` echoes messages.
//! - `reactor_room` sends every message to all clients.
//! - `reactor_market` publishes prices to their subscribers; a slow one gets the newest.
//! - `reactor_relay` connects each client to an upstream server, with back-pressure in both
//!   directions.
//! - `reactor_connector` keeps many connections to one server and reconnects after it was
//!   unavailable.
//!
//! The first lines of each example explain how to run it.
#![forbid(unsafe_code)]
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod adoption;
#[cfg(doctest)]
mod book;
mod commands;
mod connection;
mod connector;
mod context;
mod core;
mod counters;
mod driver;
#[cfg(unix)]
mod export;
mod handler;
mod local;
mod mailbox;
mod memory;
mod options;
mod outbound;
mod platform;
mod reactor;
mod remote;
mod resolver;
mod route;
mod server;
mod tls;
mod topics;
mod wheel;
mod worker;
mod worker_context;
mod workers;

pub use adoption::{AdoptError, Adoption};
pub use commands::ConnectionHandle;
pub use connection::charge::MemoryUse;
pub use connection::id::ConnectionId;
pub use connector::{Connector, PreparedConnector};
pub use context::Context;
pub use core::{events::LocalEvent, io::traffic::Traffic};
pub use counters::Counters;
pub use driver::kind::{DriverKind, UnknownDriver};
#[cfg(unix)]
pub use export::{ExportError, Exported, ExportedState, ImportError, ImportOptions};
pub use handler::{Handler, Opened};
#[cfg(feature = "deflate")]
pub use linerate_proto::deflate::{Budget, Deflate};
pub use linerate_proto::{
    CloseCode, Config, Limits, SendError,
    engine::{Chunk, Closed, Message, MessageKind},
    frame::BulkEncoder,
    handshake, portable,
    url::UrlError,
};
pub use local::{LocalConnection, LocalMessages, LocalReactor, LocalStatus, LocalStream};
pub use options::Options;
pub use outbound::{
    destination::{Destination, DestinationError},
    error::ConnectError,
};
pub use platform::Socket;
pub use remote::{Remote, error::RemoteError};
#[cfg(feature = "rustls")]
pub use rustls;
pub use server::{ListeningServer, Server};
#[cfg(feature = "rustls")]
pub use tls::{
    adopted::{TlsAcceptor, TlsConnection},
    info::TlsInfo,
};
pub use topics::SubscribeError;
pub use topics::options::{Overflow, TopicOptions};
pub use worker_context::WorkerContext;
