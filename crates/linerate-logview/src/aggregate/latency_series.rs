//! How long requests took over time.

use super::latency::{Durations, RELATIVE_ERROR};
use super::timeline::Span;
use crate::store::Row;
use crate::summary::{self, Latency};

/// The most buckets: each takes 30 KiB of memory.
const BUCKETS_MAX: usize = 240;

/// The durations of each bucket of time.
#[derive(Debug)]
pub(super) struct LatencySeries {
    span: Option<Span>,
    buckets: Vec<Durations>,
}

impl LatencySeries {
    /// Creates a series of a span; without one, nothing is counted.
    pub(super) fn new(span: Option<Span>) -> Self {
        let span = span.map(|span| span.with_buckets(BUCKETS_MAX));
        let len = span.map_or(0, |span| span.len());
        Self {
            span,
            buckets: std::iter::repeat_with(Durations::default)
                .take(len)
                .collect(),
        }
    }

    pub(super) fn count_all(&mut self, rows: &[Row]) {
        for row in rows {
            let bucket = self.span.and_then(|span| span.bucket_of(row.time));
            if let (Some(bucket), Some(duration)) = (bucket, row.duration)
                && let Some(durations) = self.buckets.get_mut(bucket)
            {
                durations.count(duration);
            }
        }
    }

    pub(super) fn summary(&self) -> summary::LatencySeries {
        let all: Vec<_> = self.buckets.iter().map(Durations::summary).collect();
        let each = |figure: fn(&Latency) -> u64| {
            let figures = all.iter().map(|it| it.as_ref().map(figure));
            figures.collect::<Vec<_>>()
        };
        let counts = all.iter().map(|it| it.as_ref().map_or(0, |it| it.count));
        summary::LatencySeries {
            start: self.span.map(Span::start),
            bucket_seconds: self.span.map_or(60, Span::bucket_seconds),
            counts: counts.collect(),
            p50_us: each(|it| it.p50_us),
            p90_us: each(|it| it.p90_us),
            p99_us: each(|it| it.p99_us),
            p999_us: each(|it| it.p999_us),
            error: RELATIVE_ERROR,
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let buckets = self.buckets.iter();
        let buckets = buckets.map(|it| size_of::<Durations>() + it.memory_bytes());
        size_of::<Self>() + buckets.sum::<usize>()
    }
}
