//! Tests of means over cells and scenarios.

use super::sample::{Sample, echo, idle, idle_cell, latency, per_cpu, scheduled};
use std::num::NonZeroU32;

use crate::cell::{Fanout, Load};
use crate::record::{Figures, Outcome};
use crate::summary::{Base, Summary};

/// Two cells with the reference, where linerate reaches 0.4 and 0.1 of it, and one cell without.
fn sample() -> Sample {
    Sample::new()
        .cell(echo("plain", "a"))
        .cell(echo("plain", "b"))
        .cell(echo("tls", "a"))
        .measured("plain/a", "raw-tcp", &[100.0])
        .measured("plain/b", "raw-tcp", &[100.0])
        .measured("plain/a", "linerate", &[40.0])
        .measured("plain/b", "linerate", &[10.0])
        .measured("plain/a", "peer", &[80.0])
        .failed("plain/b", "peer", 0, "crashed")
        .measured("tls/a", "linerate", &[50.0])
        .measured("tls/a", "peer", &[100.0])
}

#[test]
fn a_scenario_is_the_geometric_mean_of_its_cells() {
    let summary = Summary::of(&sample().0);
    let plain = &summary.scenarios[0];
    assert_eq!(plain.base, Base::RawTcp);
    let ours = plain.mean("linerate").unwrap();
    assert!((ours.ratio - 0.2).abs() < 1e-12);
    assert_eq!((ours.count, ours.of), (2, 2));
    let peer = plain.mean("peer").unwrap();
    assert!((peer.ratio - 0.8).abs() < 1e-12);
    assert_eq!((peer.count, peer.of), (1, 2));
    assert_eq!(plain.mean("nobody"), None);
}

#[test]
fn without_the_reference_the_first_of_each_cell_is_the_base() {
    let summary = Summary::of(&sample().0);
    let tls = &summary.scenarios[1];
    assert_eq!(tls.base, Base::First);
    assert_eq!(tls.mean("peer").unwrap().ratio, 1.0);
    assert_eq!(tls.mean("linerate").unwrap().ratio, 0.5);
}

#[test]
fn the_whole_is_the_mean_of_scenarios_with_the_same_base() {
    let sample = sample()
        .cell(echo("other", "a"))
        .measured("other/a", "raw-tcp", &[100.0])
        .measured("other/a", "linerate", &[80.0]);
    let summary = Summary::of(&sample.0);
    let ours = summary.overall("linerate", Base::RawTcp).unwrap();
    assert!((ours.ratio - 0.4).abs() < 1e-12);
    assert_eq!((ours.count, ours.of), (2, 2));
    let peer = summary.overall("peer", Base::RawTcp).unwrap();
    assert_eq!((peer.count, peer.of), (1, 2));
    assert_eq!(summary.contenders, ["raw-tcp", "peer", "linerate"]);
}

#[test]
fn scenarios_in_which_the_bare_echo_is_no_bound_are_no_part_of_the_whole() {
    let mut small_writes = echo("split", "a");
    if let Load::Echo(echo) = &mut small_writes.load {
        echo.write_bytes_max = NonZeroU32::new(1_400);
    }
    let mut fanout = echo("fanout", "a");
    fanout.load = Load::Fanout(Fanout {
        subscribers: 10,
        payload_bytes: 128,
        window: 8,
    });
    let sample = sample()
        .cell(small_writes)
        .cell(fanout)
        .measured("split/a", "raw-tcp", &[100.0])
        .measured("split/a", "linerate", &[150.0])
        .measured("fanout/a", "raw-tcp", &[100.0])
        .measured("fanout/a", "linerate", &[130.0]);
    let summary = Summary::of(&sample.0);
    let ours = summary.overall("linerate", Base::RawTcp).unwrap();
    assert!((ours.ratio - 0.2).abs() < 1e-12, "{}", ours.ratio);
    assert_eq!((ours.count, ours.of), (1, 1));
    let split = &summary.scenarios[2];
    assert_eq!(split.mean("linerate").unwrap().ratio, 1.5);
}

#[test]
fn memory_is_compared_with_the_first_even_beside_a_bare_socket() {
    let sample = Sample::new()
        .cell(idle_cell("idle", "c"))
        .outcome("idle/c", "raw-tcp", 0, Outcome::Measured(idle(16, 16)))
        .outcome("idle/c", "linerate", 0, Outcome::Measured(idle(900, 1_000)))
        .outcome("idle/c", "peer", 0, Outcome::Measured(idle(900, 2_000)));
    let summary = Summary::of(&sample.0);
    assert_eq!(summary.scenarios[0].base, Base::First);
    assert_eq!(summary.scenarios[0].mean("peer").unwrap().ratio, 0.5);
    assert_eq!(summary.scenarios[0].mean("raw-tcp"), None);
}

#[test]
fn latency_has_no_part_in_the_mean_of_a_scenario_about_cost() {
    let late = Figures {
        latency: Some(latency(9_000.0)),
        ..per_cpu(100.0)
    };
    let sample = Sample::new()
        .cell(echo("s", "cost"))
        .cell(scheduled("s", "latency"))
        .measured("s/cost", "raw-tcp", &[100.0])
        .measured("s/cost", "linerate", &[50.0])
        .measured("s/latency", "raw-tcp", &[100.0])
        .outcome("s/latency", "linerate", 0, Outcome::Measured(late));
    let summary = Summary::of(&sample.0);
    let mean = summary.scenarios[0].mean("linerate").unwrap();
    assert_eq!((mean.ratio, mean.count, mean.of), (0.5, 1, 1));
}
