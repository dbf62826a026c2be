//! Subscribers that never read, and as many that do.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail, ensure};
use rustix::process::{Resource, getrlimit};

use super::{process::ServerProcess, publisher::Publisher};
use crate::{
    Row,
    attack::{self, Abuse, HOW, OFF, ON, Tally, counted},
    audience::{AUDIENCE, AudienceReport, CHANNEL, publication},
    child::Child,
    figures::{Effort, Watch},
    outcome::{Bounds, Finding, Outcome},
};

/// The number of subscribers of each kind, if the limit of open files allows it.
const SUBSCRIBERS: usize = 10_000;

/// Open files of the server that are not client connections.
const FILES_SPARE: u64 = 200;

/// The memory that a subscriber may cost, in bytes: `client.data_bytes_max` and a connection.
const BYTES_EACH: u64 = (64 << 10) + (8 << 10);

/// The size of a publication, in bytes.
const PUBLICATION_BYTES: usize = 1_000;

/// The time between two publications. Ten thousand subscribers, on two cores that the clients need
/// as well, can receive about a hundred thousand publications per second.
const INTERVAL: Duration = Duration::from_millis(250);

/// The number of publications in a slice.
const SLICE: usize = 6;

/// The number and size of publications that fill the buffers of subscribers that never read. This
/// takes less than half a minute, after which the server disconnects them because they answer no
/// Ping.
const FILLING: usize = 48;
const FILLING_BYTES: usize = 8_000;

/// The latency that does no harm, whatever the ratio.
const P99_FREE: Duration = Duration::from_millis(1);

pub(super) fn row() -> Row {
    Row::new("serve/stalled-readers", run)
}

fn run(effort: &Effort) -> Result<Outcome> {
    let files = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    let room = usize::try_from(files.saturating_sub(FILES_SPARE) / 2)?;
    let count = effort.scaled(SUBSCRIBERS).min(room);
    let server = ServerProcess::start(
        &effort.linerate,
        &["--connections-max", &(2 * count + 100).to_string()],
    )?;
    let (address, number) = (server.address.to_string(), count.to_string());
    let mut audience = Child::start(&[AUDIENCE, &address, &number])?;
    audience.answer()?;
    let mut attackers = attack::start(Abuse::Stalled, server.address, count)?;
    let mut publisher = Publisher::connect(server.address, CHANNEL, "")?;
    let slices = effort.slices.min(4);
    publish(&mut publisher, SLICE, PUBLICATION_BYTES, INTERVAL)?;
    hear(&mut audience, count, SLICE)?;
    let alone = slices_of(&mut publisher, &mut audience, count, slices)?;

    let mut watch = Watch::begin(server.process())?;
    let live_files = server.process().open_files()?;
    attackers.ask(ON)?;
    wait_for(&mut attackers, count)?;
    let mut with = Vec::new();
    watch.during(|watch| {
        // One slice after another, so that the other subscribers do not fall behind.
        for _ in 0..FILLING / SLICE {
            publish(&mut publisher, SLICE, FILLING_BYTES, Duration::ZERO)?;
            hear(&mut audience, count, SLICE)?;
            watch.look()?;
        }
        with = slices_of(&mut publisher, &mut audience, count, slices)?;
        Ok(())
    })?;
    let left = server.process().open_files()?.saturating_sub(live_files);
    attackers.ask(OFF)?;
    let figures = watch.end_with(alone, with)?;
    attackers.end()?;
    audience.end()?;
    server.end()?;
    let text = format!("{count} of {count} live subscribers received everything");
    Ok(Outcome {
        abuse: format!(
            "{count} subscribers that never read and {count} that do, with a message of 1 KB to all of them four times per second"
        ),
        bounds: Bounds {
            memory_growth_max: count as u64 * BYTES_EACH,
            p99_free: P99_FREE,
        },
        figures,
        also: vec![
            Finding::new(text, true),
            Finding::new(
                format!("{left} that never read were still connected at the end"),
                left > 0,
            ),
        ],
    })
}

/// Publishes `count` messages at a steady rate.
fn publish(
    publisher: &mut Publisher,
    count: usize,
    bytes: usize,
    interval: Duration,
) -> Result<()> {
    for _ in 0..count {
        publisher.publish(&publication(bytes)?)?;
        thread::sleep(interval);
    }
    Ok(())
}

fn slices_of(
    publisher: &mut Publisher,
    audience: &mut Child,
    count: usize,
    slices: usize,
) -> Result<Vec<Duration>> {
    let mut waits = Vec::new();
    for _ in 0..slices {
        publish(publisher, SLICE, PUBLICATION_BYTES, INTERVAL)?;
        waits.push(hear(audience, count, SLICE)?);
    }
    Ok(waits)
}

/// Waits until the audience has received `publications` for each of its `count` subscribers.
/// Returns the 99th percentile of the time that they took to arrive.
fn hear(audience: &mut Child, count: usize, publications: usize) -> Result<Duration> {
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut got = 0;
    let mut longest = 0;
    loop {
        let report: AudienceReport = audience.ask_for("and?")?;
        got += report["publications"];
        longest = longest.max(report.get("p99 µs").copied().unwrap_or_default());
        if got >= (count * publications) as u64 {
            return Ok(Duration::from_micros(longest));
        }
        ensure!(
            Instant::now() < deadline,
            "live subscribers received only {got} of {} publications",
            count * publications
        );
        thread::sleep(Duration::from_millis(100));
    }
}

fn wait_for(attackers: &mut Child, count: usize) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(60);
    while Instant::now() < deadline {
        let tally: Tally = attackers.ask_for(HOW)?;
        if counted(&tally, "connections") >= count as u64 {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(100));
    }
    bail!("not all attackers could connect in time")
}
