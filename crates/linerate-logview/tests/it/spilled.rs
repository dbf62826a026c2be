//! Queries of logs that are larger than the memory for their requests.

use std::sync::Arc;

use linerate_logview::aggregate::{Aggregator, Limits};
use linerate_logview::query::{Query, QueryError};
use linerate_logview::spill::SpillSpace;

use crate::generator::{self, Recipe};
use crate::oracle::read_within;
use crate::random_queries;

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

    random_queries::compare(&log, &text, 5, 5);
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
