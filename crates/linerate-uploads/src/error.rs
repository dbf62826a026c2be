//! Errors of starting the service.

use std::io;

use linerate_logview::countries::CountriesError;
use thiserror::Error;

/// Why a service cannot be started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The database of countries cannot be used.
    #[error(transparent)]
    Countries(#[from] CountriesError),
    /// A thread that reads a file cannot be started.
    #[error(transparent)]
    Thread(#[from] io::Error),
}
