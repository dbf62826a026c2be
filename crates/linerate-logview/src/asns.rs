//! The autonomous systems of addresses, looked up in a database that the user provides.

use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use ipnet::IpNet;
use maxminddb::{Reader, geoip2};

use crate::countries::{CountriesError, read};

/// The most bytes of the name of an organization that are kept.
const NAME_BYTES_MAX: usize = 64;

/// A database of autonomous systems in the MaxMind format (`.mmdb`), as provided by GeoLite2, DB-IP
/// and others.
///
/// It is read into memory once; clones share it.
#[derive(Clone)]
pub struct Asns(Arc<Reader<Vec<u8>>>);

/// An autonomous system.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Asn {
    pub(crate) number: u32,
    /// The organization; empty if the database has none.
    pub(crate) name: String,
}

impl Asns {
    /// Reads a database.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, is larger than
    /// [`DATABASE_BYTES_MAX`](crate::countries::DATABASE_BYTES_MAX), or is not such a database.
    pub fn open(path: &Path) -> Result<Self, CountriesError> {
        Ok(Self(Arc::new(read(path)?)))
    }

    /// Returns the system of an address, or `None` if the database does not know it.
    pub(crate) fn of(&self, address: IpAddr) -> Option<Asn> {
        let found = self.0.lookup(address.to_canonical()).ok()?;
        let found: geoip2::Asn<'_> = found.decode().ok()??;
        let name = found.autonomous_system_organization.unwrap_or_default();
        Some(Asn {
            number: found.autonomous_system_number?,
            name: name[..name.floor_char_boundary(NAME_BYTES_MAX)].to_owned(),
        })
    }

    /// Returns the network in the database that has the address.
    pub(crate) fn network_of(&self, address: IpAddr) -> Option<IpNet> {
        let found = self.0.lookup(address.to_canonical()).ok()?;
        let network = found.network().ok()?;
        let network = IpNet::new(network.ip(), network.prefix()).ok()?;
        // A database of IPv6 may hold IPv4 below ::/96, but the network must have the address.
        network
            .contains(&address.to_canonical())
            .then(|| network.trunc())
    }
}

impl fmt::Debug for Asns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let metadata = self.0.metadata();
        f.debug_tuple("Asns")
            .field(&metadata.database_type)
            .field(&metadata.build_epoch)
            .finish()
    }
}

#[cfg(test)]
pub(crate) mod tests;
