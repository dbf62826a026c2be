//! Point S1 of the audit: uploads of logs that could exhaust memory or delay other uploads.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::{BOUNDS, process::ServerProcess};
use crate::{
    Row,
    attack::{self, Abuse, HOW, OFF, ON, Tally, counted, upload::UPLOADS},
    cores::BusyCores,
    figures::{Effort, Figures, SLICE, Watch, wait_until_back},
    live::{LiveClients, neighbour::Neighbour},
    outcome::{Bounds, Finding, Outcome},
    waits::median,
};

/// The memory that all uploads together may use in bytes, the default of `logs.memory_bytes_max`.
const BUDGET: u64 = 1 << 30;

/// Memory that is used in addition, in bytes: large buffers that wait to be used again (64 MiB),
/// threads, stacks, and what the allocator has not released yet.
const CONSTANT: u64 = 128 << 20;

/// The maximum memory of one upload, in bytes: its lines, columns and names.
const ONE_UPLOAD: u64 = (256 + 40 + 80) << 20;

/// The maximum memory of an upload's columns, in bytes.
const COLUMNS: u64 = 40 << 20;

/// The number of clients that view an upload at a time, fewer than `logs.viewers_max`.
const VIEWERS: usize = 24;

/// The maximum memory of a viewer that does not read, in bytes: an answer of 1,000 lines that is
/// sent, and its connection.
const ONE_VIEWER: u64 = 1 << 20;

/// How much more memory than before may be in use after the last client, in bytes.
const BACK_TO: u64 = 32 << 20;

/// How long a line of a well-behaved upload may take, and how much longer for each upload that is
/// processed at the same time.
const NEIGHBOUR_P99_MAX: Duration = Duration::from_millis(50);
const NEIGHBOUR_WAITS: Duration = Duration::from_millis(30);

/// How much longer a live client may wait for each upload that is processed at the same time, and
/// for at most how many: workers read up to 256 KiB of an upload at once.
const UPLOAD_TURN: Duration = Duration::from_micros(50);
const TURNS_MAX: u32 = 8;

/// An abuse by uploads, and its expected result.
struct Plan {
    abuse: Abuse,
    peers: usize,
    /// How many of them are admitted at once.
    let_in: u32,
    words: &'static str,
    memory_growth_max: u64,
    /// How the server ends uploads: an error code of the upload protocol, and a close code
    /// (RFC 6455 §7.4).
    ends: &'static [&'static str],
    /// How many uploads must end in these ways at least.
    ended_min: u64,
}

pub(super) fn rows() -> Vec<Row> {
    let row = |name: &str, plan: Plan| {
        Row::new(format!("serve/s1-{name}"), move |effort| run(&plan, effort))
    };
    vec![
        row(
            "upload-rows",
            Plan {
                abuse: Abuse::UploadRows,
                peers: 1,
                let_in: 1,
                words: "4 MiB of random lines, repeated, all of which are kept",
                memory_growth_max: ONE_UPLOAD + CONSTANT,
                ends: &[],
                ended_min: 0,
            },
        ),
        row(
            "uploads-of-one-address",
            Plan {
                abuse: Abuse::UploadRows,
                peers: 64,
                let_in: 8,
                words: "64 uploads of such lines at once from one address",
                memory_growth_max: BUDGET + CONSTANT,
                ends: &["busy 1013", "no_memory 1013"],
                ended_min: 56,
            },
        ),
        row(
            "uploads-of-eight-addresses",
            Plan {
                abuse: Abuse::UploadCrowd,
                peers: 64,
                let_in: 64,
                words: "64 uploads of such lines at once from eight addresses",
                memory_growth_max: BUDGET + CONSTANT,
                ends: &["busy 1013", "no_memory 1013"],
                ended_min: 1,
            },
        ),
        row(
            "upload-bombs",
            Plan {
                abuse: Abuse::UploadBombs,
                peers: 2,
                let_in: 2,
                words: "two files of 288 KB that decompress to 3 GB, repeatedly",
                memory_growth_max: 2 * COLUMNS + CONSTANT,
                ends: &["too_large 1009"],
                ended_min: 2,
            },
        ),
        row(
            "upload-viewers",
            Plan {
                abuse: Abuse::Viewers,
                peers: VIEWERS,
                let_in: 2,
                words: "24 viewers of one upload ask for its lines and read nothing; names of uploads are guessed",
                memory_growth_max: VIEWERS as u64 * ONE_VIEWER + CONSTANT,
                ends: &["unknown_session 1008"],
                ended_min: 10,
            },
        ),
    ]
}

