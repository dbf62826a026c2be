//! Tests of rankings: which contender is first, and by how much.

use super::sample::{Sample, echo, idle, idle_cell, latency, per_cpu, scheduled};
use crate::record::{Figures, Outcome};
use crate::summary::{CellSummary, Summary};

fn only_cell(sample: &Sample) -> CellSummary {
    Summary::of(&sample.0).cells().next().unwrap().clone()
}

fn order(cell: &CellSummary) -> Vec<&str> {
    cell.counted().map(|it| it.contender.as_str()).collect()
}

fn four() -> Sample {
    Sample::new()
        .cell(echo("s", "c"))
        .measured("s/c", "linerate", &[100.0, 200.0, 300.0])
        .measured("s/c", "peer", &[50.0, 400.0, 150.0])
        .measured("s/c", "slow", &[10.0, 10.0, 10.0])
        .measured("s/c", "raw-tcp", &[1_000.0, 1_000.0, 1_000.0])
}

#[test]
fn the_reference_is_listed_and_has_no_rank() {
    let cell = only_cell(&four());
    assert_eq!(order(&cell), ["raw-tcp", "linerate", "peer", "slow"]);
    assert_eq!(cell.standing("raw-tcp").unwrap().rank, None);
    assert_eq!(cell.first().unwrap().contender, "linerate");
    assert_eq!(cell.standing("slow").unwrap().rank, Some(3));
}

#[test]
fn a_cell_has_no_first_if_the_load_was_too_slow_for_one_of_its_contenders() {
    let bound = || Outcome::LoadBound(per_cpu(1.0));
    let sample = four().outcome("s/c", "fastest", 0, bound());
    let summary = Summary::of(&sample.0);
    let cell = summary.cells().next().unwrap();
    assert!(cell.is_load_bound());
    assert!(cell.first().is_none() && cell.best_peer().is_none());
    assert_eq!(order(cell), ["raw-tcp", "linerate", "peer", "slow"]);
    let ours = cell.standing("linerate").unwrap();
    assert_eq!(
        (ours.rank, ours.to_first, ours.to_best_peer),
        (None, None, None)
    );
    assert_eq!(ours.to_reference, Some(0.2), "that was measured");
    assert!(
        summary.lost_cells().is_empty(),
        "ours has the best that was measured"
    );
    let lost = four()
        .measured("s/c", "better", &[900.0, 900.0, 900.0])
        .outcome("s/c", "fastest", 0, bound());
    let lost = Summary::of(&lost.0);
    let behind = &lost.lost_cells()[0];
    assert_eq!(behind.first.contender, "better", "a loss stays one");
    assert_eq!(behind.lead.unwrap().rank, 2);
    // That the load was too slow for the bare echo says nothing about which contender is first.
    let bare = four().outcome("s/c", "raw-tcp", 0, bound());
    assert_eq!(only_cell(&bare).first().unwrap().contender, "linerate");
}

#[test]
fn a_share_of_the_first_is_not_given_where_there_is_none() {
    let sample = Sample::new()
        .cell(echo("churn", "c"))
        .measured("churn/c", "linerate", &[40.0])
        .outcome("churn/c", "peer", 0, Outcome::LoadBound(per_cpu(47.0)));
    let summary = Summary::of(&sample.0);
    assert_eq!(summary.scenarios[0].mean("linerate"), None);
}

#[test]
fn a_ratio_is_the_median_of_the_ratios_within_rounds() {
    let cell = only_cell(&four());
    // The ratios are 2, 0.5 and 2, and the medians 200 and 150.
    assert_eq!(cell.standing("linerate").unwrap().to_best_peer, Some(2.0));
    assert_eq!(cell.standing("linerate").unwrap().to_reference, Some(0.2));
    assert_eq!(cell.standing("peer").unwrap().to_first, Some(0.5));
    assert_eq!(cell.standing("peer").unwrap().to_best_peer, Some(1.0));
    assert_eq!(cell.standing("raw-tcp").unwrap().to_reference, Some(1.0));
}

