//! The countries of addresses, looked up in a database that the user provides.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use maxminddb::{Reader, geoip2};

/// The largest database, 512 MiB: four times the size of those that include cities.
pub const DATABASE_BYTES_MAX: u64 = 512 << 20;
/// The most bytes of a country's name that are kept.
const NAME_BYTES_MAX: usize = 64;

/// A country database in the MaxMind format (`.mmdb`), as provided by GeoLite2, DB-IP and others.
///
/// It is read into memory once; clones share it.
///
/// ```no_run
/// use linerate_logview::aggregate::{Aggregator, Limits};
/// use linerate_logview::countries::Countries;
///
/// let mut limits = Limits::default();
/// limits.countries = Some(Countries::open("countries.mmdb".as_ref())?);
/// let log = Aggregator::new(limits);
/// assert!(log.summary().panels.country.is_some());
/// # Ok::<(), linerate_logview::countries::CountriesError>(())
/// ```
#[derive(Clone)]
pub struct Countries(Arc<Reader<Vec<u8>>>);

/// A country.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Country {
    /// The two letters of ISO 3166-1.
    pub(crate) code: String,
    /// The English name; empty if the database has none.
    pub(crate) name: String,
}

impl Countries {
    /// Reads a database.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, is larger than [`DATABASE_BYTES_MAX`], or is
    /// not such a database.
    pub fn open(path: &Path) -> Result<Self, CountriesError> {
        Ok(Self(Arc::new(read(path)?)))
    }

    /// Returns the country of an address, or `None` if the address is private, unknown to the
    /// database, or a host name.
    pub(crate) fn of(&self, address: &[u8]) -> Option<Country> {
        let address: IpAddr = std::str::from_utf8(address).ok()?.parse().ok()?;
        let found = self.0.lookup(address.to_canonical()).ok()?;
        let found: geoip2::Country<'_> = found.decode().ok()??;
        let country = match found.country.iso_code {
            Some(_) => found.country,
            None => found.registered_country,
        };
        let is_code =
            |code: &&str| code.len() == 2 && code.bytes().all(|it| it.is_ascii_uppercase());
        let name = country.names.english.unwrap_or_default();
        Some(Country {
            code: country.iso_code.filter(is_code)?.to_owned(),
            name: name[..name.floor_char_boundary(NAME_BYTES_MAX)].to_owned(),
        })
    }
}

/// Reads a database in the MaxMind format.
///
/// # Errors
///
/// Returns an error if the file cannot be read, is larger than [`DATABASE_BYTES_MAX`], or is not
/// such a database.
pub(crate) fn read(path: &Path) -> Result<Reader<Vec<u8>>, CountriesError> {
    let unreadable = |source| CountriesError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    let mut file = file.take(DATABASE_BYTES_MAX + 1);
    file.read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > DATABASE_BYTES_MAX {
        return Err(CountriesError::TooLarge {
            path: path.to_owned(),
            bytes_max: DATABASE_BYTES_MAX,
        });
    }
    Reader::from_source(bytes).map_err(|source| CountriesError::NoDatabase {
        path: path.to_owned(),
        source,
    })
}

/// Why a database of countries or autonomous systems cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CountriesError {
    /// The file is not a database in the MaxMind format, or is damaged.
    #[error("{path}: not a MaxMind database (.mmdb)")]
    NoDatabase {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: maxminddb::MaxMindDbError,
    },
    /// The file is larger than [`DATABASE_BYTES_MAX`].
    #[error("{path}: the database is larger than {bytes_max} bytes")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit in bytes.
        bytes_max: u64,
    },
    /// The file cannot be read.
    #[error("cannot read the database {path}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl fmt::Debug for Countries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let metadata = self.0.metadata();
        f.debug_tuple("Countries")
            .field(&metadata.database_type)
            .field(&metadata.build_epoch)
            .finish()
    }
}

#[cfg(test)]
pub(crate) mod tests;
