//! Nodes, a broker that fails and clients that come and go, by seeds and on a clock that stands still while anybody
//! has something to do.
//!
//! Of a seed follows everything that happens. Each client keeps a list of what it was given and told, and every
//! publication must be in it once and in order, or in a gap that was told before anything newer.
//! `LINERATE_SEEDS=100000` tries more; `LINERATE_SEED=7` tries one, which a failure names.

mod client;
mod link;
mod play;
mod server;

use std::env;

use self::play::Play;

/// How many seeds are tried unless more are asked for.
const SEEDS: u64 = if cfg!(debug_assertions) { 50 } else { 1_000 };

/// How many things happen in one play.
const STEPS: usize = 150;

/// Says which one it is that failed.
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

#[test]
fn whatever_fails_nothing_is_lost_doubled_or_out_of_order_without_being_told() {
    let seeds = match variable("LINERATE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..variable("LINERATE_SEEDS").unwrap_or(SEEDS),
    };
    let is_one = seeds.end - seeds.start == 1;
    let mut seen = play::Seen::default();
    for seed in seeds {
        let _seed = Seed(seed);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        seen += runtime.block_on(Play::new(seed).run(STEPS));
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
