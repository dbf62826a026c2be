//! The columns of the chart of requests over time.

use linerate_logview::{query::Period, summary::Timeline};

use super::super::chart::{condense, requests};

/// The requests in equal parts of the period that is shown.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    pub(super) all: Vec<u64>,
    /// Those with a status of 400 to 499.
    pub(super) client_errors: Vec<u64>,
    /// Those with a status of 500 to 599.
    pub(super) server_errors: Vec<u64>,
    /// The length of each part in seconds, except perhaps the last.
    pub(super) seconds: u64,
    /// When the first begins and the last ends, in seconds since 1970-01-01 UTC.
    pub(super) start: i64,
    pub(super) end: i64,
}

impl Columns {
    /// Divides a timeline into at most `width` parts. Returns `None` if it has none.
    pub(super) fn of(timeline: &Timeline, width: usize) -> Option<Self> {
        let start = timeline.start?;
        let all = requests(timeline, |_| true);
        let end = start.saturating_add_unsigned(timeline.bucket_seconds * all.len() as u64);
        let (all, each) = condense(&all, width);
        let of_class = |class| condense(&requests(timeline, |name| name == class), width).0;
        (!all.is_empty()).then(|| Self {
            all,
            client_errors: of_class("4xx"),
            server_errors: of_class("5xx"),
            seconds: timeline.bucket_seconds * each as u64,
            start,
            end,
        })
    }

    /// Returns the period of a column.
    pub(super) fn period(&self, column: usize) -> Period {
        let from = self
            .start
            .saturating_add_unsigned(self.seconds.saturating_mul(column as u64));
        Period {
            from,
            until: from.saturating_add_unsigned(self.seconds).min(self.end),
        }
    }

    /// Returns the column that contains a time, or the nearest one.
    pub(super) fn at(&self, time: i64) -> usize {
        let after = u64::try_from(time.saturating_sub(self.start)).unwrap_or(0);
        let column = usize::try_from(after / self.seconds.max(1)).unwrap_or(usize::MAX);
        column.min(self.all.len().saturating_sub(1))
    }

    /// Spreads one value for each column over a wider chart.
    pub(super) fn spread<T: Copy>(values: &[T], width: usize) -> Vec<T> {
        let value = |at: usize| values.get(at * values.len() / width).copied();
        (0..width).map_while(value).collect()
    }
}

#[cfg(test)]
mod tests {
    use linerate_logview::aggregate::{Aggregator, Limits};

    use super::Columns;

    #[test]
    fn columns_cover_the_whole_period_in_equal_parts() {
        let mut log = Aggregator::new(Limits::default());
        for second in 0..50 {
            let line = format!(
                "::1 - - [22/Jan/2021:01:00:{second:02} +0000] \"GET / HTTP/1.1\" {} 1\n",
                [200, 404, 500][second % 3]
            );
            log.handle_input(line.as_bytes());
        }
        let timeline = log.summary().timeline;
        assert_eq!(timeline.bucket_seconds, 1);
        let columns = Columns::of(&timeline, 20).unwrap();
        assert_eq!((columns.all.len(), columns.seconds), (17, 3));
        assert_eq!(columns.all.iter().sum::<u64>(), 50);
        assert_eq!(columns.client_errors, [1; 17]);
        let (first, last) = (columns.period(0), columns.period(16));
        assert_eq!(last.until - first.from, 50);
        assert_eq!(columns.at(first.from - 1), 0);
        assert_eq!((columns.at(first.from + 3), columns.at(i64::MAX)), (1, 16));
        let wide = Columns::of(&timeline, 1_000).unwrap();
        assert_eq!((wide.all.len(), wide.seconds), (50, 1));
    }

    #[test]
    fn few_columns_fill_a_wide_chart() {
        assert_eq!(Columns::spread(&[1, 2], 5), [1, 1, 1, 2, 2]);
        assert_eq!(Columns::spread(&[1, 2, 3], 3), [1, 2, 3]);
        assert!(Columns::spread::<u64>(&[], 3).is_empty());
        assert!(Columns::spread(&[1], 0).is_empty());
    }
}
