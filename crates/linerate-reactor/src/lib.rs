//! A WebSocket server and client of callbacks for Linux: a thread per core, corked by construction.
//!
//! Each worker thread has its own listener on the shared port, its own event loop and its own
//! connections; a connection lives and dies on its worker, and no lock is taken for a message.
//! Messages are lent from the worker's read buffer, and all that the callbacks of one read send is
//! one write. An idle connection costs about 200 bytes: memory for unfinished messages and for
//! what waits to be written is the worker's, and goes back to it.
//!
//! ```
//! use linerate_reactor::{Handler, Message, Opened, Server, Tx};
//!
//! #[derive(Clone)]
//! struct Chat;
//!
//! impl Handler for Chat {
//!     /// The messages that this client has sent.
//!     type Data = u64;
//!
//!     fn open(&mut self, tx: &mut Tx<'_>, _opened: Opened<'_>) -> u64 {
//!         _ = tx.subscribe("room");
//!         0
//!     }
//!
//!     fn message(&mut self, sent: &mut u64, tx: &mut Tx<'_>, message: Message<'_>) {
//!         *sent += 1;
//!         tx.publish("room", message);
//!     }
//! }
//!
//! # fn main() -> std::io::Result<()> {
//! let server = Server::builder()
//!     .workers(2)
//!     .route("/chat", Chat)
//!     .listen(([127, 0, 0, 1], 0).into())?;
//! println!("ws://{}/chat", server.local_addr());
//! # let remote = server.remote();
//! # remote.shut_down();
//! server.run()
//! # }
//! ```
//!
//! What a client may use up is limited by [`Options`], and the defaults are meant to stay. A client
//! that does not read is not read from either once its backlog is at the limit, and is dropped when
//! it takes nothing for a while; nobody else waits for it.
//! [`Overflow`] says what becomes of publications to it, topic by topic.
//!
//! A [`Connector`] is the counterpart: many outbound connections on each thread, by the same
//! [`Handler`]. A server's handler can open connections too ([`Tx::connect`]) and send on others of
//! its worker ([`Tx::to`]), which is what a relay does. Another HTTP server can hand its sockets over
//! ([`Remote::adopt`]).
//!
//! The examples are small programs: `reactor_echo`; `reactor_room`, where everybody gets what anybody
//! says; `reactor_relay`, which connects each client to an upstream, with back-pressure both ways;
//! `reactor_connector`, which has many connections to one server and comes back to it when it was
//! gone. Each says in its first lines how to run it.
#![forbid(unsafe_code)]

mod adoption;
mod connection;
mod connector;
mod counters;
mod crew;
mod driver;
mod handler;
mod mailbox;
mod memory;
mod options;
mod outbound;
mod remote;
mod route;
mod server;
mod tls;
mod topics;
mod turn;
mod tx;
mod worker;

pub use adoption::{AdoptError, Adoption};
pub use connector::{Connector, ConnectorBuilder};
pub use counters::Counters;
pub use driver::{DriverKind, UnknownDriver};
pub use handler::{ConnectionId, Handler, Opened};
#[cfg(feature = "deflate")]
pub use linerate_proto::deflate::{Budget, Deflate};
pub use linerate_proto::{
    CloseCode, Config, Limits, SendError,
    engine::{Chunk, Closed, Message, MessageKind},
    frame::BulkEncoder,
    handshake,
};
pub use options::Options;
pub use outbound::{ConnectError, Destination, DestinationError};
pub use remote::Remote;
#[cfg(feature = "rustls")]
pub use rustls;
pub use server::{Builder, Server};
pub use topics::SubscribeError;
pub use topics::options::{Overflow, TopicOptions};
pub use turn::Turn;
pub use tx::Tx;
pub use worker::letters::To;
