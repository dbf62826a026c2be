//! The reactor on real sockets, by the driver on epoll.
#![allow(clippy::unwrap_used, reason = "a test that goes wrong is to panic")]

/// What [`support::driver`] goes by.
const DRIVER: linerate_reactor::DriverKind = linerate_reactor::DriverKind::Epoll;

mod abuse;
mod adopt;
mod connector;
#[cfg(feature = "deflate")]
mod deflate;
mod delivery;
mod echo;
mod flow;
mod frames;
mod handshake;
mod limits;
mod overflow;
mod relay;
mod shutdown;
mod streaming;
mod support;
#[cfg(feature = "rustls")]
mod tls;
mod topics;
mod upstream;
