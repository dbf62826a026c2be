//! What `linerate` and `linerate-reactor` add to rustls, so that a peer that violates TLS gets the
//! alert that the standards require.
//!
//! - [`HelloReader`] inspects the first message of a client before rustls sees it. It does no I/O.
//! - [`provider()`] is the crypto provider of the program, or that of *ring*, changed so that it
//!   rejects invalid records that rustls would accept; [`strict`] changes any other provider.
//!
//! ```
//! use linerate_tls::{HelloError, HelloReader};
//!
//! let mut reader = HelloReader::new();
//! let close_notify = b"\x15\x03\x03\x00\x02\x01\x00";
//! assert_eq!(reader.handle_input(close_notify), Err(HelloError::Alerted));
//! ```
#![forbid(unsafe_code)]
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod client_hello;
mod provider;

pub use client_hello::{HelloError, HelloReader};
pub use provider::{provider, strict};
