//! What HTTP/2 and HTTP/3 connections that carry WebSockets have in common.
//!
//! This crate is for `linerate-h2` and `linerate-h3`: it counts the open streams of a connection,
//! and limits how many of them the peer may reset.
//!
//! ```
//! use linerate_http::Places;
//!
//! // The client may reset one stream in a burst, and one per second in the long run.
//! let places = Places::new(1, 1);
//! for _ in 0..2 {
//!     let mut place = places.take();
//!     place.note_reset();
//! }
//! assert!(places.is_idle());
//! assert!(places.is_calm_wanted(), "the connection has to be closed");
//! ```
#![forbid(unsafe_code)]
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod error;
mod places;
mod resets;

pub use error::OpenError;
pub use places::{Place, Places};
pub use resets::Resets;
