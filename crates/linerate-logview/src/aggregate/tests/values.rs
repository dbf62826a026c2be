//! Lists of values and latencies over time, compared with an independent count.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::aggregate::{Aggregator, Limits};
use crate::format::Format;
use crate::query::{Field, ListQuery, Query, QueryError, SortKey};
use crate::summary::ValueList;

/// 2021-01-22 00:00:00 UTC.
const DAY: i64 = 1_611_273_600;
const FORMAT: &str =
    "$remote_addr [$time_local] \"$request\" $status $body_bytes_sent $request_time";

/// A request at a second of the day.
#[derive(Clone, Debug)]
struct Request {
    second: i64,
    path: &'static str,
    status: u16,
    bytes: u64,
    duration_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    requests: u64,
    bytes: u64,
    errors: u64,
    durations: u64,
    duration_us: u64,
    max_us: u64,
}

impl Request {
    fn line(&self) -> String {
        let second = self.second;
        let duration = match self.duration_ms {
            Some(ms) => format!("{}.{:03}", ms / 1_000, ms % 1_000),
            None => "-".to_owned(),
        };
        format!(
            "192.0.2.7 [22/Jan/2021:{:02}:{:02}:{:02} +0000] \"GET {} HTTP/1.1\" {} {} {duration}\n",
            second / 3_600,
            second / 60 % 60,
            second % 60,
            self.path,
            self.status,
            self.bytes,
        )
    }
}

impl Sum {
    fn mean_us(&self) -> u64 {
        self.duration_us.checked_div(self.durations).unwrap_or(0)
    }

    fn figure(&self, by: SortKey) -> u64 {
        match by {
            SortKey::Bytes => self.bytes,
            SortKey::Errors => self.errors,
            SortKey::Mean => self.mean_us(),
            SortKey::Requests => self.requests,
            SortKey::Slowest => self.max_us,
        }
    }
}

fn log(requests: &[Request]) -> Aggregator {
    let mut log = Aggregator::new(Limits::default());
    log.set_format(Format::parse(FORMAT).unwrap());
    for request in requests {
        log.handle_input(request.line().as_bytes());
    }
    log.handle_eof();
    log
}

fn any_requests() -> impl Strategy<Value = Vec<Request>> {
    let request = (
        0i64..7_200,
        prop::sample::select(vec!["/", "/a", "/user/1", "/user/22", "/b"]),
        prop::sample::select(vec![200u16, 404, 502]),
        0u64..1_000,
        prop::option::of(0u64..3_000),
    );
    let request = request.prop_map(|(second, path, status, bytes, duration_ms)| Request {
        second,
        path,
        status,
        bytes,
        duration_ms,
    });
    prop::collection::vec(request, 1..200)
}

/// Sums requests by a name.
fn sums<'a>(
    requests: &'a [Request],
    name: impl Fn(&'a Request) -> String,
) -> BTreeMap<String, Sum> {
    let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
    for request in requests {
        let sum = sums.entry(name(request)).or_default();
        sum.requests += 1;
        sum.bytes += request.bytes;
        sum.errors += u64::from(request.status >= 400);
        if let Some(ms) = request.duration_ms {
            sum.durations += 1;
            sum.duration_us += ms * 1_000;
            sum.max_us = sum.max_us.max(ms * 1_000);
        }
    }
    sums
}

fn check(list: &ValueList, query: &ListQuery, sums: &BTreeMap<String, Sum>) {
    let mut expected: Vec<_> = sums.iter().collect();
    // The sort is stable, so that equal values stay in the order of the map.
    expected.sort_by_key(|(_, sum)| {
        let figure = sum.figure(query.by);
        if query.ascending {
            figure
        } else {
            u64::MAX - figure
        }
    });
    expected.truncate(query.top_max);
    assert_eq!(list.distinct, sums.len() as u64);
    assert_eq!(list.values.len(), expected.len());
    for (found, (value, sum)) in list.values.iter().zip(expected) {
        assert_eq!(&found.value, value);
        let counts = (found.requests, found.bytes, found.errors);
        assert_eq!(counts, (sum.requests, sum.bytes, sum.errors));
        let latency = found.latency.map(|it| (it.count, it.mean_us, it.max_us));
        let exact = (sum.durations, sum.mean_us(), sum.max_us);
        assert_eq!(latency, (sum.durations > 0).then_some(exact));
    }
}

