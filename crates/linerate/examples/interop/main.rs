//! Exchanges random messages with other WebSocket libraries in both roles and compares every byte:
//! `interop PEERS [--frames N] [--seconds N] [--seed N] [--only NAME]`.
//!
//! `PEERS` is the folder that `conformance/interop/install` fills. Each peer is sent `--frames`
//! frames, spread over all cases of `case`, for at most `--seconds`. The same seed produces the
//! same messages.

mod case;
mod exchange;
mod peer;
mod traffic;

use std::{
    env, fmt,
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use tokio::{sync::Semaphore, task::JoinSet};

use case::Case;
use exchange::Counts;
use peer::{Ability, PEERS, Program};

/// An error message.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;
pub(crate) type Result<T = (), E = Failure> = std::result::Result<T, E>;

/// How many peers run at once, each in its own process.
const PARALLEL_MAX: usize = 2;

/// The maximum number of frames for one case in one round, so that long runs go through many rounds
/// with different settings.
const CASE_FRAMES_MAX: u64 = 20_000;

struct Arguments {
    peers: PathBuf,
    frames: u64,
    limit: Option<Duration>,
    seed: u64,
    only: Option<String>,
}

impl Arguments {
    fn read() -> Result<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
        let mut arguments = Self {
            peers: PathBuf::new(),
            frames: 20_000,
            limit: None,
            seed: now.as_secs(),
            only: None,
        };
        let mut words = env::args().skip(1);
        while let Some(word) = words.next() {
            if !word.starts_with("--") {
                arguments.peers = word.into();
                continue;
            }
            let value = words.next().ok_or(format!("{word} requires a value"))?;
            match &*word {
                "--frames" => arguments.frames = value.parse()?,
                "--only" => arguments.only = Some(value),
                "--seconds" => arguments.limit = Some(Duration::from_secs(value.parse()?)),
                "--seed" => arguments.seed = value.parse()?,
                _ => return Err(format!("unknown option {word}").into()),
            }
        }
        Ok(arguments)
    }
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let arguments = Arc::new(Arguments::read()?);
    println!("seed {}", arguments.seed);
    let places = Arc::new(Semaphore::new(PARALLEL_MAX));
    let mut running = JoinSet::new();
    for (name, ability) in PEERS {
        if arguments.only.as_deref().is_some_and(|only| only != name) {
            continue;
        }
        let (arguments, places) = (arguments.clone(), places.clone());
        running.spawn(async move {
            let _place = places.acquire_owned().await?;
            let outcome = meet(name, ability, &arguments).await?;
            println!("{name:<20} {outcome}");
            Result::<_>::Ok(outcome)
        });
    }
    let mut outcomes = Vec::new();
    while let Some(outcome) = running.join_next().await {
        outcomes.push(outcome??);
    }
    let met = outcomes.iter().any(|it| matches!(it, Outcome::Met { .. }));
    let failed = outcomes.iter().any(|it| matches!(it, Outcome::Failed(_)));
    // In continuous integration, every peer must be installed.
    let is_short = std::env::var_os("CI").is_some()
        && outcomes.iter().any(|it| matches!(it, Outcome::Absent(_)));
    Ok(ExitCode::from(u8::from(failed || is_short || !met)))
}

/// The outcome for a peer.
enum Outcome {
    Absent(String),
    Failed(String),
    Met { counts: Counts, time: Duration },
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent(why) => write!(f, "SKIPPED: {why}"),
            Self::Failed(why) => write!(f, "FAILED: {why}"),
            Self::Met { counts, time } => write!(f, "{counts} in {:.0} s", time.as_secs_f64()),
        }
    }
}

/// Exchanges messages with a peer in all cases, round by round.
async fn meet(name: &str, ability: Ability, arguments: &Arguments) -> Result<Outcome> {
    let program = match Program::find(&arguments.peers, name)? {
        Ok(program) => program,
        Err(why) => return Ok(Outcome::Absent(why)),
    };
    let started = Instant::now();
    let (mut counts, mut round) = (Counts::default(), 0);
    while counts.frames < arguments.frames {
        let cases = Case::all(ability, round);
        let share = arguments.frames.div_ceil(cases.len() as u64);
        for (number, case) in cases.iter().enumerate() {
            if arguments
                .limit
                .is_some_and(|limit| started.elapsed() > limit)
            {
                let time = started.elapsed();
                return Ok(Outcome::Met { counts, time });
            }
            // The seeds are far apart, so that no case repeats another.
            let seed = arguments.seed ^ (round << 32) ^ ((number as u64) << 16);
            match case.run(&program, seed, share.min(CASE_FRAMES_MAX)).await {
                Ok(more) => counts += more,
                Err(why) => {
                    let seed = arguments.seed;
                    let why = format!("{case}: {why} (seed {seed}, round {round})");
                    return Ok(Outcome::Failed(why));
                }
            }
        }
        round += 1;
    }
    let time = started.elapsed();
    Ok(Outcome::Met { counts, time })
}