fn run(plan: &Plan, effort: &Effort) -> Result<Outcome> {
    let server = ServerProcess::start_sharing(
        &effort.linerate,
        &[
            "--set",
            "server.trusted_proxies=127.0.0.1/32",
            "--set",
            "logs.resume_s=7",
        ],
    )?;
    let mut attackers = attack::start(plan.abuse, server.address, plan.peers)?;
    let mut live = LiveClients::open(server.target())?;
    let mut neighbour = Neighbour::open(server.address)?;
    let mut slices = |count: usize| -> Result<(Duration, Duration)> {
        let (mut echoes, mut lines) = (Vec::new(), Vec::new());
        for _ in 0..count {
            echoes.push(live.p99(SLICE)?);
            lines.push(neighbour.p99(SLICE)?);
        }
        Ok((median(echoes), median(lines)))
    };
    let busy_cores = BusyCores::begin()?;
    slices(1)?;
    let mut watch = Watch::begin(server.process())?;
    let alone = slices(effort.slices)?;
    drop(busy_cores);
    attackers.ask(ON)?;
    let with = watch.during(|_| slices(effort.slices))?;
    let tally: Tally = attackers.ask_for(HOW)?;
    attackers.ask(OFF)?;
    let left = Instant::now();
    let before = watch.memory_before();
    let back = wait_until_back(server.process(), before + BACK_TO, left, || Ok(()))?;
    let neighbour_max = NEIGHBOUR_P99_MAX + plan.let_in * NEIGHBOUR_WAITS;
    let figures = Figures {
        p99_alone: alone.0,
        p99_with: with.0,
        tally,
        ..watch.end()?
    };
    drop(live);
    attackers.end()?;
    server.end()?;
    Ok(Outcome {
        abuse: plan.words.to_owned(),
        bounds: Bounds {
            memory_growth_max: plan.memory_growth_max,
            p99_free: BOUNDS.p99_free + plan.let_in.min(TURNS_MAX) * UPLOAD_TURN,
        },
        also: vec![
            endings(plan, &figures.tally),
            Finding::new(
                format!(
                    "a line of a well-behaved upload is parsed within {:.1} ms, without the abuse {:.1} ms ({:.0} ms)",
                    millis(with.1),
                    millis(alone.1),
                    millis(neighbour_max)
                ),
                with.1 <= neighbour_max,
            ),
            Finding::new(
                match back {
                    Some(after) => {
                        format!(
                            "memory is released {:.1} s after the last upload",
                            after.as_secs_f64()
                        )
                    }
                    None => "memory is not released 10 s after the last upload".to_owned(),
                },
                back.is_some(),
            ),
        ],
        figures,
    })
}

/// Checks how the server has ended uploads.
fn endings(plan: &Plan, tally: &Tally) -> Finding {
    let count = |name: &str| counted(tally, name);
    let ended = plan.ends.iter().map(|end| count(end)).sum::<u64>();
    let others: Vec<String> = tally
        .iter()
        .filter(|(name, _)| !plan.ends.contains(&name.as_str()) && *name != UPLOADS)
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    let is_kept = ended >= plan.ended_min
        && tally.keys().all(|name| {
            plan.ends.contains(&name.as_str()) || name == UPLOADS || name == "finished"
        });
    let ends: Vec<String> = plan
        .ends
        .iter()
        .map(|end| format!("{} {end}", count(end)))
        .chain(others)
        .collect();
    let text = format!("{} uploads: {}", count(UPLOADS), ends.join(", "));
    Finding::new(text, is_kept)
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
