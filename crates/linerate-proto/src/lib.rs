//! The sans-IO WebSocket engine of linerate (RFC 6455), for both roles.
//!
//! The crate has several parts, each of which can be used alone. None of them touches a socket, a
//! clock or a task:
//!
//! - [`frame`] is the codec (L0): it encodes and decodes headers, writes frames into the caller's
//!   memory, and passes whole frames to a listener. It never allocates.
//! - [`Engine`] is the connection after the opening handshake (L1): bytes in, [`Event`]s out,
//!   output appended to the caller's buffer. It does not buffer the payloads of messages; of an
//!   unfinished frame it keeps at most a header or the payload of a control frame.
//! - [`url`] parses the URLs of WebSockets, and [`handshake`] is the opening handshake over
//!   HTTP/1.1, for clients and servers.
//! - [`relay`] passes frames from one connection to another.
//! - [`portable`] moves a connection to another process, at any byte.
//!
//! The feature `deflate` adds compressed messages (RFC 7692). With `std` as well, all connections
//! of a thread can share a pool of compression states. The feature `idna` allows host names in URLs
//! that are not ASCII.
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
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

extern crate alloc;
#[cfg(any(test, feature = "std"))]
extern crate std;

mod close;
mod close_code;
mod config;
#[cfg(feature = "deflate")]
pub mod deflate;
pub mod engine;
mod error;
pub mod frame;
pub mod handshake;
mod opcode;
pub mod portable;
pub mod relay;
mod role;
pub mod url;

pub use close::CloseFrame;
pub use close_code::CloseCode;
pub use config::{Config, Limits};
pub use engine::{Engine, Event};
pub use error::{ProtocolError, SendError};
pub use frame::Header;
pub use opcode::Opcode;
pub use role::{Client, Endpoint, MaskKey, Role, Server};
