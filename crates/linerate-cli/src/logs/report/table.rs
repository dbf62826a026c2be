//! Tables of values, most frequent first.

use linerate_harness::table::grouped;
use linerate_logview::summary::{Firewall, Panel, Ranked, Summary, Suspect};

use super::super::chart;
use super::Report;
use super::text::{bytes, moment, percent, printable, shortened};

/// Width of the bars, in narrow reports and in wide ones.
const BAR_WIDTHS: [usize; 2] = [10, 20];
/// Minimum number of columns of a wide report.
const WIDE: usize = 100;
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
        ] {
            self.ranked(&title(name, panel), summary.requests, &panel.top);
        }
        self.countries(summary);
        let bots = &summary.bots;
        let title = format!("Bots: {} requests", grouped(bots.requests));
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
            title += &format!(", {} requests from unknown countries", grouped(unknown));
        }
        self.ranked(&title, summary.requests, &panel.top);
    }

    fn ranked(&mut self, title: &str, total: u64, rows: &[Ranked]) {
        if rows.is_empty() {
            return;
        }
        self.heading(title);
        let bar_width = BAR_WIDTHS[usize::from(self.layout.width >= WIDE)];
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
                value(&row.value, room)
            ));
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
                value(&row.value, room)
            ));
        }
    }
}

/// Returns the title of a panel, which states how exact its numbers are.
fn title(name: &str, panel: &Panel) -> String {
    let about = if panel.exact { "" } else { "about " };
    let mut title = format!("{name}: {about}{}", grouped(panel.distinct));
    if panel.none > 0 {
        title += &format!(", {} requests have none", grouped(panel.none));
    }
    if panel.error_max > 0 {
        title += &format!(", counts may be up to {} too low", grouped(panel.error_max));
    }
    if panel.not_counted > 0 {
        title += &format!(
            ", {} requests have other values",
            grouped(panel.not_counted)
        );
    }
    title
}

fn value(value: &str, room: usize) -> String {
    shortened(&printable(value), room)
}
