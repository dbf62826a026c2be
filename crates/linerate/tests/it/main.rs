//! The library against real sockets on loopback.

mod echo;
mod frames;
mod handshake;
mod raw;
mod support;
