//! The subjects of a run: contenders whose servers this process starts, and a server that was
//! already running.

use std::fmt;
use std::time::Duration;

use crate::cell::{Cell, Mode};
use crate::load::{LoadError, Probe, Target};
use crate::server::ServerError;

/// A participant of a run.
pub trait Subject: fmt::Debug {
    /// Returns the name that measurements refer to.
    fn name(&self) -> &str;

    /// Returns what the subject lacks to take part in a cell, or `None` if it can take part.
    fn lacks(&self, cell: &Cell) -> Option<String>;

    /// Returns whether an error is not a failure, but shows that the server does not offer what the
    /// cell needs and that this was not known before.
    fn may_decline(&self, _error: &LoadError) -> bool {
        false
    }

    /// Returns how long a new server is put under load before its first measurement.
    fn warm_up(&self) -> Duration;

    /// Starts a server, or returns the one that is already running.
    ///
    /// # Errors
    ///
    /// Returns an error if no server accepts connections.
    fn start(&self, mode: Mode) -> Result<Box<dyn RunningServer + '_>, ServerError>;
}

/// A server that accepts connections.
pub trait RunningServer: Probe {
    /// Returns the address and protocol of the server.
    fn target(&self) -> &Target;

    /// Waits until the server is idle, for a bounded time.
    fn wait_until_idle(&mut self);

    /// Returns how the server ended, or `None` if it is running. Called after a failure.
    fn end(&mut self) -> Option<String>;
}
