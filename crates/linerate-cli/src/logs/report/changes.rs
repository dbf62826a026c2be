//! The values that explain why two periods differ.

use linerate_harness::table::grouped;
use linerate_logview::summary::{Change, Changes, PeriodTotals};

use super::super::text::{bytes, counted, duration, precise_moment};
use super::Report;

/// Width of everything before the values.
const NUMBERS_WIDTH: usize = 2 + 11 + 11 + 9 + 2 + FIELD_WIDTH + 2;
/// Width of the longest name of a field.
const FIELD_WIDTH: usize = 8;

impl Report {
    pub(super) fn changes(&mut self, changes: &Changes) {
        self.line(&format!(
            "  {:<9}{:>11}{:>9}{:>9}  from",
            "", "requests", "sent", "errors"
        ));
        self.period("before", &changes.before);
        self.period("after", &changes.after);
        self.line("");
        self.line(&sentence(changes.difference));
        if changes.values.is_empty() {
            self.line("No value stands out.");
            return;
        }
        self.heading("Values that stand out");
        self.line(&format!(
            "  {:>11}{:>11}{:>9}  {:<FIELD_WIDTH$}  value",
            "before", "after", "share", "field"
        ));
        for change in changes.values.iter().take(self.layout.rows_max) {
            self.change(change);
        }
        if changes.approximate {
            self.line("");
            self.line("Requests whose values are not tracked are left out.");
        }
    }

    fn period(&mut self, name: &str, totals: &PeriodTotals) {
        let length = totals.until.abs_diff(totals.from);
        self.line(&format!(
            "  {name:<9}{:>11}{:>9}{:>9}  {}, {}",
            grouped(totals.requests),
            bytes(totals.bytes),
            grouped(totals.errors),
            precise_moment(totals.from),
            duration(length),
        ));
    }

    fn change(&mut self, change: &Change) {
        let share = match change.share {
            Some(share) => format!("{:.1} %", share * 100.0),
            None => String::new(),
        };
        let value = match change.value.is_empty() {
            true => "(none)".to_owned(),
            false => {
                let room = self.layout.width.saturating_sub(NUMBERS_WIDTH);
                self.value(&change.value, room)
            }
        };
        self.line(&format!(
            "  {:>11}{:>11}{share:>9}  {:<FIELD_WIDTH$}  {value}",
            grouped(change.before),
            grouped(change.after),
            change.field,
        ));
    }
}

/// Describes the difference in requests.
fn sentence(difference: f64) -> String {
    let requests = counted(difference.abs().round() as u64, "request");
    match difference.round() {
        0.0 => "As many requests as at the rate before.".to_owned(),
        ..0.0 => format!("{requests} fewer than at the rate before."),
        _ => format!("{requests} more than at the rate before."),
    }
}
