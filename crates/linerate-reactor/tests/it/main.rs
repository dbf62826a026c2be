//! The reactor on real sockets.
#![allow(clippy::unwrap_used, reason = "a test that goes wrong is to panic")]

mod echo;
mod flow;
mod frames;
mod handshake;
mod limits;
mod shutdown;
mod support;
mod topics;
