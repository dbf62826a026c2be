//! Builds the figures of a summary from counters.

use std::collections::BTreeMap;

use super::agent_names::AgentNames;
use super::country_codes::CountryCodes;
use super::dictionaries::Dictionaries;
use super::dictionary::{FIRST, OTHER, OTHER_NAME};
use super::ranking::{Dimension, entries, entry, highest};
use super::tallies::Tallies;
use super::tally::Tally;
use crate::excerpt::text;
use crate::store::{ADDRESS, AGENT, HOST, METHOD, PATH, REFERRER, TEXTS};
use crate::summary::{Bots, ErrorPaths, Firewall, Panel, Panels, Suspect};

/// Counters, and the names of what they count.
#[derive(Clone, Copy)]
pub(super) struct Report<'a> {
    pub(super) dictionaries: &'a Dictionaries,
    pub(super) tallies: &'a Tallies,
    pub(super) bots: &'a AgentNames,
    pub(super) countries: Option<&'a CountryCodes>,
    pub(super) top_max: usize,
}

impl<'a> Report<'a> {
    pub(super) fn panels(self) -> Panels {
        let panel = |dimension| self.dimension(dimension).panel(self.top_max);
        Panels {
            address: panel(ADDRESS),
            agent: panel(AGENT),
            country: self
                .countries
                .map(|it| it.panel(self.dimension(ADDRESS), self.top_max)),
            host: panel(HOST),
            method: panel(METHOD),
            path: panel(PATH),
            referrer: panel(REFERRER),
            status: self.statuses(),
        }
    }

    pub(super) fn error_paths(self) -> ErrorPaths {
        let paths = self.dimension(PATH);
        let top = |count: fn(&Tally) -> u64| {
            let all = paths
                .all()
                .map(|(value, tally)| (count(tally), value, tally));
            let top = highest(self.top_max, all).into_iter();
            top.map(|(errors, value, tally)| {
                let mut entry = entry(text(value), tally);
                (entry.requests, entry.errors) = (errors, errors);
                entry
            })
            .collect()
        };
        ErrorPaths {
            client: top(|tally| tally.client_errors),
            server: top(|tally| tally.server_errors),
        }
    }

    pub(super) fn firewall(self) -> Firewall {
        let (tallies, peaks) = (&self.tallies.by_code[ADDRESS], self.tallies.peaks.list());
        let names = self.dictionaries.of(ADDRESS);
        let addresses = || (FIRST..).zip(tallies.iter().zip(&peaks).skip(FIRST as usize));
        let suspects = |by_rate: bool| {
            let candidates = addresses().map(|(code, (tally, peak))| {
                let count = if by_rate {
                    peak.requests
                } else {
                    tally.errors()
                };
                (count, names.value(code), (tally, peak))
            });
            let top = highest(self.top_max, candidates).into_iter();
            top.map(|(_, value, (tally, peak))| Suspect {
                value: text(value),
                peak_per_minute: peak.requests,
                peak_at: peak.at,
                requests: tally.requests,
                errors: tally.errors(),
            })
            .collect()
        };
        Firewall {
            by_rate: suspects(true),
            by_errors: suspects(false),
            error_max: self.tallies.peaks.error_max(),
        }
    }

    pub(super) fn bots(self) -> Bots {
        let agents = self.dimension(AGENT);
        let tallies = self.bots.tallies(agents);
        let mut total = Tally::default();
        tallies.iter().for_each(|(_, tally)| total.add(tally));
        let candidates = tallies
            .iter()
            .map(|(name, tally)| (tally.requests, name.as_bytes(), tally));
        Bots {
            requests: total.requests,
            bytes: total.bytes,
            top: entries(self.top_max, candidates),
        }
    }

    /// Returns the panel of names in agents.
    pub(super) fn agent_names(self, names: &AgentNames) -> Panel {
        names.panel(self.dimension(AGENT), self.top_max)
    }

    /// Returns the requests by method; `(other)` is the sum of the methods without a code.
    pub(super) fn methods(self) -> BTreeMap<String, u64> {
        let methods = self.dimension(METHOD);
        let mut counts: BTreeMap<_, _> = methods
            .with_code()
            .map(|(method, tally)| (text(method), tally.requests))
            .filter(|(_, requests)| *requests > 0)
            .collect();
        let others = methods.tally(OTHER).requests;
        if others > 0 {
            counts.insert(OTHER_NAME.to_string(), others);
        }
        counts
    }

    /// Returns whether any dimension has values that are not tracked.
    pub(super) fn is_approximate(self) -> bool {
        (0..TEXTS.len()).any(|text| self.dimension(text).tally(OTHER).requests > 0)
    }

    fn statuses(self) -> Panel {
        let statuses = self.tallies.statuses.list();
        let candidates = statuses
            .iter()
            .map(|(code, tally)| (tally.requests, code.as_bytes(), tally));
        Panel {
            distinct: statuses.len() as u64,
            top: entries(self.top_max, candidates),
            ..Panel::default()
        }
    }

    pub(super) fn dimension(self, text: usize) -> Dimension<'a> {
        Dimension {
            dictionary: self.dictionaries.of(text),
            tallies: &self.tallies.by_code[text],
            overflow: self.tallies.overflows[text].as_deref(),
        }
    }
}
