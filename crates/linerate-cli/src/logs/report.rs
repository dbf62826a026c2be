//! The statistics as text, with tables and bars.

mod changes;
mod charts;
mod rates;
mod table;

use linerate_harness::table::grouped;
use linerate_logview::summary::{Changes, Damage, Rates, Summary};

use super::text::{bytes, counted, moment, printable, shortened};

/// The dimensions of a report.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Desired maximum length of a line, in columns.
    pub(super) width: usize,
    /// True if values are cut so that lines have this length. Other programs get them whole.
    pub(super) cuts_values: bool,
    /// Maximum number of rows in each table.
    pub(super) rows_max: usize,
}

/// Returns the report as text.
pub(super) fn report(summary: &Summary, layout: Layout) -> String {
    let mut report = Report {
        text: String::new(),
        layout,
    };
    report.totals(summary);
    report.timeline(&summary.timeline);
    report.latency(summary.latency.as_ref());
    report.panels(summary);
    report.firewall(&summary.firewall);
    report.unparsed(summary);
    report.text
}

/// Returns what has changed, as text.
pub(super) fn changes(changes: &Changes, layout: Layout) -> String {
    let mut report = Report {
        text: String::new(),
        layout,
    };
    report.changes(changes);
    report.text
}

/// Returns the clients that exceed a limit, as text.
pub(super) fn rates(rates: &Rates, layout: Layout) -> String {
    let mut report = Report {
        text: String::new(),
        layout,
    };
    report.rates(rates);
    report.text
}

/// Describes a damaged file: its name, where it ends, and how much of it was counted.
pub(super) fn damage(damage: &Damage) -> String {
    let what = match damage.reason {
        "truncated" => "ends early, after",
        _ => "is damaged at or before",
    };
    format!(
        "{} {what} {}; {} of it {} counted",
        printable(&damage.file),
        counted(damage.bytes, "byte"),
        counted(damage.lines, "line"),
        if damage.lines == 1 { "was" } else { "were" },
    )
}

/// Returns the name of the format, and what makes it uncertain.
fn format_of(summary: &Summary) -> String {
    let name = printable(&summary.format);
    let Some(fit) = summary.format_fit.as_ref().filter(|fit| !fit.certain) else {
        return name;
    };
    let other = fit.runner_up.as_ref().map_or(String::new(), |other| {
        format!(
            "; {} reads {}",
            other.format,
            grouped(other.requests as u64)
        )
    });
    format!(
        "{name}, uncertain: {} reads {} of the first {} lines{other}; --format chooses one",
        fit.format,
        grouped(fit.requests as u64),
        grouped(fit.lines as u64),
    )
}

struct Report {
    text: String,
    layout: Layout,
}

impl Report {
    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    fn heading(&mut self, heading: &str) {
        self.line("");
        self.line(heading);
    }

    fn totals(&mut self, summary: &Summary) {
        let about = |is_exact: bool| if is_exact { "" } else { "about " };
        let (addresses, paths) = (&summary.panels.address, &summary.panels.path);
        let rows = [
            ("requests", grouped(summary.requests)),
            ("did not parse", grouped(summary.unparsed)),
            (
                "bytes sent",
                format!(
                    "{} ({})",
                    grouped(summary.bytes_sent),
                    bytes(summary.bytes_sent)
                ),
            ),
            (
                "addresses",
                format!("{}{}", about(addresses.exact), grouped(addresses.distinct)),
            ),
            (
                "paths",
                format!("{}{}", about(paths.exact), grouped(paths.distinct)),
            ),
            ("format", format_of(summary)),
        ];
        for (name, value) in rows {
            self.line(&format!("{name:<14}{value}"));
        }
        for it in &summary.damaged {
            self.line(&format!("{:<14}{}", "incomplete", damage(it)));
        }
        if let (Some(first), Some(last)) = (summary.first_time, summary.last_time) {
            self.line(&format!("{:<14}{}", "from", moment(first)));
            self.line(&format!("{:<14}{}", "to", moment(last)));
        }
    }

    fn unparsed(&mut self, summary: &Summary) {
        if summary.unparsed == 0 {
            return;
        }
        let reasons: Vec<_> = summary
            .unparsed_reasons
            .iter()
            .map(|(reason, count)| format!("{} {reason}", grouped(*count)))
            .collect();
        self.heading(&format!("Lines that did not parse: {}", reasons.join(", ")));
        for sample in &summary.unparsed_samples {
            let line = format!(
                "  line {}: {}",
                grouped(sample.line),
                printable(&sample.text)
            );
            self.line(&shortened(&line, self.layout.width));
        }
        let more = summary.unparsed - summary.unparsed_samples.len() as u64;
        if more > 0 {
            self.line(&format!("  and {} more", grouped(more)));
        }
    }
}

#[cfg(test)]
mod tests;
