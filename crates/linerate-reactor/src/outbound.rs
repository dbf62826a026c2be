//! Connections that we open: where to, how attempts fare, and what becomes of those that fail.

mod destination;
mod dialer;
mod error;
mod resolver;

pub(crate) use self::{
    dialer::{Attempt, Dialer, Pending},
    resolver::{Answer, Resolver},
};
pub use destination::{Destination, DestinationError};
pub use error::ConnectError;
