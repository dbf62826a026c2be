//! The charts: requests over time, and their durations.

use linerate_harness::table::grouped;
use linerate_logview::summary::{Latency, Timeline};

use super::super::chart;
use super::super::text::{counted, duration, microseconds, moment, precise_moment};
use super::Report;

/// Width of the labels to the left of sparklines.
const NAME_WIDTH: usize = 6;

impl Report {
    pub(super) fn timeline(&mut self, timeline: &Timeline) {
        let Some(start) = timeline.start else { return };
        let all = chart::requests(timeline, |_| true);
        let buckets = all.len();
        let (columns, each) = chart::condense(&all, self.layout.width - 2 - NAME_WIDTH);
        let most = columns.iter().copied().max().unwrap_or(0);
        self.heading(&format!(
            "Requests over time: each column is {}, peak {}",
            duration(timeline.bucket_seconds * each as u64),
            grouped(most)
        ));
        self.sparkline("all", &columns);
        for class in ["4xx", "5xx"] {
            let of_class = chart::requests(timeline, |name| name == class);
            let (columns, _) = chart::condense(&of_class, self.layout.width - 2 - NAME_WIDTH);
            if columns.iter().any(|&count| count > 0) {
                self.sparkline(class, &columns);
            }
        }
        let end = start.saturating_add_unsigned(timeline.bucket_seconds * buckets as u64);
        let moment = match timeline.bucket_seconds {
            ..60 => precise_moment,
            60.. => moment,
        };
        let (start, end) = (moment(start), moment(end));
        let gap = columns.len().saturating_sub(start.len() + 1);
        self.line(&format!("  {:NAME_WIDTH$}{start} {end:>gap$}", ""));
        if timeline.outside > 0 {
            self.line(&format!(
                "  {} outside this period {} not shown",
                counted(timeline.outside, "request"),
                if timeline.outside == 1 { "is" } else { "are" },
            ));
        }
    }

    pub(super) fn latency(&mut self, latency: Option<&Latency>) {
        let Some(latency) = latency.filter(|latency| latency.count > 0) else {
            return;
        };
        let percentiles = [
            ("p50", latency.p50_us),
            ("p90", latency.p90_us),
            ("p99", latency.p99_us),
            ("p99.9", latency.p999_us),
            ("max", latency.max_us),
        ];
        let percentiles = percentiles.map(|(part, time)| format!("{part} {}", microseconds(time)));
        self.heading(&format!(
            "Duration of {}: {}",
            counted(latency.count, "request"),
            percentiles.join(", ")
        ));
        let counts: Vec<_> = latency.buckets.iter().map(|(_, count)| *count).collect();
        let (columns, _) = chart::condense(&counts, self.layout.width - 2 - NAME_WIDTH);
        self.sparkline("", &columns);
        if let (Some((first, _)), Some((last, _))) =
            (latency.buckets.first(), latency.buckets.last())
        {
            let (first, last) = (microseconds(*first), microseconds(*last));
            let gap = columns.len().saturating_sub(first.chars().count() + 1);
            self.line(&format!("  {:NAME_WIDTH$}{first} {last:>gap$}", ""));
        }
    }

    fn sparkline(&mut self, name: &str, columns: &[u64]) {
        let line = chart::sparkline(columns);
        self.line(&format!("  {name:<NAME_WIDTH$}{line}"));
    }
}
