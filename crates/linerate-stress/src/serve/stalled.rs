//! Subscribers that never read, beside as many that do.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail, ensure};
use rustix::process::{Resource, getrlimit};

use super::{process::Serve, publisher::Publisher};
use crate::{
    Row,
    attack::{ATTACK, Abuse, HOW, OFF, ON, Tally},
    audience::{AUDIENCE, CHANNEL, Heard, publication},
    child::Child,
    figures::{Effort, Figures, Watch, median},
    outcome::{Bounds, Finding, Outcome},
};

/// Subscribers of each kind, if there are files for as many.
const SUBSCRIBERS: usize = 10_000;

/// Files of a server that are no clients.
const FILES_SPARE: u64 = 200;

/// What may wait for one of them: `client.data_bytes_max` and a connection.
const BYTES_EACH: u64 = (64 << 10) + (8 << 10);

/// The size of a publication.
const PUBLICATION_BYTES: usize = 1_000;

/// The time between two: ten thousand subscribers on two cores, which the clients need as well, get
/// some hundred thousand publications a second.
const INTERVAL: Duration = Duration::from_millis(250);

/// Publications of a slice.
const SLICE: usize = 6;

/// Publications until those who never read have no more room, and their size. All of that takes less
/// than half a minute, after which these are given up since they answer no Ping.
const FILLING: usize = 48;
const FILLING_BYTES: usize = 8_000;

/// Waiting for no longer is no harm.
const P99_FREE: Duration = Duration::from_millis(1);

pub(super) fn row() -> Row {
    Row {
        name: "serve/stalled-readers".to_owned(),
        run: Box::new(run),
    }
}

fn run(effort: &Effort) -> Result<Outcome> {
    let files = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    let room = usize::try_from(files.saturating_sub(FILES_SPARE) / 2)?;
    let count = effort.scaled(SUBSCRIBERS).min(room);
    let server = Serve::start(
        &effort.linerate,
        &["--connections-max", &(2 * count + 100).to_string()],
    )?;
    let (address, number) = (server.address.to_string(), count.to_string());
    let mut audience = Child::start(&[AUDIENCE, &address, &number])?;
    audience.answer()?;
    let mut attackers = Child::start(&[ATTACK, Abuse::Stalled.as_str(), &address, &number])?;
    let mut publisher = Publisher::connect(server.address, CHANNEL, "")?;
    let slices = effort.slices.min(4);
    publish(&mut publisher, SLICE, PUBLICATION_BYTES, INTERVAL)?;
    hear(&mut audience, count, SLICE)?;
    let alone = slices_of(&mut publisher, &mut audience, count, slices)?;

    let mut watch = Watch::begin(server.usage())?;
    let live_files = server.usage().files()?;
    attackers.ask(ON)?;
    wait_for(&mut attackers, count)?;
    let mut with = Vec::new();
    watch.during(|watch| {
        // One after the other, so that nobody else falls behind.
        for _ in 0..FILLING / SLICE {
            publish(&mut publisher, SLICE, FILLING_BYTES, Duration::ZERO)?;
            hear(&mut audience, count, SLICE)?;
            watch.look()?;
        }
        with = slices_of(&mut publisher, &mut audience, count, slices)?;
        Ok(())
    })?;
    let left = server.usage().files()?.saturating_sub(live_files);
    attackers.ask(OFF)?;
    let figures = Figures {
        p99_alone: median(alone),
        p99_with: median(with),
        ..watch.end()?
    };
    attackers.end()?;
    audience.end()?;
    server.end()?;
    let text = format!("{count} of {count} live subscribers got everything");
    Ok(Outcome {
        abuse: format!(
            "{count} that never read beside {count} that do, a message of 1 KB for all four times a second"
        ),
        bounds: Bounds {
            memory_growth_max: count as u64 * BYTES_EACH,
            p99_free: P99_FREE,
        },
        figures,
        also: vec![
            Finding::new(text, true),
            Finding::new(
                format!("{left} of those who never read were there to the end"),
                left > 0,
            ),
        ],
    })
}

/// Publishes so many at a steady rate.
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

/// Waits until each of the audience has got so many publications; returns the 99th percentile of how
/// long they were on their way.
fn hear(audience: &mut Child, count: usize, publications: usize) -> Result<Duration> {
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut got = 0;
    let mut longest = 0;
    loop {
        let heard: Heard = serde_json::from_str(&audience.ask("and?")?)?;
        got += heard["publications"];
        longest = longest.max(heard.get("p99 µs").copied().unwrap_or_default());
        if got >= (count * publications) as u64 {
            return Ok(Duration::from_micros(longest));
        }
        ensure!(
            Instant::now() < deadline,
            "live subscribers got {got} of {} publications",
            count * publications
        );
        thread::sleep(Duration::from_millis(100));
    }
}

fn wait_for(attackers: &mut Child, count: usize) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(60);
    while Instant::now() < deadline {
        let tally: Tally = serde_json::from_str(&attackers.ask(HOW)?)?;
        if tally
            .get("connections")
            .is_some_and(|open| *open >= count as u64)
        {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(100));
    }
    bail!("not all attackers get in")
}
