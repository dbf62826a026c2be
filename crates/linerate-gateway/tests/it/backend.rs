//! Backends that are asked what clients may do.

mod connections;
mod faults;
mod messages;
mod subscriptions;
pub(crate) mod support;
mod tls;
