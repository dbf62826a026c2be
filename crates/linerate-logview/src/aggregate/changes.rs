//! The values that explain why two periods of a log differ.

use std::collections::BTreeMap;
use std::iter::once;

use super::dictionary::{FIRST, NONE};
use super::ranking::{Dimension, highest};
use super::report::Report;
use super::tally::Tally;
use crate::excerpt::text;
use crate::query::{ChangesQuery, Field, Period};
use crate::store::{ADDRESS, AGENT, HOST, METHOD, PATH, REFERRER};
use crate::summary::{Change, Changes, PeriodTotals};

/// Deviations of at most this many standard deviations may be chance.
const DEVIATIONS: f64 = 3.0;

/// The fields whose values have codes.
const CODED: [(Field, usize); 6] = [
    (Field::Address, ADDRESS),
    (Field::Agent, AGENT),
    (Field::Host, HOST),
    (Field::Method, METHOD),
    (Field::Path, PATH),
    (Field::Referrer, REFERRER),
];

/// The requests of a value, or of all, in both periods.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
struct Pair {
    before: u64,
    after: u64,
}

/// What is known about all requests.
#[derive(Clone, Copy, Debug)]
struct Scale {
    /// How many times as long as `before` the period `after` is.
    length: f64,
    /// How many times as many requests as `before` it has; 0 if there were none before.
    growth: f64,
    /// True if there are fewer requests than the rate of `before` would give.
    is_fall: bool,
}

/// Finds the values that explain the difference.
pub(super) fn changes(query: &ChangesQuery, before: Report<'_>, after: Report<'_>) -> Changes {
    let totals = [totals(query.before, before), totals(query.after, after)];
    let all = Pair {
        before: totals[0].requests,
        after: totals[1].requests,
    };
    let scale = Scale::new(all, (query.before, query.after));
    let difference = scale.difference(all);
    let named = named(before, after);
    let named = named
        .iter()
        .map(|(field, value, pair)| (*field, value.as_bytes(), *pair));
    // If no request has a value, the log does not record the field.
    let coded = CODED.into_iter().flat_map(|(field, text)| {
        let values = values(before.dimension(text), after.dimension(text));
        let values = values.filter(move |(value, pair)| !value.is_empty() || *pair != all);
        values.map(move |(value, pair)| (field, value, pair))
    });
    let candidates = coded
        .chain(named)
        .map(|(field, value, pair)| (scale.deviation(pair), value, (field, pair)));
    let top = highest(query.top_max, candidates).into_iter();
    Changes {
        before: totals[0],
        after: totals[1],
        difference,
        values: top
            .map(|(_, value, (field, pair))| Change {
                field: field.name(),
                value: text(value),
                before: pair.before,
                after: pair.after,
                share: (difference != 0.0).then(|| scale.difference(pair) / difference),
            })
            .collect(),
        approximate: before.is_approximate() || after.is_approximate(),
    }
}

impl Scale {
    fn new(all: Pair, (before, after): (Period, Period)) -> Self {
        let length = after.seconds() as f64 / before.seconds() as f64;
        let growth = match all.before {
            0 => 0.0,
            before => all.after as f64 / before as f64,
        };
        Self {
            length,
            growth,
            is_fall: (all.after as f64) < all.before as f64 * length,
        }
    }

    /// Returns how many requests there are more than if the rate of `before` had continued.
    fn difference(self, pair: Pair) -> f64 {
        pair.after as f64 - pair.before as f64 * self.length
    }

    /// Returns by how much a value has grown more than all requests together, or has fallen more if
    /// there are fewer, in thousandths of a request; 0 if it has not, or if that may be chance.
    fn deviation(self, pair: Pair) -> u64 {
        let expected = pair.before as f64 * self.growth;
        let more = pair.after as f64 - expected;
        let deviation = if self.is_fall { -more } else { more };
        // The counts of both periods vary, each as much as its square root.
        let variance = (expected * (1.0 + self.growth)).max(1.0);
        match deviation > DEVIATIONS * variance.sqrt() {
            true => (deviation * 1_000.0) as u64,
            false => 0,
        }
    }
}

fn totals(period: Period, report: Report<'_>) -> PeriodTotals {
    let tallies = report.tallies;
    let classes = tallies.statuses.by_class();
    PeriodTotals {
        from: period.from,
        until: period.until,
        requests: tallies.requests,
        bytes: tallies.bytes_sent,
        errors: classes["4xx"] + classes["5xx"],
    }
}

/// Returns the values of a dimension, and the empty value.
fn values<'a>(
    before: Dimension<'a>,
    after: Dimension<'a>,
) -> impl Iterator<Item = (&'a [u8], Pair)> {
    let end = before.tallies.len().max(after.tallies.len());
    let codes = once(NONE).chain((FIRST..).take(end.saturating_sub(FIRST as usize)));
    codes.map(move |code| {
        let value = match code {
            NONE => &b""[..],
            code => before.dictionary.value(code),
        };
        let pair = Pair {
            before: before.tally(code).requests,
            after: after.tally(code).requests,
        };
        (value, pair)
    })
}

/// Returns the values of fields that have few.
fn named(before: Report<'_>, after: Report<'_>) -> Vec<(Field, String, Pair)> {
    let bots = |report: Report<'_>| {
        let names = report.bots.tallies(report.dimension(AGENT));
        names.into_iter().collect::<BTreeMap<_, _>>()
    };
    let countries = |report: Report<'_>| {
        let addresses = report.dimension(ADDRESS);
        let countries = report.countries.map(|it| it.tallies(addresses));
        countries.unwrap_or_default()
    };
    let statuses = |report: Report<'_>| {
        let statuses = report.tallies.statuses.list();
        statuses.into_iter().collect::<BTreeMap<_, _>>()
    };
    let fields = [
        (Field::Bot, bots(before), bots(after)),
        (Field::Country, countries(before), countries(after)),
        (Field::Status, statuses(before), statuses(after)),
    ];
    let mut all = Vec::new();
    for (field, before, after) in fields {
        let pairs = paired(before, after).into_iter();
        all.extend(pairs.map(|(value, pair)| (field, value, pair)));
    }
    all
}

fn paired(
    before: BTreeMap<String, Tally>,
    after: BTreeMap<String, Tally>,
) -> BTreeMap<String, Pair> {
    let mut pairs: BTreeMap<String, Pair> = BTreeMap::new();
    for (value, tally) in before {
        pairs.entry(value).or_default().before = tally.requests;
    }
    for (value, tally) in after {
        pairs.entry(value).or_default().after = tally.requests;
    }
    pairs
}
