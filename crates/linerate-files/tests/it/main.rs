//! Uploads over real connections.
#![allow(clippy::unwrap_used, reason = "a failing test should panic")]

mod attacks;
mod client;
mod flow;
mod stores;
