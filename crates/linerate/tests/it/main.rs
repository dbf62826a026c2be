//! Tests of the library on real loopback sockets.
#![allow(clippy::unwrap_used, reason = "a failing test should panic")]

#[cfg(feature = "axum")]
mod axum;
#[cfg(all(feature = "deflate", feature = "http2", feature = "rustls"))]
mod cancel;
mod client;
#[cfg(feature = "deflate")]
mod deflate;
mod dial;
mod echo;
mod frames;
mod handshake;
mod hostile;
#[cfg(feature = "http2")]
mod http2;
#[cfg(feature = "http3")]
mod http3;
#[cfg(feature = "rustls")]
mod identity;
mod incoming;
mod lifecycle;
mod polls;
mod proxy;
mod raw;
mod redirect;
mod relay;
mod responses;
#[cfg(feature = "futures-io")]
mod runtime;
mod server;
#[cfg(feature = "axum")]
mod service;
mod streams;
mod support;
#[cfg(feature = "rustls")]
mod tls;
mod types;
#[cfg(unix)]
mod unix;
