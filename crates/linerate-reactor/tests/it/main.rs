//! The reactor on real sockets, with the epoll driver.
#![allow(clippy::unwrap_used, reason = "a failing test should panic")]

/// The driver that [`support::driver`] uses.
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
mod info;
mod limits;
mod local;
mod overflow;
mod pages;
mod relay;
mod remote;
mod shutdown;
mod streaming;
mod support;
#[cfg(feature = "rustls")]
mod tls;
mod topics;
mod upstream;
