//! Outbound connections: destinations, attempts to connect, and errors.

pub(crate) mod destination;
pub(crate) mod dialer;
pub(crate) mod error;
