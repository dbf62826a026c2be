//! Integration tests: what all brokers promise, and what each of them does when its server fails.
#![allow(clippy::unwrap_used, reason = "a test that goes wrong is to panic")]

mod contract;
mod memory;
mod nats;
mod proxy;
mod recorder;
mod redis;