#[test]
fn without_a_round_in_common_the_medians_are_divided() {
    let later = |round, figure| ("s/c", "peer", round, Outcome::Measured(per_cpu(figure)));
    let mut sample =
        Sample::new()
            .cell(echo("s", "c"))
            .measured("s/c", "linerate", &[100.0, 300.0]);
    for (cell, contender, round, outcome) in [later(2, 90.0), later(3, 110.0)] {
        sample = sample.outcome(cell, contender, round, outcome);
    }
    let cell = only_cell(&sample);
    assert_eq!(cell.standing("linerate").unwrap().to_best_peer, Some(2.0));
}

#[test]
fn less_memory_and_less_latency_are_better() {
    let with = |figures| Outcome::Measured(figures);
    let memory = Sample::new()
        .cell(idle_cell("idle", "c"))
        .outcome("idle/c", "linerate", 0, with(idle(1_000, 1_000)))
        .outcome("idle/c", "peer", 0, with(idle(500, 4_000)));
    let cell = only_cell(&memory);
    assert_eq!(order(&cell), ["linerate", "peer"]);
    assert_eq!(cell.standing("linerate").unwrap().to_best_peer, Some(4.0));

    let late = |p99_us| {
        with(Figures {
            latency: Some(latency(p99_us)),
            ..per_cpu(100.0)
        })
    };
    let latency = Sample::new()
        .cell(scheduled("s", "c"))
        .outcome("s/c", "linerate", 0, late(500.0))
        .outcome("s/c", "peer", 0, late(250.0));
    let cell = only_cell(&latency);
    assert_eq!(order(&cell), ["peer", "linerate"]);
    assert_eq!(cell.standing("linerate").unwrap().to_best_peer, Some(0.5));
}

#[test]
fn cells_in_which_we_are_not_first_say_who_is_and_how_clearly() {
    let sample = Sample::new()
        .cell(echo("s", "ahead"))
        .cell(echo("s", "near"))
        .cell(echo("s", "far"))
        .cell(echo("s", "broken"))
        .cell(echo("s", "without-us"))
        .measured("s/ahead", "linerate", &[100.0, 110.0])
        .measured("s/ahead", "peer", &[90.0, 95.0])
        .measured("s/ahead", "raw-tcp", &[900.0, 900.0])
        .measured("s/near", "linerate", &[100.0, 110.0])
        .measured("s/near", "peer", &[105.0, 126.0])
        .measured("s/far", "linerate", &[100.0, 110.0])
        .measured("s/far", "peer", &[200.0, 220.0])
        .measured("s/far", "third", &[150.0, 150.0])
        .failed("s/broken", "linerate", 0, "stalled")
        .measured("s/broken", "peer", &[100.0])
        .measured("s/without-us", "peer", &[100.0]);
    let summary = Summary::of(&sample.0);
    let behind = summary.lost_cells();
    let names: Vec<&str> = behind.iter().map(|it| it.cell.cell.name.as_str()).collect();
    assert_eq!(names, ["near", "far", "broken"]);
    assert!(behind.iter().all(|it| it.first.contender == "peer"));
    let near = behind[0].lead.unwrap();
    assert!((near.factor - 1.1).abs() < 1e-12 && !near.is_clear && near.rank == 2);
    let far = behind[1].lead.unwrap();
    assert!((far.factor - 2.0).abs() < 1e-12 && far.is_clear && far.rank == 3);
    assert!(behind[2].lead.is_none());
}

#[test]
fn our_two_servers_are_no_rivals_of_each_other() {
    let sample = Sample::new()
        .cell(echo("s", "ahead"))
        .cell(echo("s", "behind"))
        .measured("s/ahead", "linerate", &[50.0])
        .measured("s/ahead", "linerate-reactor", &[100.0])
        .measured("s/ahead", "peer", &[80.0])
        .measured("s/behind", "linerate", &[50.0])
        .measured("s/behind", "linerate-reactor", &[100.0])
        .measured("s/behind", "peer", &[200.0]);
    let summary = Summary::of(&sample.0);
    let behind = summary.lost_cells();
    assert_eq!(behind.len(), 1);
    assert_eq!(behind[0].cell.cell.name, "behind");
    assert_eq!(behind[0].ours.contender, "linerate-reactor");
    let ahead = summary.cells().next().unwrap();
    assert_eq!(ahead.best_peer().unwrap().contender, "peer");
    assert_eq!(
        ahead.standing("linerate").unwrap().to_best_peer,
        Some(50.0 / 80.0)
    );
}
