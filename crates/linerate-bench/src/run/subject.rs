//! Who can be measured: contenders whose servers we start, and a server that somebody else runs.

use std::fmt;
use std::time::Duration;

use crate::cell::{Cell, Mode};
use crate::load::{LoadError, Probe, Target};
use crate::server::ServerError;

/// Somebody who takes part in a run.
pub trait Subject: fmt::Debug {
    /// Returns the name that measurements refer to.
    fn name(&self) -> &str;

    /// Returns what it lacks to take part in a cell.
    fn lacks(&self, cell: &Cell) -> Option<String>;

    /// Tells whether an error is no failure, but shows that the server does not offer what the cell
    /// needs, which nobody told us before.
    fn may_decline(&self, _error: &LoadError) -> bool {
        false
    }

    /// Returns how long a new server is put under load before its first measurement.
    fn warm_up(&self) -> Duration;

    /// Starts a server, or finds the one that runs.
    ///
    /// # Errors
    ///
    /// There is no server that takes connections.
    fn start(&self, mode: Mode) -> Result<Box<dyn Running + '_>, ServerError>;
}

/// A server that takes connections.
pub trait Running: Probe {
    /// Returns where.
    fn target(&self) -> &Target;

    /// Waits until it has nothing left to do, for a bounded time.
    fn wait_for_rest(&mut self);

    /// Returns how it ended, if it did; asked after a failure.
    fn end(&mut self) -> Option<String>;
}
