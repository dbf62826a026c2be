//! Random combinations of filters and ranges, compared with the oracle.

use linerate_logview::{aggregate::Aggregator, summary::Summary};
use linerate_testkit::Rng;
use serde_json::{Value, json};

use crate::oracle;

/// The fields that are compared with values of the log.
const FIELDS: [&str; 6] = [
    "address",
    "agent",
    "method",
    "path",
    "referrer",
    "status_class",
];

/// Draws queries for the requests of a log.
struct Draw {
    rng: Rng,
    summary: Summary,
    panels: Value,
}

impl Draw {
    /// Returns conditions for the oracle, and filters that are equivalent to them.
    fn query(&mut self) -> (Value, Vec<String>) {
        let mut conditions = Vec::new();
        let mut filters = Vec::new();
        let mut fields = FIELDS.to_vec();
        for _ in 0..self.rng.below(4) {
            let field = fields.swap_remove(self.rng.below(fields.len()));
            filters.push(self.field(field, &mut conditions));
        }
        let mut query = json!({ "conditions": conditions });
        if self.rng.below(2) == 0 {
            let (from, until) = self.range();
            (query["from"], query["until"]) = (from.into(), until.into());
        }
        (query, filters)
    }

    /// Returns a range within the log.
    fn range(&mut self) -> (i64, i64) {
        let first = self.summary.first_time.expect("the log has requests");
        let last = self.summary.last_time.expect("the log has requests");
        let length = usize::try_from(last - first).expect("the log is not longer than a few days");
        let mut ends = [self.rng.below(length), self.rng.below(length)];
        ends.sort_unstable();
        (first + ends[0] as i64, first + ends[1] as i64 + 1)
    }

    /// Appends up to three conditions on a field, and returns the filter.
    fn field(&mut self, field: &str, conditions: &mut Vec<Value>) -> String {
        let (mut included, mut excluded) = (Vec::new(), Vec::new());
        for _ in 0..=self.rng.below(3) {
            let (value, is_network) = self.value(field);
            let exclude = self.rng.below(3) == 0;
            let comparison = format!("{field} == {}", json!(value));
            match exclude {
                true => excluded.push(format!("!({comparison})")),
                false => included.push(comparison),
            }
            conditions.push(json!({
                "dimension": field, "value": value, "exclude": exclude, "network": is_network,
            }));
        }
        if !included.is_empty() {
            excluded.push(format!("({})", included.join(" || ")));
        }
        excluded.join(" && ")
    }

    /// Returns a constant that some values of the field are equal to: one of the most frequent
    /// values, possibly with a wildcard in place of a part of it, or a network.
    fn value(&mut self, field: &str) -> (String, bool) {
        if field == "status_class" {
            let classes = ["1xx", "2xx", "3xx", "4xx", "5xx"];
            return ((*self.rng.pick(&classes)).to_owned(), false);
        }
        let top = self.panels[field]["top"].as_array().expect("a list");
        let plain = top.iter().filter_map(|entry| entry["value"].as_str());
        let is_plain = |value: &&str| value.is_ascii() && !value.contains(['*', '[', '\\', '"']);
        let plain: Vec<_> = plain.filter(is_plain).collect();
        let value = *self.rng.pick(&plain);
        if field == "address" && self.rng.below(2) == 0 {
            return (network(value), true);
        }
        let cut = 1 + self.rng.below(value.len());
        let constant = match self.rng.below(4) {
            0 => format!("{}*", &value[..cut]),
            1 => format!("*{}", &value[cut..]),
            2 => format!("*{}*", &value[cut / 2..cut]),
            _ => value.to_owned(),
        };
        (constant, false)
    }
}

/// Returns the network of an address.
fn network(address: &str) -> String {
    match address.parse().expect("an address of the log") {
        std::net::IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            format!("{a}.{b}.{c}.0/24")
        }
        std::net::IpAddr::V6(address) => {
            let [a, b, c, ..] = address.segments();
            format!("{a:x}:{b:x}:{c:x}::/48")
        }
    }
}

/// Compares the figures of random queries of a log with those of the oracle.
pub(crate) fn compare(read: &Aggregator, log: &[u8], queries: usize, seed: u64) {
    let summary = read.summary();
    let mut draw = Draw {
        rng: Rng::new(seed),
        panels: serde_json::to_value(&summary.panels).expect("panels are JSON"),
        summary,
    };
    let queries = (0..queries).map(|_| draw.query()).collect();
    oracle::compare_queries(read, log, queries);
}
