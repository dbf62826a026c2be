//! Integration tests: the contract of all brokers, and the behaviour of each when its server fails.
#![allow(clippy::unwrap_used, reason = "a failing test should panic")]

mod contract;
mod memory;
mod nats;
mod proxy;
mod recorder;
mod redis;
mod toy;
