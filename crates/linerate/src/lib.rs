//! WebSocket at line rate: an async client and server on tokio.
//!
//! An echo server:
//!
//! ```no_run
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:9001").await?;
//! let stop = async { _ = tokio::signal::ctrl_c().await };
//! linerate::serve(listener, |mut ws, _request| async move {
//!     while let Some(message) = ws.recv().await? {
//!         ws.send(message).await?;
//!     }
//!     Ok(())
//! }, stop).await
//! # }
//! ```
//!
//! A client:
//!
//! ```no_run
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> linerate::Result<()> {
//! let mut ws = linerate::connect("ws://127.0.0.1:9001/").await?;
//! ws.send("Spam").await?;
//! println!("{:?}", ws.recv().await?);
//! ws.close(linerate::CloseCode::NORMAL, "").await?;
//! # Ok(())
//! # }
//! ```
//!
//! # What the library does for you
//!
//! - It answers Pings, pings a silent peer, closes the connection if that peer stays silent, and
//!   limits the duration of the closing handshake. All of this happens regardless of what the
//!   application does, as long as the runtime runs.
//! - It batches replies: while more messages from the same read are waiting, a send appends to a
//!   buffer. The buffer is written when the input is used up, when it reaches a size limit, on
//!   [`flush`](WebSocket::flush), and at the latest when the task yields.
//! - It keeps memory per worker thread: each thread has one read buffer, and payloads use recycled
//!   buffers. An idle connection holds neither.
//!
//! # Cancel safety
//!
//! [`recv`](WebSocket::recv), [`send`](WebSocket::send), [`flush`](WebSocket::flush) and
//! [`close`](WebSocket::close) may be dropped at any await point, for instance in `tokio::select!`:
//! no message is lost and no frame is cut short. A `send` that is dropped before it completes sends
//! nothing.
#![forbid(unsafe_code)]
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod attempts;
#[cfg(feature = "axum")]
pub mod axum;
mod backoff;
mod batch;
#[cfg(all(doctest, feature = "axum", feature = "futures-io"))]
mod book;
mod client;
mod clock;
mod closed;
mod counters;
#[cfg(feature = "deflate")]
pub mod deflate;
mod describe;
pub mod dial;
mod error;
pub mod frames;
pub mod handshake;
mod info;
mod link;
pub mod memory;
mod message;
mod options;
pub mod parts;
mod pool;
pub mod relay;
mod replies;
mod response;
mod retry;
pub mod room;
pub mod runtime;
mod server;
mod sink;
mod split;
mod streaming;
#[cfg(feature = "rustls")]
pub mod tls;
mod transport;
mod websocket;

pub use backoff::Backoff;
pub use batch::{Batch, Drain, MessageCow};
pub use client::{Client, connect};
pub use closed::{CloseFrame, Closed};
pub use counters::{Counters, Traffic};
pub use error::{Error, Result, TrySendError};
pub use frames::encoded::Frames;
pub use info::ConnectionInfo;
#[cfg(feature = "http2")]
pub use linerate_h2::Http2Limits;
#[cfg(feature = "http3")]
pub use linerate_h3::Http3Limits;
#[cfg(feature = "deflate")]
pub use linerate_proto::deflate::Deflate;
pub use linerate_proto::{
    CloseCode, Config, Limits, ProtocolError, Role, SendError,
    engine::{Initiator, MessageKind, State},
    handshake::{Request, Upgrade},
};
pub use message::{Binary, Message, Text};
pub use options::Options;
pub use replies::Replies;
pub use server::{Incoming, Listener, Server, accept, serve};
pub use split::{Receiver, Sender};
pub use streaming::{Reader, Writer};
pub use websocket::WebSocket;
