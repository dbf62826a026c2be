//! The parts of a worker that handling one connection needs.

use super::handshakes::Handshakes;
use crate::{core::Core, route::routes::Routes};

/// Everything that handling the input of a connection needs besides the connection itself.
pub(crate) struct Parts {
    pub(crate) core: Core,
    pub(super) routes: Routes,
    pub(super) handshakes: Handshakes,
}
