//! The countries of addresses, looked up once per address.

use std::collections::BTreeMap;

use super::dictionary::{Dictionary, FIRST, NONE, OTHER};
use super::ranking::{Dimension, entry, highest};
use super::tally::Tally;
use crate::countries::Countries;
use crate::summary::Panel;

/// All pairs of letters: more codes than there are countries.
const CODES_MAX: usize = 26 * 26;

/// The countries of addresses.
#[derive(Debug)]
pub(crate) struct CountryCodes {
    /// `None` if all addresses have been looked up, as in a report.
    countries: Option<Countries>,
    codes: Dictionary,
    /// The country names, by the codes in `codes`, from [`FIRST`].
    names: Vec<String>,
    /// The code of a country by the code of an address, from [`FIRST`].
    by_address: Vec<u32>,
}

impl CountryCodes {
    pub(super) fn new(countries: Countries) -> Self {
        Self {
            countries: Some(countries),
            codes: Dictionary::new(CODES_MAX, CODES_MAX * 2),
            names: Vec::new(),
            by_address: Vec::new(),
        }
    }

    /// Creates the countries of addresses that were looked up already: a name for each ISO code,
    /// and the code for each address.
    pub(super) fn of_known(codes: Dictionary, names: Vec<String>, by_address: Vec<u32>) -> Self {
        Self {
            countries: None,
            codes,
            names,
            by_address,
        }
    }

    /// Returns the ISO codes.
    pub(super) fn codes(&self) -> &Dictionary {
        &self.codes
    }

    /// Returns the code of the country of an address that has a code itself.
    pub(super) fn code_of(&self, address: u32) -> u32 {
        let at = address.checked_sub(FIRST).map(|at| at as usize);
        let code = at.and_then(|at| self.by_address.get(at));
        code.copied().unwrap_or(NONE)
    }

    /// Looks up the addresses that were added since the last call.
    pub(super) fn look_up(&mut self, addresses: &Dictionary) {
        let Some(countries) = &self.countries else {
            return;
        };
        for address in addresses.values_from(self.by_address.len()) {
            let code = match countries.of(address) {
                None => NONE,
                Some(country) => {
                    let code = self.codes.code(country.code.as_bytes());
                    if (code - FIRST) as usize == self.names.len() {
                        self.names.push(country.name);
                    }
                    code
                }
            };
            self.by_address.push(code);
        }
    }

    /// Returns for each address, in the order of codes, whether `chooses` is true for the ISO code
    /// of its country. The ISO code is empty if the country is unknown.
    pub(crate) fn of_addresses(&self, chooses: impl Fn(&[u8]) -> bool) -> Vec<bool> {
        let (none, others) = ([&b""[..]; 2], self.codes.values());
        let by_code: Vec<bool> = none.into_iter().chain(others).map(chooses).collect();
        let codes = self.by_address.iter();
        codes.map(|&code| by_code[code as usize]).collect()
    }

    /// Returns the tallies of countries, from those of addresses. Addresses without a code are
    /// looked up again if they are tracked; the requests of other addresses are not counted.
    pub(super) fn tallies(&self, addresses: Dimension<'_>) -> BTreeMap<String, Tally> {
        let mut sums: BTreeMap<String, Tally> = BTreeMap::new();
        let with_code = addresses.tallies.iter().skip(FIRST as usize);
        let mut by_code = vec![Tally::default(); self.codes.len() + FIRST as usize];
        for (tally, &code) in with_code.zip(&self.by_address) {
            by_code[code as usize].add(tally);
        }
        by_code[NONE as usize].add(&addresses.tally(NONE));
        for (code, tally) in (0..).zip(&by_code).filter(|(_, tally)| tally.requests > 0) {
            sums.insert(self.codes.text(code), *tally);
        }
        for tracked in addresses.overflow.into_iter().flat_map(|it| it.tracked()) {
            let countries = self.countries.as_ref();
            let country = countries.and_then(|it| it.of(&tracked.text));
            let country = country.map(|it| it.code);
            let sum = sums.entry(country.unwrap_or_default()).or_default();
            sum.add(&tracked.tally);
        }
        sums
    }

    /// Returns the panel of countries, from the tallies of addresses.
    pub(super) fn panel(&self, addresses: Dimension<'_>, top_max: usize) -> Panel {
        let mut sums = self.tallies(addresses);
        let not_tracked = addresses.tally(OTHER).requests;
        let tracked = addresses.overflow.into_iter().flat_map(|it| it.tracked());
        let not_counted = not_tracked - tracked.map(|it| it.tally.requests).sum::<u64>();
        let unknown = sums.remove("").unwrap_or_default();
        let candidates = sums
            .iter()
            .map(|(code, tally)| (tally.requests, code.as_bytes(), (code, tally)));
        let top = highest(top_max, candidates).into_iter();
        Panel {
            distinct: sums.len() as u64,
            exact: not_tracked == 0,
            error_max: not_counted,
            not_counted,
            none: unknown.requests,
            top: top
                .map(|(.., (code, tally))| entry(code.clone(), tally))
                .collect(),
        }
    }

    /// Returns the names of all countries that occurred, by ISO code.
    pub(super) fn names(&self) -> BTreeMap<String, String> {
        let codes = self
            .codes
            .values()
            .map(|code| String::from_utf8_lossy(code).into_owned());
        codes.zip(self.names.iter().cloned()).collect()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let names: usize = self
            .names
            .iter()
            .map(|it| it.capacity() + size_of::<String>())
            .sum();
        names + self.codes.memory_bytes() + self.by_address.capacity() * size_of::<u32>()
    }
}
