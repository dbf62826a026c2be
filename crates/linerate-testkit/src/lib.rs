//! Test helpers for the linerate workspace. Except for [`bombs`] and [`server`], they use no
//! sockets, no clocks and fixed seeds.
//!
//! - [`Frame`] writes any frame, including those that no honest peer sends.
//! - [`feed`] passes bytes to an engine, [`Cuts`] selects how they are cut into pieces, and
//!   [`Record`] holds the results, so that two ways to cut the same bytes can be compared.
//! - [`Pair`] connects a client and a server through queues in memory and a virtual clock.
//! - [`Rng`] generates the same numbers in every run.
//! - [`bombs`] asserts how much memory a server uses for messages that inflate a thousandfold.
//! - [`server`] starts, kills, pauses and restarts real Redis servers and sentinels.
#![forbid(unsafe_code)]

use std::time::Duration;

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

/// The longest time that a test waits for what must happen, even on a very busy machine. It only
/// ends tests that would otherwise hang.
pub const PATIENCE: Duration = Duration::from_secs(120);
