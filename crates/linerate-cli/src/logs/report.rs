//! The figures in words, tables and bars.

use std::fmt::Write;

use linerate_logview::summary::Summary;
use time::OffsetDateTime;

use super::chart;
use crate::terminal;

/// How wide the bars of a table are.
const BAR_WIDTH: usize = 20;
/// What stands before the last column of a table: margin, count, share, bar and gaps.
const TABLE_HEAD_WIDTH: usize = 2 + 13 + 9 + 2 + BAR_WIDTH + 2;

/// Returns the report, whose lines have at most `width` columns where that is possible.
pub(super) fn report(summary: &Summary, width: usize) -> String {
    let mut report = Report {
        text: String::new(),
        width,
    };
    report.totals(summary);
    report.timeline(summary);
    report.table("Status", summary.requests, statuses(summary));
    let methods_heading = match summary.requests_without_path {
        0 => "Method".to_owned(),
        without => format!("Method ({} requests have none)", grouped(without)),
    };
    report.table(&methods_heading, summary.requests, methods(summary));
    let paths = summary
        .top_paths
        .iter()
        .map(|(path, count)| (printable(path), *count))
        .collect();
    report.table("Most requested paths", summary.requests, paths);
    report.unparsed(summary);
    report.text
}

struct Report {
    text: String,
    width: usize,
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
        let at_least = |is_exact: bool| if is_exact { "" } else { "at least " };
        let rows = [
            ("requests", grouped(summary.requests)),
            ("did not parse", grouped(summary.unparsed)),
            ("bytes sent", grouped(summary.bytes_sent)),
            (
                "addresses",
                at_least(summary.unique_addresses_exact).to_owned()
                    + &grouped(summary.unique_addresses),
            ),
            (
                "paths",
                at_least(summary.paths_exact).to_owned() + &grouped(summary.unique_paths),
            ),
        ];
        for (name, value) in rows {
            self.line(&format!("{name:<14}{value}"));
        }
        if let (Some(first), Some(last)) = (summary.first_time, summary.last_time) {
            self.line(&format!("{:<14}{}", "from", moment(first)));
            self.line(&format!("{:<14}{}", "to", moment(last)));
        }
    }

    fn timeline(&mut self, summary: &Summary) {
        let timeline = &summary.timeline;
        let Some(start) = timeline.start else { return };
        let buckets = timeline.classes.values().map(Vec::len).max().unwrap_or(0);
        let sums: Vec<u64> = (0..buckets)
            .map(|bucket| {
                timeline
                    .classes
                    .values()
                    .filter_map(|class| class.get(bucket))
                    .sum()
            })
            .collect();
        let (columns, each) = chart::condense(&sums, self.width - 2);
        let column_seconds = timeline.bucket_seconds * each as u64;
        let most = columns.iter().copied().max().unwrap_or(0);
        self.heading(&format!(
            "Requests over time: each column is {}, the highest {}",
            duration(column_seconds),
            grouped(most)
        ));
        self.line(&format!("  {}", chart::sparkline(&columns)));
        let end = start.saturating_add_unsigned(timeline.bucket_seconds * buckets as u64);
        let (start, end) = (moment(start), moment(end));
        let gap = columns.len().saturating_sub(start.len());
        self.line(&format!(
            "  {start} {end:>width$}",
            width = gap.saturating_sub(1)
        ));
        if timeline.outside > 0 {
            let outside = grouped(timeline.outside);
            self.line(&format!(
                "  {outside} requests are of other times and not shown"
            ));
        }
    }

    fn table(&mut self, heading: &str, total: u64, rows: Vec<(String, u64)>) {
        if rows.is_empty() {
            return;
        }
        self.heading(heading);
        let max = rows.iter().map(|(_, count)| *count).max().unwrap_or(0);
        for (name, count) in rows {
            let name = shortened(&name, self.width.saturating_sub(TABLE_HEAD_WIDTH));
            let bar = chart::bar(count, max, BAR_WIDTH);
            let (count, share) = (grouped(count), percent(count, total));
            self.line(&format!(
                "  {count:>13}{share:>9}  {bar:<BAR_WIDTH$}  {name}"
            ));
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
            self.line(&shortened(&line, self.width));
        }
        let more = summary.unparsed - summary.unparsed_samples.len() as u64;
        if more > 0 {
            self.line(&format!("  and {} more", grouped(more)));
        }
    }
}

fn statuses(summary: &Summary) -> Vec<(String, u64)> {
    let mut statuses: Vec<_> = summary.statuses.clone().into_iter().collect();
    statuses.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    statuses
}

