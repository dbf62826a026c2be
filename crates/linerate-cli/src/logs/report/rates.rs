//! The clients that exceed a limit of requests.

use linerate_harness::table::grouped;
use linerate_logview::{
    query::RateKey,
    summary::{RateEffect, RateLimited, Rates},
};

use super::super::text::{counted, percent, precise_moment};
use super::Report;

/// Width of everything before the values.
const NUMBERS_WIDTH: usize = 2 + 10 + 10 + 8 + 9 + 8 + 25 + 2;

impl Report {
    pub(super) fn rates(&mut self, rates: &Rates) {
        let (limit, effect) = (rates.limit, &rates.effect);
        let seconds = limit.seconds();
        let rows = [
            (
                "limit",
                format!(
                    "{} in any {seconds} s by {}",
                    counted(limit.requests(), "request"),
                    key(rates.by)
                ),
            ),
            (
                "requests",
                format!(
                    "{}, {} ({} like people)",
                    grouped(rates.requests),
                    keys(rates.keys, rates.by),
                    grouped(rates.people)
                ),
            ),
            (
                "exceeded by",
                format!(
                    "{} ({} like people)",
                    keys(effect.keys, rates.by),
                    grouped(effect.people)
                ),
            ),
            (
                "over it",
                format!(
                    "{}, {} of all that these sent ({} like people)",
                    counted(effect.over, "request"),
                    percent(effect.over, effect.requests),
                    grouped(effect.people_over)
                ),
            ),
        ];
        for (name, value) in rows {
            self.line(&format!("{name:<14}{value}"));
        }
        if rates.without_key > 0 {
            let without = counted(rates.without_key, "request");
            let key = key(rates.by);
            self.line(&format!("{:<14}{without} without {key}", "not counted"));
        }
        self.limited(rates);
        self.heading(&format!("Other limits in {seconds} s"));
        self.line(&format!(
            "  {:>10}{:>10}{:>8}{:>12}{:>9}{:>12}",
            "allowed", "exceed", "people", "over", "share", "people over"
        ));
        for effect in &rates.curve {
            self.effect(effect);
        }
    }

    fn limited(&mut self, rates: &Rates) {
        if rates.limited.is_empty() {
            return;
        }
        self.heading("Most requests over the limit");
        self.line(&format!(
            "  {:>10}{:>10}{:>8}{:>9}{:>8}  {:<23}  {}",
            "over",
            "requests",
            "times",
            "most",
            "people",
            "first",
            key(rates.by)
        ));
        for limited in rates.limited.iter().take(self.layout.rows_max) {
            self.limited_key(limited);
        }
    }

    fn limited_key(&mut self, limited: &RateLimited) {
        let people = if limited.looks_like_people { "yes" } else { "" };
        let room = self.layout.width.saturating_sub(NUMBERS_WIDTH);
        let value = match limited.name.as_str() {
            "" => self.value(&limited.value, room),
            name => self.value(&format!("{} {name}", limited.value), room),
        };
        self.line(&format!(
            "  {:>10}{:>10}{:>8}{:>9}{people:>8}  {:<23}  {value}",
            grouped(limited.over),
            grouped(limited.requests),
            grouped(limited.times),
            grouped(limited.peak),
            precise_moment(limited.first),
        ));
    }

    fn effect(&mut self, effect: &RateEffect) {
        self.line(&format!(
            "  {:>10}{:>10}{:>8}{:>12}{:>9}{:>12}",
            grouped(effect.allowed),
            grouped(effect.keys),
            grouped(effect.people),
            grouped(effect.over),
            percent(effect.over, effect.requests),
            grouped(effect.people_over),
        ));
    }
}

/// Returns a number of keys: `1 address`, `2 addresses`.
fn keys(count: u64, by: RateKey) -> String {
    match by {
        RateKey::Address if count != 1 => format!("{} addresses", grouped(count)),
        by => counted(count, key(by)),
    }
}

fn key(by: RateKey) -> &'static str {
    match by {
        RateKey::Asn => "system",
        by => by.name(),
    }
}
