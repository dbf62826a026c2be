//! What requests are counted by: values, or groups of addresses.

use std::collections::BTreeSet;
use std::hash::Hash;
use std::net::IpAddr;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use ipnet::IpNet;

use crate::aggregate::dictionaries::Dictionaries;
use crate::aggregate::dictionary::{Dictionary, FIRST};
use crate::asns::{Asn, Asns};
use crate::excerpt::text;
use crate::query::{QueryError, RateKey};
use crate::rate::rules::{NETWORKS_MAX, network_of};
use crate::store::{ADDRESS, AGENT};

/// Stands for an address without a key.
const WITHOUT: u32 = u32::MAX;

/// The keys, numbered from 0.
#[derive(Debug)]
pub(super) struct Keys {
    /// The column whose codes have keys.
    pub(super) column: usize,
    /// How many codes there were when the search began.
    codes: usize,
    groups: Groups,
    /// The key by the code of an address, from [`FIRST`]; empty if each code is a key.
    by_code: Vec<u32>,
}

#[derive(Debug)]
enum Groups {
    Asns(Vec<Asn>),
    Networks(Vec<IpNet>),
    /// Each value is a key.
    Values,
}

impl Keys {
    pub(super) fn new(
        by: RateKey,
        dictionaries: &Dictionaries,
        asns: Option<&Asns>,
    ) -> Result<Self, QueryError> {
        let column = match by {
            RateKey::Agent => AGENT,
            RateKey::Address | RateKey::Asn | RateKey::Network => ADDRESS,
        };
        let values = dictionaries.of(column);
        let (groups, by_code) = match by {
            RateKey::Address | RateKey::Agent => (Groups::Values, Vec::new()),
            RateKey::Network => {
                let (networks, by_code) = grouped(
                    values,
                    |address| Some(network_of(address)),
                    |network| *network,
                );
                (Groups::Networks(networks), by_code)
            }
            RateKey::Asn => {
                let asns = asns.ok_or(QueryError::NoAsns)?;
                let of = |address| asns.of(address);
                let (asns, by_code) = grouped(values, of, |asn| asn.number);
                (Groups::Asns(asns), by_code)
            }
        };
        Ok(Self {
            column,
            codes: values.len(),
            groups,
            by_code,
        })
    }

    /// Returns the number of keys.
    pub(super) fn len(&self) -> usize {
        match &self.groups {
            Groups::Asns(asns) => asns.len(),
            Groups::Networks(networks) => networks.len(),
            Groups::Values => self.codes,
        }
    }

    /// Returns how many codes have, or could have, a key.
    pub(super) fn codes(&self) -> usize {
        self.codes
    }

    /// Returns the key of a code in the column, if it has one.
    #[inline]
    pub(super) fn of(&self, code: u32) -> Option<u32> {
        let at = code.checked_sub(FIRST)?;
        match self.groups {
            Groups::Values => ((at as usize) < self.codes).then_some(at),
            _ => {
                let key = self.by_code.get(at as usize).copied();
                key.filter(|&key| key != WITHOUT)
            }
        }
    }

    /// Returns the text of a key, and its name if it has one.
    pub(super) fn text(&self, key: u32, dictionaries: &Dictionaries) -> (String, String) {
        match &self.groups {
            Groups::Asns(asns) => {
                let asn = &asns[key as usize];
                (format!("AS{}", asn.number), asn.name.clone())
            }
            Groups::Networks(networks) => (networks[key as usize].to_string(), String::new()),
            Groups::Values => (text(self.value(key, dictionaries)), String::new()),
        }
    }

    /// Returns the value that is a key; empty if keys are groups.
    pub(super) fn value<'a>(&self, key: u32, dictionaries: &'a Dictionaries) -> &'a [u8] {
        match self.groups {
            Groups::Values => dictionaries.of(self.column).value(key + FIRST),
            _ => b"",
        }
    }

    /// Returns the network of a key that is an address or a network.
    pub(super) fn network(&self, key: u32, dictionaries: &Dictionaries) -> Option<IpNet> {
        match &self.groups {
            Groups::Asns(_) => None,
            Groups::Networks(networks) => networks.get(key as usize).copied(),
            Groups::Values => parsed(self.value(key, dictionaries)).map(IpNet::from),
        }
    }

    /// Returns the networks of autonomous systems from which requests came, up to
    /// [`NETWORKS_MAX`], and the keys of those systems. `chooses` returns whether a key is wanted.
    pub(super) fn networks(
        &self,
        dictionaries: &Dictionaries,
        asns: Option<&Asns>,
        chooses: impl Fn(u32) -> bool,
    ) -> BTreeSet<(IpNet, u32)> {
        let mut networks = BTreeSet::new();
        let (Some(asns), Groups::Asns(_)) = (asns, &self.groups) else {
            return networks;
        };
        let addresses = dictionaries.of(ADDRESS).values().zip(&self.by_code);
        for (address, &key) in addresses.filter(|(_, key)| **key != WITHOUT && chooses(**key)) {
            if networks.len() == NETWORKS_MAX {
                break;
            }
            let network = parsed(address).and_then(|address| asns.network_of(address));
            networks.extend(network.map(|network| (network, key)));
        }
        networks
    }

    /// Returns the number of an autonomous system.
    pub(super) fn number(&self, key: u32) -> u32 {
        match &self.groups {
            Groups::Asns(asns) => asns[key as usize].number,
            _ => 0,
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let groups = match &self.groups {
            Groups::Asns(asns) => {
                let names = asns.iter().map(|it| it.name.capacity()).sum::<usize>();
                names + asns.capacity() * size_of::<Asn>()
            }
            Groups::Networks(networks) => networks.capacity() * size_of::<IpNet>(),
            Groups::Values => 0,
        };
        groups + self.by_code.capacity() * size_of::<u32>()
    }
}

/// Returns the groups of all addresses, and the group of each. `key` tells groups apart.
fn grouped<T, K: Eq + Hash>(
    addresses: &Dictionary,
    group: impl Fn(IpAddr) -> Option<T>,
    key: impl Fn(&T) -> K,
) -> (Vec<T>, Vec<u32>) {
    let mut groups = Vec::new();
    let mut found: HashMap<K, u32, RandomState> = HashMap::default();
    let by_code = addresses.values().map(|address| {
        let Some(group) = parsed(address).and_then(&group) else {
            return WITHOUT;
        };
        *found.entry(key(&group)).or_insert_with(|| {
            groups.push(group);
            (groups.len() - 1) as u32
        })
    });
    let by_code = by_code.collect();
    (groups, by_code)
}

/// Returns an address, or `None` for a host name.
fn parsed(address: &[u8]) -> Option<IpAddr> {
    let address: IpAddr = str::from_utf8(address).ok()?.parse().ok()?;
    Some(address.to_canonical())
}
