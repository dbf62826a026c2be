//! Test helpers for the linerate workspace: no sockets, no clocks, fixed seeds, but for [`bombs`] and [`server`].
//!
//! - [`Frame`] writes any frame, also one that no honest peer sends.
//! - [`feed`] hands bytes to an engine, [`Cuts`] says in which pieces, and [`Record`] holds what
//!   came of it, so that two ways to cut the same bytes can be compared.
//! - [`Pair`] connects a client and a server through queues in memory and a virtual clock.
//! - [`Rng`] makes the same numbers each time.
//! - [`bombs`] asserts what messages that inflate a thousandfold cost a server.
//! - [`server`] starts real Redis servers and sentinels, kills, pauses and restarts them.
#![forbid(unsafe_code)]

#[cfg(target_os = "linux")]
pub mod bombs;
mod endpoint;
mod feed;
mod frame;
mod pair;
mod rng;
pub mod server;
mod skip;

pub use endpoint::{KEY, TestEndpoint};
pub use feed::{Cuts, Record, Seen, assert_cuts_do_not_matter, feed, feed_on};
pub use frame::{Frame, LengthForm};
pub use pair::{Pair, Side};
pub use rng::Rng;
pub use skip::skip;
