//! Slowloris in each layer: connections that stay open as long as the server allows.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;

use super::{BOUNDS, process::ServerProcess};
use crate::{
    Row,
    attack::{self, Abuse, HOW, OFF, ON, Tally, counted},
    child::Child,
    figures::{Effort, Figures, SLICE, Watch},
    live::LiveClients,
    outcome::{Bounds, Finding, Outcome},
    waits::median,
};

/// The number of attackers of each kind.
const PEERS: usize = 5_000;

/// The memory that a connection may cost that sends nothing, or frames too slowly, in bytes.
const BYTES_EACH: u64 = 24 << 10;

/// The memory that a connection may cost that has begun a head or a TLS handshake, in bytes. It has
/// a buffer for the rest.
const BEGUN_BYTES_EACH: u64 = 48 << 10;

/// How far the end of a connection may be from its deadline. This includes the time to close all
/// the others.
const SLACK: Duration = Duration::from_secs(1);

/// How long a well-behaved client may take to connect.
const CONNECTING_MAX: Duration = Duration::from_millis(100);

/// How long attackers may take to connect.
const OPENING_MAX: Duration = Duration::from_secs(120);

/// How long to wait for the end of attackers beyond their deadline.
const GRACE: Duration = Duration::from_secs(10);

/// Returns the rows. The number of seconds after which the server must have ended a connection is
/// `request.head_s`, `connection.handshake_s`, or `client.message_timeout_s` plus
/// `close.timeout_s`.
pub(super) fn rows() -> Vec<Row> {
    let abuses = [
        (Abuse::SlowTcp, "tcp", 10),
        (Abuse::SlowTls, "tls", 10),
        (Abuse::SlowHeads, "head", 10),
        (Abuse::SlowFrames, "frame", 35),
        (Abuse::SlowMessages, "message", 35),
    ];
    let rows = abuses.into_iter().map(|(abuse, layer, seconds)| {
        Row::new(format!("serve/slowloris-{layer}"), move |effort| {
            run(abuse, Duration::from_secs(seconds), effort)
        })
    });
    rows.collect()
}

fn run(abuse: Abuse, deadline: Duration, effort: &Effort) -> Result<Outcome> {
    let peers = effort.scaled(PEERS);
    let server = match abuse {
        Abuse::SlowTls => ServerProcess::start_tls(&effort.linerate)?,
        _ => ServerProcess::start(&effort.linerate, &[])?,
    };
    let mut attackers = attack::start(abuse, server.address, peers)?;
    let mut live = LiveClients::open(server.target())?;
    live.p99(SLICE)?;
    let mut watch = Watch::begin(server.process())?;
    let alone: Result<Vec<_>> = (0..effort.slices).map(|_| live.p99(SLICE)).collect();
    let (with, connecting) =
        watch.during(|watch| abused(&mut attackers, &mut live, peers, deadline, watch))?;
    let tally: Tally = attackers.ask_for(OFF)?;
    attackers.end()?;
    let figures = Figures {
        tally,
        ..watch.end_with(alone?, with)?
    };
    drop(live);
    server.end()?;
    Ok(Outcome {
        abuse: format!("{peers} connections"),
        bounds: Bounds {
            memory_growth_max: (16 << 20)
                + peers as u64
                    * match abuse {
                        Abuse::SlowHeads | Abuse::SlowTls => BEGUN_BYTES_EACH,
                        _ => BYTES_EACH,
                    },
            ..BOUNDS
        },
        also: vec![
            ends(&figures.tally, peers, deadline),
            getting_in(median(connecting)),
        ],
        figures,
    })
}

/// Measures until all attackers are disconnected. Returns how long live clients waited for answers,
/// and how long new clients took to connect.
fn abused(
    attackers: &mut Child,
    live: &mut LiveClients,
    peers: usize,
    deadline: Duration,
    watch: &mut Watch,
) -> Result<(Vec<Duration>, Vec<Duration>)> {
    let (mut with, mut connecting) = (Vec::new(), Vec::new());
    attackers.ask(ON)?;
    let mut end = Instant::now() + OPENING_MAX;
    while Instant::now() < end {
        let tally: Tally = attackers.ask_for(HOW)?;
        let is_there = |name| counted(&tally, name) >= peers as u64;
        if is_there("gone") {
            break;
        }
        if is_there("connections") {
            end = end.min(Instant::now() + deadline + GRACE);
            watch.look()?;
            with.push(live.p99(SLICE)?);
            connecting.push(live.connecting_p99(SLICE)?);
        } else {
            thread::sleep(Duration::from_millis(50));
        }
    }
    Ok((with, connecting))
}

fn ends(tally: &Tally, peers: usize, deadline: Duration) -> Finding {
    let count = |name: &str| counted(tally, name);
    let (gone, first, last) = (
        count("gone"),
        Duration::from_millis(count("first gone after ms")),
        Duration::from_millis(count("last gone after ms")),
    );
    let is_kept = gone == peers as u64 && last <= deadline + SLACK && first + SLACK >= deadline;
    let text = format!(
        "{gone} ended after {:.1} to {:.1} s ({} ± {} s)",
        first.as_secs_f64(),
        last.as_secs_f64(),
        deadline.as_secs(),
        SLACK.as_secs(),
    );
    Finding::new(text, is_kept)
}

fn getting_in(p99: Duration) -> Finding {
    let (millis, most) = (p99.as_secs_f64() * 1e3, CONNECTING_MAX.as_millis());
    Finding::new(
        format!("well-behaved clients connect within {millis:.1} ms at p99 ({most} ms)"),
        p99 <= CONNECTING_MAX,
    )
}
