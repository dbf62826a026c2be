//! Changes of a real Postgres server, published into the embedded broker.

#![allow(clippy::unwrap_used, reason = "a failing test should panic")]

mod changes;
mod notifications;
mod recorder;
