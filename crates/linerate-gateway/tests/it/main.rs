//! Tests with a real gateway on its own port, the embedded broker, and clients on real sockets.
#![allow(clippy::unwrap_used, reason = "a failing test should panic")]

mod backend;
mod bare;
mod bombs;
mod centrifuge;
mod compression;
mod encrypted;
mod event_streams;
mod fixed;
mod gaps;
mod http;
#[cfg(feature = "kafka")]
mod kafka;
mod native;
mod patterns;
mod phoenix;
mod postgres;
mod pressure;
mod pusher;
mod refusals;
mod revocations;
mod silence;
mod socketio;
mod start;
mod streams;
mod support;
mod switches;
mod webhooks;
