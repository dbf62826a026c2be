//! The sans-IO WebSocket engine of linerate (RFC 6455), for both roles.
//!
//! Three levels, each usable alone; none of them sees a socket, a clock or a task:
//!
//! - [`frame`] is the codec (L0): headers, ways to write frames into memory of the caller, and a
//!   listener for whole frames. It allocates nothing.
//! - [`Engine`] is the connection after the opening handshake (L1): bytes in, [`Event`]s out,
//!   output appended to a buffer of the caller. It never buffers a payload; what it keeps of an
//!   unfinished frame is at most a header or the payload of a control frame.
//! - [`handshake`] is the opening handshake over HTTP/1.1, for client and server.
//! - [`client_hello`] looks at what a TLS client says first, for servers.
//! - [`relay`] passes frames from one connection to another.
//!
//! With the feature `deflate` messages can be compressed (RFC 7692); with `std` as well, the states
//! for that can be shared by all connections of a thread.
//!
//! ```
//! use core::time::Duration;
//! use linerate_proto::{Engine, Event, Server};
//!
//! # fn main() -> Result<(), Box<dyn core::error::Error>> {
//! let mut engine = Engine::new(Server, Default::default(), Duration::ZERO);
//! let mut input = *b"\x81\x84\x00\x00\x00\x00Spam"; // a masked text frame
//! let mut output = Vec::new();
//! let mut echo = String::new();
//!
//! let mut events = engine.handle_input(&mut input, Duration::ZERO);
//! while let Some(event) = events.next() {
//!     if let Event::Text(text) = event? {
//!         echo.push_str(text);
//!     }
//! }
//! engine.send_text(&mut output, &echo)?;
//! assert_eq!(output, b"\x81\x04Spam");
//! # Ok(())
//! # }
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(any(test, feature = "std"))]
extern crate std;

pub mod client_hello;
pub mod close;
mod config;
#[cfg(feature = "deflate")]
pub mod deflate;
pub mod engine;
mod error;
pub mod frame;
pub mod handshake;
pub mod relay;
mod role;

pub use close::{CloseCode, CloseFrame};
pub use config::{Config, Limits};
pub use engine::{Engine, Event};
pub use error::{ProtocolError, SendError};
pub use frame::{Header, MaskKey, Opcode};
pub use role::{Client, Endpoint, Role, Server};
