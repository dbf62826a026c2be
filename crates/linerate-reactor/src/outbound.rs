//! Outbound connections: destinations, attempts to connect, and errors.

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
