//! The library against real sockets on loopback.

mod echo;
mod support;
