//! A WebSocket client for WebAssembly that uses the WebSocket of the browser's page or worker. It
//! has the `recv`, `send` and `close` of the crate `linerate`.
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
//! # Limitations of browsers
//!
//! - **No back-pressure.** A browser reads all data that arrives, whether the application receives
//!   it or not. The queue of received messages is therefore bounded, and the connection is closed
//!   if it overflows ([`Options::recv_queue_bytes_max`]). An application that may be slower than
//!   its server must request only as much as it can process.
//! - **No pings, request headers or failure reasons.** Browsers answer the server's pings but
//!   cannot send their own. A request has the headers of the page. For security, a browser does not
//!   reveal why a connection could not be opened.
//! - **Restricted close codes.** A page can close only with 1000 or with 3000 to 4999.
#![forbid(unsafe_code)]

mod client;
mod error;
mod message;
mod options;
mod socket;
mod state;
mod timer;

pub use client::{Client, connect};
pub use error::{Error, Result};
pub use linerate_proto::{
    CloseCode,
    engine::{Closed, MessageKind},
};
pub use message::Message;
pub use options::Options;
pub use socket::WebSocket;
