//! The answer of a search for clients that exceed a limit.

use super::{RateSearch, RateSource};
use crate::aggregate::ranking::highest;
use crate::query::{QueryError, RateKey, RuleFormat};
use crate::rate::rules::{Agent, RuleSet, rules};
use crate::summary::{RateLimited, Rates};

impl RateSearch {
    /// Returns the answer once the search is complete. Times are multiples of `time_step_s`.
    pub(in crate::aggregate) fn answer(
        &self,
        source: RateSource<'_>,
        time_step_s: u32,
    ) -> Result<Rates, QueryError> {
        let texts: Vec<_> = self
            .excesses
            .iter()
            .map(|(key, _)| self.keys.text(*key, source.dictionaries))
            .collect();
        let candidates = (0..).zip(&texts).map(|(at, (value, _))| {
            let (_, excess) = self.excesses[at];
            (excess.over, value.as_bytes(), at)
        });
        let top = highest(self.top_max, candidates);
        let listed: Vec<(u32, RateLimited)> = top
            .into_iter()
            .map(|(.., at)| (self.excesses[at].0, self.limited(at, &texts[at])))
            .collect();
        let used = self.totals.iter().filter(|totals| totals.requests > 0);
        let mut rates = Rates {
            limit: self.query.limit,
            by: self.query.by,
            requests: used.clone().map(|totals| totals.requests).sum(),
            without_key: self.without_key,
            keys: used.clone().count() as u64,
            people: used.filter(|totals| totals.looks_like_people).count() as u64,
            effect: self.curve.effect_of(self.query.limit),
            limited: Vec::new(),
            curve: self.curve.effects(),
            time_step_s,
            rules: None,
        };
        if let Some(format) = self.query.rules {
            rates.rules = Some(self.rules(format, &rates, &listed, source)?);
        }
        rates.limited = listed.into_iter().map(|(_, limited)| limited).collect();
        Ok(rates)
    }

    fn limited(&self, at: usize, (value, name): &(String, String)) -> RateLimited {
        let (key, excess) = self.excesses[at];
        let totals = self.totals[key as usize];
        let (first, last) = excess.span.unwrap_or_default();
        RateLimited {
            value: value.clone(),
            name: name.clone(),
            requests: totals.requests,
            over: excess.over,
            times: excess.times,
            first,
            last,
            peak: excess.peak,
            peak_at: excess.peak_at,
            errors: totals.errors,
            programs: totals.programs,
            looks_like_people: totals.looks_like_people,
        }
    }

    /// Returns the rules that block the listed keys, except those that look like people.
    fn rules(
        &self,
        format: RuleFormat,
        rates: &Rates,
        listed: &[(u32, RateLimited)],
        source: RateSource<'_>,
    ) -> Result<String, QueryError> {
        let programs: Vec<u32> = listed
            .iter()
            .filter(|(_, limited)| !limited.looks_like_people)
            .map(|(key, _)| *key)
            .collect();
        let by = self.query.by;
        let mut set = RuleSet {
            limit: self.query.limit,
            by,
            networks: Vec::new(),
            agents: Vec::new(),
            systems: Vec::new(),
            spared: rates.effect.people,
            omitted: 0,
        };
        let blocked = match by {
            RateKey::Agent => {
                let values = programs
                    .iter()
                    .map(|key| self.keys.value(*key, source.dictionaries));
                set.agents = values.filter_map(Agent::new).collect();
                set.agents.len()
            }
            RateKey::Address | RateKey::Network => {
                let networks = programs
                    .iter()
                    .filter_map(|key| self.keys.network(*key, source.dictionaries));
                set.networks = networks.collect();
                set.networks.len()
            }
            RateKey::Asn => {
                let chooses = |key| listed.iter().any(|(listed, _)| *listed == key);
                let systems = self
                    .keys
                    .networks(source.dictionaries, source.asns, chooses);
                let denied = systems.iter().filter(|(_, key)| programs.contains(key));
                set.networks = denied.map(|(network, _)| *network).collect();
                let systems = systems.into_iter();
                set.systems = systems
                    .map(|(network, key)| (network, self.keys.number(key)))
                    .collect();
                programs.len()
            }
        };
        set.omitted = (rates.effect.keys - rates.effect.people).saturating_sub(blocked as u64);
        rules(format, &set).ok_or(QueryError::NoSuchRules {
            program: format,
            by,
        })
    }
}
