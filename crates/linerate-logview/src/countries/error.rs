//! Why the country database cannot be used.

use std::{io, path::PathBuf};

use thiserror::Error;

/// Why a country database cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CountriesError {
    /// The file is not a database in the MaxMind format, or is damaged.
    #[error("{path}: not a country database (.mmdb)")]
    NoDatabase {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: maxminddb::MaxMindDbError,
    },
    /// The file is larger than [`DATABASE_BYTES_MAX`](super::DATABASE_BYTES_MAX).
    #[error("{path}: country database is larger than {bytes_max} bytes")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit in bytes.
        bytes_max: u64,
    },
    /// The file cannot be read.
    #[error("cannot read country database {path}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}