fn methods(summary: &Summary) -> Vec<(String, u64)> {
    let mut methods: Vec<_> = summary
        .methods
        .iter()
        .map(|(method, count)| (printable(method), *count))
        .collect();
    methods.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    methods
}

/// Returns a number with its thousands grouped: `33,468`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

fn percent(count: u64, total: u64) -> String {
    let mut percent = String::new();
    // Writing to a string can't fail.
    _ = write!(
        percent,
        "{:.1} %",
        count as f64 * 100.0 / total.max(1) as f64
    );
    percent
}

/// Returns a moment in UTC: `2021-01-22 01:47 UTC`; one that no calendar knows in seconds.
fn moment(seconds: i64) -> String {
    match OffsetDateTime::from_unix_timestamp(seconds) {
        Ok(at) => format!(
            "{:04}-{:02}-{:02} {:02}:{:02} UTC",
            at.year(),
            u8::from(at.month()),
            at.day(),
            at.hour(),
            at.minute()
        ),
        Err(_) => format!("{seconds} s"),
    }
}

/// Returns a duration in the largest unit that fits: `1 minute`, `2.5 hours`.
fn duration(seconds: u64) -> String {
    let (unit, name) = match seconds {
        0..3_600 => (60, "minute"),
        3_600..86_400 => (3_600, "hour"),
        _ => (86_400, "day"),
    };
    let count = seconds as f64 / unit as f64;
    let plural = if seconds == unit { "" } else { "s" };
    // Two decimals at most, and none that say nothing.
    let count = format!("{count:.2}");
    let count = count.trim_end_matches('0').trim_end_matches('.');
    format!("{count} {name}{plural}")
}

/// Returns at most `chars` characters of `text`, with an ellipsis if there were more.
fn shortened(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        None => text.to_owned(),
        Some(_) => text
            .chars()
            .take(chars.saturating_sub(1))
            .chain(['…'])
            .collect(),
    }
}

/// Returns text of a log in one line.
fn printable(text: &str) -> String {
    terminal::printable(text, &[])
}

#[cfg(test)]
mod tests {
    use linerate_logview::aggregate::{Aggregator, Limits};

    use super::{duration, grouped, moment, report, shortened};

    #[test]
    fn a_report_says_what_was_counted() {
        let mut log = Aggregator::new(Limits::default());
        log.handle_input(b"\x1b[31mno request\n");
        for i in 0..1_200 {
            let (minute, status) = (i / 60, if i % 3 == 0 { 404 } else { 200 });
            let line = format!(
                "192.0.2.{} - - [22/Jan/2021:01:{minute:02}:05 +0000] \"GET /{} HTTP/1.1\" {status} 1000\n",
                i % 5,
                "x".repeat(if i == 0 { 300 } else { 3 })
            );
            log.handle_input(line.as_bytes());
        }
        let text = report(&log.summary(), 80);
        let expected = "\
requests      1,200
did not parse 1
bytes sent    1,200,000
addresses     5
paths         2
from          2021-01-22 01:00 UTC
to            2021-01-22 01:19 UTC

Requests over time: each column is 1 minute, the highest 60
  ████████████████████
  2021-01-22 01:00 UTC 2021-01-22 01:20 UTC

Status
            800   66.7 %  ████████████████████  200
            400   33.3 %  ██████████            404

Method
          1,200  100.0 %  ████████████████████  GET

Most requested paths
          1,199   99.9 %  ████████████████████  /xxx
              1    0.1 %  ▏                     /xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…

Lines that did not parse: 1 bad address
  line 1: \\u{1b}[31mno request
";
        assert_eq!(text, expected);
        assert!(text.lines().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn an_empty_log_has_no_charts() {
        let text = report(&Aggregator::new(Limits::default()).summary(), 80);
        assert_eq!(text.lines().count(), 5);
    }

    #[test]
    fn numbers_times_and_durations_are_for_people() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(404_908_179), "404,908,179");
        assert_eq!(moment(-1), "1969-12-31 23:59 UTC");
        assert_eq!(moment(i64::MAX), format!("{} s", i64::MAX));
        assert_eq!(duration(60), "1 minute");
        assert_eq!(duration(240), "4 minutes");
        assert_eq!(duration(9_000), "2.5 hours");
        assert_eq!(duration(86_400), "1 day");
    }

    #[test]
    fn what_is_too_long_ends_with_an_ellipsis() {
        assert_eq!(shortened("größer", 6), "größer");
        assert_eq!(shortened("größer", 5), "größ…");
        assert_eq!(shortened("größer", 0), "…");
    }
}
