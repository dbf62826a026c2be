//! The library against real sockets on loopback.

#[cfg(feature = "axum")]
mod axum;
mod client;
mod echo;
mod frames;
mod handshake;
mod raw;
mod server;
mod support;
#[cfg(feature = "rustls")]
mod tls;
mod types;
