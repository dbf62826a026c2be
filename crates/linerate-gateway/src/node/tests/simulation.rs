//! Simulates nodes, a failing broker and clients that connect and disconnect, driven by seeds. The
//! clock stands still while any task has something to do.
//!
//! A seed determines everything that happens. Each client records the publications and gaps that it
//! receives. Every publication must occur exactly once and in order, or be covered by a gap that
//! was reported before anything newer. `LINERATE_SEEDS=100000` runs more seeds; `LINERATE_SEED=7`
//! runs a single one, which a failure prints.

mod client;
mod link;
mod play;
mod server;

use std::{env, ops::Range};

use self::play::{Play, Seen};

/// The number of seeds to run by default.
const SEEDS: u64 = if cfg!(debug_assertions) { 50 } else { 1_000 };

/// The number of steps in one play.
const STEPS: usize = 150;

/// Prints the seed if the test fails.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}", self.0);
        }
    }
}

fn variable(name: &str) -> Option<u64> {
    env::var(name).ok()?.parse().ok()
}

fn seeds() -> Range<u64> {
    match variable("LINERATE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..variable("LINERATE_SEEDS").unwrap_or(SEEDS),
    }
}

fn play(seed: u64) -> Seen {
    let _seed = Seed(seed);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(Play::new(seed).run(STEPS))
}

#[test]
fn a_seed_behaves_the_same_each_time() {
    for seed in 0..SEEDS {
        assert_eq!(play(seed).digest, play(seed).digest, "seed {seed}");
    }
}

#[test]
fn whatever_fails_nothing_is_lost_doubled_or_out_of_order_without_being_told() {
    let seeds = seeds();
    let is_one = seeds.end - seeds.start == 1;
    let mut seen = Seen::default();
    for seed in seeds {
        seen += play(seed);
    }
    println!("{seen:?}");
    let has_happened = [
        seen.publications,
        seen.gaps,
        seen.recovered,
        seen.unrecovered,
        seen.ended,
        seen.followed,
    ];
    assert!(
        is_one || has_happened.iter().all(|count| *count > 10),
        "{seen:?}"
    );
}
