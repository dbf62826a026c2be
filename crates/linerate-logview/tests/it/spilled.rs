//! Queries of logs that are larger than the memory for their requests.

use std::sync::Arc;

use linerate_logview::aggregate::{Aggregator, Limits};
use linerate_logview::query::{Query, QueryError};
use linerate_logview::spill::SpillSpace;
use serde_json::{Value, json};

use crate::generator::{self, Random, Recipe};
use crate::oracle::{compare_query, read_within};

const COLUMN_BYTES_MAX: usize = 384 << 10;

fn log() -> Vec<u8> {
    let recipe = Recipe {
        lines: 70_000,
        addresses: 3_000,
        paths: 500,
        seed: 11,
    };
    generator::combined(recipe).text
}

fn limits(space: &Arc<SpillSpace>) -> Limits {
    let mut limits = Limits::default();
    limits.column_bytes_max = COLUMN_BYTES_MAX;
    limits.spill = Some(space.clone());
    limits
}

fn space(folder: &tempfile::TempDir, bytes_max: u64) -> Arc<SpillSpace> {
    let directory = folder.path().to_owned();
    Arc::new(SpillSpace::new(directory, bytes_max, "the limit"))
}

fn asked(filters: &[&str]) -> Query {
    Query {
        filters: filters.iter().map(|&it| it.to_owned()).collect(),
        ..Query::default()
    }
}

/// Returns a random query: conditions for the oracle, and the same ones as filters.
fn any_query(random: &mut Random) -> (Value, Vec<String>) {
    let digit = |random: &mut Random| random.below(10);
    let mut conditions = Vec::new();
    let mut filters = Vec::new();
    let choices = [
        ("path", format!("/shop/items/{}*", digit(random))),
        ("path", format!("*{}.html", digit(random))),
        ("path", format!("/shop/items/{}.html", random.below(500))),
        ("method", random.of(&["GET", "POST"]).to_owned()),
        (
            "agent",
            random.of(&["*bot*", "curl*", "*Firefox*"]).to_owned(),
        ),
        ("status_class", random.of(&["2xx", "4xx", "5*"]).to_owned()),
        ("address", format!("10.*.{}", digit(random))),
    ];
    for (dimension, value) in choices {
        if random.below(3) == 0 {
            let exclude = random.below(2) == 0;
            conditions.push(json!({"dimension": dimension, "value": value, "exclude": exclude}));
            let operator = if exclude { "!=" } else { "==" };
            filters.push(format!("{dimension} {operator} {value:?}"));
        }
    }
    if random.below(2) == 0 {
        let network = random.of(&["10.0.0.0/21", "2001:db8::/44", "0.0.0.0/0"]);
        conditions.push(
            json!({"dimension": "address", "value": network, "network": true, "exclude": true}),
        );
        filters.push(format!("address != {network:?}"));
    }
    let from = 1_611_273_600 + random.below(20_000);
    let query = json!({"conditions": conditions, "from": from, "until": from + 20_000});
    (query, filters)
}

#[test]
fn oracle_agrees_on_random_queries_of_a_log_that_is_mostly_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let space = space(&folder, 1 << 30);
    let text = log();
    let log = read_within(limits(&space), &text);
    assert!(
        space.used() > COLUMN_BYTES_MAX as u64 / 2,
        "{}",
        space.used()
    );
    let summary = log.summary();
    assert!(summary.filterable.complete && summary.filterable.refusal.is_none());
    assert!(summary.filterable.bytes <= COLUMN_BYTES_MAX as u64);

    let mut random = Random(5);
    let mut compared = 0;
    while compared < 5 {
        let (conditions, filters) = any_query(&mut random);
        let filters: Vec<&str> = filters.iter().map(String::as_str).collect();
        let mut query = asked(&filters);
        (query.from, query.until) = (conditions["from"].as_i64(), conditions["until"].as_i64());
        // The oracle has no figures of nothing.
        if log.figures(&query).unwrap().requests > 0 {
            compare_query(&log, &text, conditions, &filters);
            compared += 1;
        }
    }
}

#[test]
fn figures_in_a_file_equal_those_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let text = log();
    let spilled = read_within(limits(&space(&folder, 1 << 30)), &text);
    let whole = read_within(Limits::default(), &text);
    for filter in [
        "true",
        "false",
        "status == 404 || bytes_sent > 19000",
        "time != 1611280000",
        "bot != \"\"",
    ] {
        let figures = |log: &Aggregator| {
            let mut figures = log.figures(&asked(&[filter])).unwrap();
            figures.filterable = Default::default();
            figures
        };
        assert_eq!(figures(&spilled), figures(&whole), "{filter}");
    }
}

#[test]
fn a_log_that_exceeds_the_disk_space_says_so_in_its_figures() {
    let folder = tempfile::tempdir().unwrap();
    let space = space(&folder, 100_000);
    let log = read_within(limits(&space), &log());
    let summary = log.summary();
    assert_eq!((summary.requests, space.used()), (70_000, 0));
    let refusal = summary.filterable.refusal.unwrap();
    assert!(
        refusal.contains("100000 bytes that may be used (the limit)"),
        "{refusal}"
    );
    let error = log.figures(&asked(&["status == 404"])).unwrap_err();
    assert!(matches!(error, QueryError::SpillFull { .. }));
    assert_eq!(error.to_string(), refusal);
}
