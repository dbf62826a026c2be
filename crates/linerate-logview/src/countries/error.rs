//! Why there are no countries.

use std::path::PathBuf;
use std::{error, fmt, io};

/// Why a database of countries can't be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum CountriesError {
    /// The file is no database in the format of MaxMind, or is damaged.
    NoDatabase {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: maxminddb::MaxMindDbError,
    },
    /// The file is larger than any such database.
    TooLarge {
        /// The file.
        path: PathBuf,
        /// How many bytes it may have.
        bytes_max: u64,
    },
    /// The file can't be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl fmt::Display for CountriesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDatabase { path, .. } => {
                write!(f, "{} is no database of countries (.mmdb)", path.display())
            }
            Self::TooLarge { path, bytes_max } => write!(
                f,
                "{} has more than the {bytes_max} bytes that a database of countries may have",
                path.display()
            ),
            Self::Unreadable { path, .. } => {
                write!(f, "can't read the database of countries {}", path.display())
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
