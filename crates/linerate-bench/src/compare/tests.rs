//! Tests of comparisons, with records made by hand.

use crate::compare::{Comparison, Verdict, compare};
use crate::record::{Outcome, Record};
use crate::summary::tests::sample::{Sample, echo, idle, idle_cell, scheduled};

fn record(rounds: &[f64]) -> Record {
    Sample::new()
        .cell(echo("s", "c"))
        .contender("linerate")
        .measured("s/c", "linerate", rounds)
        .0
}

/// Judges a change of messages per CPU second.
fn verdict(before: &[f64], after: &[f64]) -> Verdict {
    only(&compare(&record(before), &record(after)))
}

fn only(comparison: &Comparison) -> Verdict {
    assert_eq!(comparison.changes.len(), 1);
    comparison.changes[0].verdict
}

#[test]
fn a_change_needs_ranges_that_are_apart() {
    assert_eq!(
        verdict(&[99.0, 100.0, 101.0], &[109.0, 110.0, 111.0]),
        Verdict::Better
    );
    assert_eq!(
        verdict(&[109.0, 110.0, 111.0], &[99.0, 100.0, 101.0]),
        Verdict::Worse
    );
    assert_eq!(
        verdict(&[99.0, 100.0, 109.0], &[109.0, 110.0, 111.0]),
        Verdict::WithinNoise
    );
}

#[test]
fn a_change_of_three_per_cent_is_noise_however_steady_the_rounds() {
    assert_eq!(
        verdict(&[1_000.0, 1_000.0], &[1_029.0, 1_029.0]),
        Verdict::WithinNoise
    );
    assert_eq!(
        verdict(&[1_000.0, 1_000.0], &[1_031.0, 1_031.0]),
        Verdict::Better
    );
}

#[test]
fn a_change_has_to_exceed_the_pooled_spread() {
    // The ranges are barely apart, the medians differ by 5.5 %, the half ranges are 13 % and 14 %.
    assert_eq!(
        verdict(&[74.0, 100.0, 100.1], &[100.2, 105.5, 130.0]),
        Verdict::WithinNoise
    );
}

#[test]
fn one_round_exceeds_nothing() {
    assert_eq!(verdict(&[100.0], &[200.0]), Verdict::WithinNoise);
    assert_eq!(verdict(&[100.0, 100.0], &[200.0]), Verdict::WithinNoise);
    let mut single = record(&[100.0]);
    single.run.rounds = 1;
    let cautions = compare(&single, &single).cautions;
    assert!(
        cautions
            .iter()
            .any(|it| it.contains("one round has no spread"))
    );
}

#[test]
fn less_memory_is_better() {
    let record = |bytes| {
        Sample::new()
            .cell(idle_cell("idle", "c"))
            .outcome("idle/c", "linerate", 0, Outcome::Measured(idle(1, bytes)))
            .outcome("idle/c", "linerate", 1, Outcome::Measured(idle(1, bytes)))
            .0
    };
    let comparison = compare(&record(2_000), &record(1_000));
    assert_eq!(only(&comparison), Verdict::Better);
    assert_eq!(comparison.changes[0].change, -0.5);
}

#[test]
fn what_differs_besides_the_figures_is_told_first() {
    let before = record(&[100.0, 100.0]);
    let mut after = record(&[200.0, 200.0]);
    after.run.host.kernel = "Linux 9.9".into();
    after.run.effort = "quick".into();
    after.run.contenders[0].version = "4.5.6".into();
    let comparison = compare(&before, &after);
    let expected = [
        "kernel: Linux 6.1 before, Linux 9.9 after",
        "effort: standard before, quick after",
        "version of linerate: 1.2.3 before, 4.5.6 after",
    ];
    assert_eq!(comparison.cautions, expected);
    let text = comparison.to_string();
    assert!(text.starts_with("caution: kernel"), "{text}");
    assert!(text.contains("+100.0 %  better"), "{text}");
    assert!(
        text.ends_with("1 better, 0 worse, 0 within noise\n"),
        "{text}"
    );
}

#[test]
fn a_figure_that_is_gone_is_told_with_the_reason() {
    let before = record(&[100.0, 100.0]);
    let after = Sample::new()
        .cell(echo("s", "c"))
        .failed("s/c", "linerate", 0, "stalled")
        .0;
    let comparison = compare(&before, &after);
    assert!(comparison.changes.is_empty());
    let gone = &comparison.one_sided[0];
    assert!(gone.in_first);
    assert_eq!(gone.reason, "failed: stalled");
}

#[test]
fn contenders_of_only_one_record_are_told() {
    let before = record(&[100.0, 100.0]);
    let after = Sample::new()
        .cell(echo("s", "c"))
        .measured("s/c", "peer", &[100.0, 100.0])
        .0;
    let cautions = compare(&before, &after).cautions;
    let expected = [
        "only in the first record: linerate",
        "only in the second record: peer",
    ];
    assert_eq!(cautions, expected);
}

#[test]
fn cells_that_are_not_the_same_are_not_compared() {
    let before = record(&[100.0, 100.0]);
    let after = Sample::new()
        .cell(scheduled("s", "c"))
        .cell(echo("s", "new"))
        .measured("s/c", "linerate", &[100.0, 100.0])
        .0;
    let comparison = compare(&before, &after);
    assert!(comparison.changes.is_empty());
    let cautions = comparison.cautions.join("\n");
    assert!(cautions.contains("s/c differs between the records"));
    assert!(cautions.contains("only in the second record: 1 cell"));
}

#[test]
fn a_comparison_is_json_too() {
    let comparison = compare(&record(&[100.0, 100.0]), &record(&[50.0, 50.0]));
    let json = serde_json::to_value(&comparison).unwrap();
    assert_eq!(json["totals"]["worse"], 1);
    assert_eq!(json["changes"][0]["metric"], "per-server-cpu-second");
    assert_eq!(json["changes"][0]["verdict"], "worse");
    assert_eq!(json["changes"][0]["change"], -0.5);
}
