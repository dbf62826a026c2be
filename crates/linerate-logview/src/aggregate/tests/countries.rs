//! Countries are sums over addresses.

use crate::aggregate::{Aggregator, Detail, Limits};
use crate::countries::{Countries, tests::database};
use crate::query::{Query, QueryError};
use crate::summary::Panel;

/// Addresses, each with its number of requests and its country.
const REQUESTS: [(&str, usize, &str); 7] = [
    ("192.0.2.1", 3, "DE"),
    ("192.0.2.2", 2, "DE"),
    ("198.51.100.1", 4, "FR"),
    ("2001:db8::7", 1, "JP"),
    ("10.0.0.1", 6, ""),
    ("a.example", 2, ""),
    ("192.0.2.1", 1, "DE"),
];

fn log(limits: Limits) -> Aggregator {
    let mut log = Aggregator::new(limits);
    for (address, requests, _) in REQUESTS {
        let line = format!(
            "{address} - - [22/Jan/2021:01:47:05 +0000] \"GET / HTTP/1.1\" 404 10 \"-\" \"a\"\n"
        );
        log.handle_input(line.repeat(requests).as_bytes());
    }
    log
}

fn with_countries() -> Limits {
    Limits {
        countries: Some(Countries::open(database()).unwrap()),
        ..Limits::default()
    }
}

fn of_country(value: &str, exclude: bool) -> Query {
    let operator = if exclude { "!=" } else { "==" };
    Query {
        filters: vec![format!("country {operator} \"{value}\"")],
        ..Query::default()
    }
}

#[test]
fn a_packed_log_has_the_countries_without_the_database() {
    let whole = log(with_countries());
    let detail = Detail {
        seconds: 1,
        values_max: usize::MAX,
        rounds_numbers: false,
    };
    let packed = Aggregator::unpack(&whole.pack(detail).unwrap()).unwrap();
    for query in [
        Query::default(),
        of_country("DE", false),
        of_country("", false),
    ] {
        let (found, expected) = (packed.figures(&query), whole.figures(&query));
        let (found, expected) = (found.unwrap(), expected.unwrap());
        assert_eq!(found.requests, expected.requests);
        assert_eq!(found.panels.country, expected.panels.country);
        assert_eq!(found.country_names, expected.country_names);
    }
}

fn requests(panel: &Panel) -> Vec<(&str, u64)> {
    let top = panel.top.iter();
    top.map(|it| (&*it.value, it.requests)).collect()
}

#[test]
fn countries_have_the_requests_of_their_addresses() {
    let summary = log(with_countries()).summary();
    let panel = summary.panels.country.unwrap();
    assert_eq!(requests(&panel), [("DE", 6), ("FR", 4), ("JP", 1)]);
    assert_eq!((panel.top[0].bytes, panel.top[0].errors), (60, 6));
    assert_eq!((panel.distinct, panel.exact, panel.none), (3, true, 8));
    assert_eq!((panel.not_counted, panel.error_max), (0, 0));
    let names = summary.country_names.unwrap();
    assert_eq!((names.len(), &*names["JP"]), (3, "Japan"));
}

#[test]
fn queries_select_requests_by_country() {
    let log = log(with_countries());
    for country in ["DE", "FR", "JP", "XX", ""] {
        let of_it = REQUESTS.iter().filter(|(.., it)| *it == country);
        let expected: usize = of_it.map(|(_, requests, _)| requests).sum();
        for (exclude, expected) in [(false, expected), (true, 19 - expected)] {
            let found = log.figures(&of_country(country, exclude)).unwrap();
            assert_eq!(found.requests, expected as u64, "{country} {exclude}");
        }
    }
    let found = log.figures(&of_country("DE", true)).unwrap();
    assert_eq!(
        requests(&found.panels.country.unwrap()),
        [("FR", 4), ("JP", 1)]
    );
}

#[test]
fn without_a_database_there_are_no_countries() {
    let log = log(Limits::default());
    let summary = log.summary();
    assert_eq!(
        (summary.panels.country, summary.country_names),
        (None, None)
    );
    let refused = log.figures(&of_country("DE", false));
    assert_eq!(refused.unwrap_err(), QueryError::NoCountries);
}

#[test]
fn countries_of_untracked_addresses_are_counted_as_far_as_possible() {
    let limits = Limits {
        addresses_max: 1,
        ..with_countries()
    };
    let log = log(limits);
    let panel = log.summary().panels.country.unwrap();
    assert_eq!(requests(&panel), [("DE", 6), ("FR", 4), ("JP", 1)]);
    assert_eq!((panel.exact, panel.none, panel.not_counted), (false, 8, 0));
    // In the figures of a query, they are unknown.
    let found = log.figures(&Query::default()).unwrap();
    let panel = found.panels.country.unwrap();
    assert_eq!((requests(&panel), panel.none), (vec![("DE", 4)], 0));
    assert_eq!((panel.not_counted, panel.error_max), (15, 15));
    let refused = log.figures(&of_country("DE", false)).unwrap_err();
    assert_eq!(refused.code(), "not_told_apart");
}
