//! Tests of which rounds count.

use super::sample::{Sample, echo, idle, idle_cell, per_cpu};
use crate::record::{Figures, Outcome, ServerUsage};
use crate::summary::{Metric, Standing, Status, Summary};

/// Returns a contender's standing in the only cell.
fn standing(sample: Sample, contender: &str) -> Standing {
    let summary = Summary::of(&sample.0);
    let cell = summary.cells().next().unwrap();
    cell.standing(contender).unwrap().clone()
}

fn one_cell() -> Sample {
    Sample::new().cell(echo("s", "c"))
}

#[test]
fn figures_are_medians_over_the_rounds() {
    let ours = standing(
        one_cell().measured("s/c", "linerate", &[300.0, 100.0, 200.0]),
        "linerate",
    );
    let headline = ours.headline.unwrap();
    assert_eq!(
        (headline.median, headline.min, headline.max),
        (200.0, 100.0, 300.0)
    );
    let medians = ours.medians.unwrap();
    assert_eq!(medians.messages_per_second.unwrap().median, 100.0);
    assert_eq!(medians.bytes_per_second.unwrap().median, 800.0);
    assert_eq!(medians.user_us.unwrap().median, 2_000.0);
    assert_eq!(medians.system_us.unwrap().median, 3_000.0);
    assert_eq!(medians.p999_us.unwrap().median, 2_000.0);
}

#[test]
fn one_failed_round_takes_the_others_along() {
    let sample = one_cell()
        .measured("s/c", "linerate", &[100.0, 100.0])
        .failed("s/c", "linerate", 2, "answered wrongly");
    let ours = standing(sample, "linerate");
    assert_eq!((ours.headline, ours.medians, ours.rank), (None, None, None));
    let status = Status::Failed {
        reason: "answered wrongly".into(),
        failed: 1,
        rounds: 3,
    };
    assert_eq!(ours.status, status);
}

#[test]
fn load_bound_rounds_never_enter_a_median() {
    let bound = || Outcome::LoadBound(per_cpu(9_999.0));
    let few = one_cell()
        .measured("s/c", "linerate", &[100.0, 300.0])
        .outcome("s/c", "linerate", 2, bound());
    let few = standing(few, "linerate");
    assert_eq!(few.headline.unwrap().max, 300.0);
    let status = Status::Measured {
        rounds: 2,
        load_bound: 1,
    };
    assert_eq!(few.status, status);

    let half =
        one_cell()
            .measured("s/c", "linerate", &[100.0])
            .outcome("s/c", "linerate", 1, bound());
    let half = standing(half, "linerate");
    assert_eq!(half.headline, None);
    assert_eq!(
        half.status,
        Status::LoadBound {
            load_busy: Some(0.5)
        }
    );
}

#[test]
fn of_a_round_that_was_repeated_the_last_counts() {
    let sample = one_cell()
        .failed("s/c", "linerate", 0, "interrupted")
        .measured("s/c", "linerate", &[100.0]);
    assert_eq!(standing(sample, "linerate").headline.unwrap().median, 100.0);
}

#[test]
fn a_cell_that_was_announced_twice_is_one() {
    let sample = one_cell().cell(echo("s", "c"));
    assert_eq!(Summary::of(&sample.0).cells().count(), 1);
}

#[test]
fn a_server_that_cannot_be_looked_into_is_compared_by_the_clock() {
    let figures = Figures {
        server: None,
        ..per_cpu(100.0)
    };
    let sample = one_cell().outcome("s/c", "url", 0, Outcome::Measured(figures));
    let summary = Summary::of(&sample.0);
    let cell = summary.cells().next().unwrap();
    assert_eq!(cell.metric, Metric::PerSecond);
    assert_eq!(cell.first().unwrap().headline.unwrap().median, 50.0);
}

#[test]
fn zero_cpu_time_is_no_figure() {
    let figures = Figures {
        server: Some(ServerUsage::default()),
        ..per_cpu(100.0)
    };
    let sample = one_cell()
        .outcome("s/c", "linerate", 0, Outcome::Measured(figures))
        .measured("s/c", "peer", &[100.0]);
    let ours = standing(sample, "linerate");
    assert_eq!(
        (ours.headline, ours.rank, ours.to_first),
        (None, None, None)
    );
    assert_eq!(ours.medians.unwrap().messages_per_cpu_second, None);
}

#[test]
fn idle_memory_is_told_before_and_after_and_compared_after() {
    let sample = Sample::new().cell(idle_cell("idle", "c")).outcome(
        "idle/c",
        "linerate",
        0,
        Outcome::Measured(idle(900, 2_000)),
    );
    let ours = standing(sample, "linerate");
    assert_eq!(ours.headline.unwrap().median, 2_000.0);
    assert_eq!(
        ours.medians.unwrap().idle_bytes_before.unwrap().median,
        900.0
    );
}
