//! The client of linerate over a browser's WebSocket, for WebAssembly: `recv`, `send` and `close` as in the
//! crate `linerate`, on what the page or worker has.
//!
//! ```no_run
//! # async fn run() -> linerate_web::Result<()> {
//! let mut ws = linerate_web::connect("wss://example.com/echo").await?;
//! ws.send("Spam").await?;
//! while let Some(message) = ws.recv().await? {
//!     // ...
//! #   drop(message);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What a browser does not give
//!
//! - **Back-pressure.** A browser reads whatever comes, whether anybody takes it or not. So what waits to be
//!   received is bounded, and beyond that the connection is closed ([`Options::recv_queue_bytes_max`]). An
//!   application that can be slower than its server has to ask for what it can take.
//! - **Pings, headers, the reason of a failure.** Servers ping, and browsers answer; a request has the headers of
//!   the page; and a connection that can't be opened says nothing else, for the safety of others.
//! - **Codes.** A page closes with 1000 or with 3000 to 4999.
#![forbid(unsafe_code)]

mod client;
mod error;
mod message;
mod socket;
mod state;
mod timer;

pub use client::{Client, Options, connect};
pub use error::{Error, Result};
pub use linerate_proto::{
    CloseCode,
    engine::{Closed, MessageKind},
};
pub use message::Message;
pub use socket::WebSocket;
