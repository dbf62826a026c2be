//! Tables of values, most frequent first.

use linerate_harness::table::grouped;
use linerate_logview::summary::{Firewall, Panel, Ranked, Summary, Suspect};

use super::super::chart;
use super::super::text::{bytes, counted, moment, percent, printable, without_middle};
use super::Report;

/// Width of the bars, in wide reports, in narrow ones, and where the values need the space.
const BAR_WIDTHS: [usize; 3] = [20, 10, 0];
/// Minimum number of columns of a wide report.
const WIDE: usize = 100;
/// Values that are longer than this are cut, rather than the bars.
const VALUE_CHARS: usize = 60;
/// Width of everything before the last column except the bar: requests, share, bytes, errors and
/// gaps.
const NUMBERS_WIDTH: usize = 2 + 11 + 9 + 2 + 9 + 9 + 2;

impl Report {
    pub(super) fn panels(&mut self, summary: &Summary) {
        let panels = &summary.panels;
        for (name, panel) in [
            ("Statuses", &panels.status),
            ("Methods", &panels.method),
            ("Virtual hosts", &panels.host),
            ("Paths", &panels.path),
            ("Addresses", &panels.address),
            ("Referrers", &panels.referrer),
            ("Agents", &panels.agent),
            ("Browsers", &summary.browsers),
            ("Systems", &summary.systems),
        ] {
            self.ranked(&title(name, panel), summary.requests, &panel.top);
        }
        self.countries(summary);
        let bots = &summary.bots;
        let title = format!("Bots: {}", counted(bots.requests, "request"));
        self.ranked(&title, summary.requests, &bots.top);
        for (title, rows) in [
            (
                "Paths with client errors (4xx)",
                &summary.error_paths.client,
            ),
            (
                "Paths with server errors (5xx)",
                &summary.error_paths.server,
            ),
        ] {
            self.ranked(title, summary.requests, rows);
        }
    }

    pub(super) fn firewall(&mut self, firewall: &Firewall) {
        let mut title = "Addresses by busiest minute".to_owned();
        if firewall.error_max > 0 {
            title += &format!(
                ", counts may be up to {} too low",
                grouped(firewall.error_max)
            );
        }
        self.suspects(&title, &firewall.by_rate);
        self.suspects("Addresses by errors", &firewall.by_errors);
    }

    /// Shows the table of countries with their names, if addresses were looked up.
    fn countries(&mut self, summary: &Summary) {
        let (Some(panel), Some(names)) = (&summary.panels.country, &summary.country_names) else {
            return;
        };
        let mut panel = panel.clone();
        for row in &mut panel.top {
            if let Some(name) = names.get(&row.value) {
                row.value = format!("{} {name}", row.value);
            }
        }
        let unknown = std::mem::take(&mut panel.none);
        let mut title = title("Countries", &panel);
        if unknown > 0 {
            title += &format!(", {} from unknown countries", counted(unknown, "request"));
        }
        self.ranked(&title, summary.requests, &panel.top);
    }

    fn ranked(&mut self, title: &str, total: u64, rows: &[Ranked]) {
        if rows.is_empty() {
            return;
        }
        self.heading(title);
        let bar_width = self.bar_width(rows);
        self.line(&format!(
            "  {:>11}{:>9}  {:bar_width$}{:>9}{:>9}",
            "requests", "share", "", "sent", "errors"
        ));
        let max = rows.iter().map(|row| row.requests).max().unwrap_or(0);
        for row in rows.iter().take(self.layout.rows_max) {
            let room = self.layout.width.saturating_sub(NUMBERS_WIDTH + bar_width);
            self.line(&format!(
                "  {:>11}{:>9}  {:<bar_width$}{:>9}{:>9}  {}",
                grouped(row.requests),
                percent(row.requests, total),
                chart::bar(row.requests, max, bar_width),
                bytes(row.bytes),
                grouped(row.errors),
                self.value(&row.value, room)
            ));
        }
    }

    /// Returns the greatest width of the bars that leaves enough space for the values.
    fn bar_width(&self, rows: &[Ranked]) -> usize {
        let shown = rows.iter().take(self.layout.rows_max);
        let longest = shown.map(|row| printable(&row.value).chars().count()).max();
        let needed = longest.unwrap_or(0).min(VALUE_CHARS);
        let widths = BAR_WIDTHS
            .into_iter()
            .skip(usize::from(self.layout.width < WIDE));
        let fits = |bar: &usize| NUMBERS_WIDTH + bar + needed <= self.layout.width;
        let mut widths = widths.filter(|bar| !self.layout.cuts_values || fits(bar));
        widths.next().unwrap_or(0)
    }

    /// Returns a value, in at most `room` characters if values are cut.
    pub(super) fn value(&self, value: &str, room: usize) -> String {
        let value = printable(value);
        match self.layout.cuts_values {
            true => without_middle(&value, room),
            false => value,
        }
    }

    fn suspects(&mut self, title: &str, rows: &[Suspect]) {
        if rows.is_empty() {
            return;
        }
        self.heading(title);
        self.line(&format!(
            "  {:>11}{:>11}{:>9}  {:<20}  address",
            "per minute", "requests", "errors", "busiest minute"
        ));
        for row in rows.iter().take(self.layout.rows_max) {
            let room = self
                .layout
                .width
                .saturating_sub(2 + 11 + 11 + 9 + 2 + 20 + 2);
            self.line(&format!(
                "  {:>11}{:>11}{:>9}  {:<20}  {}",
                grouped(row.peak_per_minute),
                grouped(row.requests),
                grouped(row.errors),
                moment(row.peak_at),
                self.value(&row.value, room)
            ));
        }
    }
}

/// Returns the title of a panel, which states how exact its numbers are.
fn title(name: &str, panel: &Panel) -> String {
    let about = if panel.exact { "" } else { "about " };
    let mut title = format!("{name}: {about}{}", grouped(panel.distinct));
    if panel.none > 0 {
        title += &format!(
            ", {} {} none",
            counted(panel.none, "request"),
            have(panel.none)
        );
    }
    if panel.error_max > 0 {
        title += &format!(", counts may be up to {} too low", grouped(panel.error_max));
    }
    if panel.not_counted > 0 {
        title += &format!(
            ", {} {} other values",
            counted(panel.not_counted, "request"),
            have(panel.not_counted)
        );
    }
    title
}

fn have(count: u64) -> &'static str {
    if count == 1 { "has" } else { "have" }
}
