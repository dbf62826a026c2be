//! Why the country database cannot be used.

use std::path::PathBuf;
use std::{error, fmt, io};

/// Why a country database cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum CountriesError {
    /// The file is not a database in the MaxMind format, or is damaged.
    NoDatabase {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: maxminddb::MaxMindDbError,
    },
    /// The file is larger than [`DATABASE_BYTES_MAX`](super::DATABASE_BYTES_MAX).
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit in bytes.
        bytes_max: u64,
    },
    /// The file cannot be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl fmt::Display for CountriesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDatabase { path, .. } => {
                write!(f, "{}: not a country database (.mmdb)", path.display())
            }
            Self::TooLarge { path, bytes_max } => write!(
                f,
                "{}: country database is larger than {bytes_max} bytes",
                path.display()
            ),
            Self::Unreadable { path, .. } => {
                write!(f, "cannot read country database {}", path.display())
            }
        }
    }
}

impl error::Error for CountriesError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::NoDatabase { source, .. } => Some(source),
            Self::TooLarge { .. } => None,
            Self::Unreadable { source, .. } => Some(source),
        }
    }
}