proptest! {
    #[test]
    fn values_are_sorted_by_any_figure(
        requests in any_requests(),
        by in prop::sample::select(vec![
            SortKey::Bytes, SortKey::Errors, SortKey::Mean, SortKey::Requests, SortKey::Slowest,
        ]),
        ascending in any::<bool>(),
        top_max in 0usize..7,
    ) {
        let log = log(&requests);
        let query = |field| ListQuery { by, ascending, top_max, ..ListQuery::new(field) };
        let paths = query(Field::Path);
        check(&log.values(&paths).unwrap(), &paths, &sums(&requests, |it| it.path.to_owned()));
        let patterns = query(Field::PathPattern);
        let pattern = |it: &Request| match it.path {
            "/user/1" | "/user/22" => "/user/:id".to_owned(),
            path => path.to_owned(),
        };
        check(&log.values(&patterns).unwrap(), &patterns, &sums(&requests, pattern));
        let statuses = query(Field::Status);
        let status = |it: &Request| it.status.to_string();
        check(&log.values(&statuses).unwrap(), &statuses, &sums(&requests, status));
    }

    #[test]
    fn percentiles_over_time_are_within_the_error(requests in any_requests()) {
        let series = log(&requests).latency(&Query::default()).unwrap();
        let start = series.start.unwrap();
        let seconds = i64::try_from(series.bucket_seconds).unwrap();
        prop_assert!(series.counts.len() <= 240);
        for (bucket, count) in (0..).zip(&series.counts) {
            let range = start + bucket * seconds..start + (bucket + 1) * seconds;
            let inside = requests.iter().filter(|it| range.contains(&(DAY + it.second)));
            let mut durations: Vec<_> = inside.filter_map(|it| it.duration_ms).collect();
            durations.sort_unstable();
            prop_assert_eq!(*count, durations.len() as u64);
            let at = bucket as usize;
            let said = [series.p50_us[at], series.p90_us[at], series.p99_us[at], series.p999_us[at]];
            for (said, thousandths) in said.into_iter().zip([500, 900, 990, 999]) {
                let exact = (!durations.is_empty()).then(|| {
                    durations[(durations.len() * thousandths).div_ceil(1_000) - 1] * 1_000
                });
                match (said, exact) {
                    (Some(said), Some(exact)) => {
                        prop_assert!(said.abs_diff(exact) as f64 <= exact as f64 * series.error);
                    }
                    (said, exact) => prop_assert_eq!(said, exact),
                }
            }
        }
        let all: u64 = series.counts.iter().sum();
        prop_assert_eq!(all, requests.iter().filter(|it| it.duration_ms.is_some()).count() as u64);
    }
}

#[test]
fn values_that_are_not_tracked_are_counted_and_not_listed() {
    let limits = Limits {
        paths_max: 2,
        ..Limits::default()
    };
    let mut log = Aggregator::new(limits);
    for path in ["/1", "/2", "/a", "/b"] {
        let line = format!("::1 - - [22/Jan/2021:01:47:05 +0000] \"GET {path} HTTP/1.1\" 200 1\n");
        log.handle_input(line.as_bytes());
    }
    for (field, distinct) in [(Field::Path, 2), (Field::PathPattern, 1)] {
        let list = log.values(&ListQuery::new(field)).unwrap();
        assert_eq!((list.requests, list.not_counted), (4, 2));
        assert_eq!(list.distinct, distinct);
        assert_eq!(list.values.iter().map(|it| it.requests).sum::<u64>(), 2);
        assert!(list.values.iter().all(|it| it.latency.is_none()));
    }
}

#[test]
fn agents_are_grouped_by_their_names() {
    let mut log = Aggregator::new(Limits::default());
    for agent in [
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:84.0) Gecko/20100101 Firefox/84.0",
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:85.0) Gecko/20100101 Firefox/85.0",
        "Googlebot/2.1",
        "-",
    ] {
        let line = format!(
            "::1 - - [22/Jan/2021:01:47:05 +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"{agent}\"\n"
        );
        log.handle_input(line.as_bytes());
    }
    let list = |field| {
        let list = log.values(&ListQuery::new(field)).unwrap();
        let values = list.values.into_iter();
        values.map(|it| (it.value, it.requests)).collect::<Vec<_>>()
    };
    let pairs = |pairs: &[(&str, u64)]| {
        let pairs = pairs.iter();
        pairs
            .map(|&(value, count)| (value.to_owned(), count))
            .collect::<Vec<_>>()
    };
    assert_eq!(list(Field::Browser), pairs(&[("", 2), ("Firefox", 2)]));
    assert_eq!(list(Field::System), pairs(&[("", 2), ("Windows 10", 2)]));
    assert_eq!(list(Field::Bot), pairs(&[("", 3), ("Googlebot", 1)]));
    let countries = log.values(&ListQuery::new(Field::Country));
    assert_eq!(countries, Err(QueryError::NoCountries));
}
