//! Simulates whole nodes, a broker that fails and clients that come and go, driven by seeds.
//!
//! The hub, the node, the sessions and the protocols are real; the network, the broker, the clients
//! and the clock are simulated. A seed determines everything that happens. Each client records what
//! it receives: every publication must arrive exactly once and in order, or the client must have
//! been told that it missed some. `LINERATE_SEEDS=100000` runs more seeds, from
//! `LINERATE_FIRST_SEED` on; `LINERATE_SEED=7` runs a single one, which a failure prints.
//!
//! | module | contents |
//! | --- | --- |
//! | `world` | what happens: publications, faults, and the passing of time |
//! | `machine` | a node's process, with its own runtime and clock |
//! | `link` | a node's link to the broker |
//! | `network` | carries packets between nodes and servers, and has partitions |
//! | `packet` | what nodes and servers send to each other |
//! | `server` | the broker: a state machine with the guarantees of Redis or NATS |
//! | `client` | a client that checks what it receives |
//! | `pipe` | a connection between a session and a client |
//! | `wire` | the client's side of the protocols |
//! | `seen` | counts, and a digest of everything that clients have seen |

mod client;
mod link;
mod machine;
mod network;
mod packet;
mod pipe;
mod seen;
mod server;
mod wire;
mod world;

use std::{
    env,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread,
};

use parking_lot::Mutex;

use crate::{
    config::Loader,
    session::{SessionEnvironment, Settings},
};
use seen::Seen;
use world::World;

/// The number of seeds to run by default.
const SEEDS: u64 = if cfg!(debug_assertions) { 50 } else { 1_000 };

/// Seeds that have failed, which are run in addition.
const FAILED: [u64; 10] = [73, 85, 1042, 2398, 2463, 3710, 4891, 5407, 5659, 6149];

/// The number of failures after which no more seeds are run.
const FAILURES_MAX: usize = 10;

/// A long run says where it is each time it has come this far.
const PROGRESS: u64 = 10_000;

/// Channels of each kind. Rings are small, so that a client falls behind if it does not read for a
/// while.
const CONFIG: &str = r#"
[auth]
anonymous = true
[broker]
url = "redis://localhost"
[channel]
allow_subscribe = true
allow_anonymous = true
ring_messages_max = 6
[[namespace]] # durable
name = "d"
durable = true
history_size = 30
recover = true
[[namespace]] # plain
name = "p"
history_size = 30
recover = true
[[namespace]] # told of gaps
name = "t"
durable = true
history_size = 30
[[namespace]] # live
name = "l"
"#;

/// Prints the seed if the test fails.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("seed {}", self.0);
        }
    }
}

fn variable(name: &str) -> Option<u64> {
    env::var(name).ok()?.parse().ok()
}

fn seeds() -> impl Iterator<Item = u64> + Send {
    let (failed, seeds) = match variable("LINERATE_SEED") {
        Some(seed) => (&[][..], seed..seed + 1),
        None => {
            let first = variable("LINERATE_FIRST_SEED").unwrap_or(0);
            let count = variable("LINERATE_SEEDS").unwrap_or(SEEDS);
            (&FAILED[..], first..first.saturating_add(count))
        }
    };
    failed.iter().copied().chain(seeds)
}

fn environment() -> Arc<SessionEnvironment> {
    let config = Loader::new().with_text("simulation.toml", CONFIG).load();
    let settings = Settings::new(config.unwrap(), None).unwrap();
    Arc::new(SessionEnvironment::new(settings))
}

fn simulate(seed: u64, environment: &Arc<SessionEnvironment>) -> Seen {
    let _seed = Seed(seed);
    World::new(seed, environment).run()
}

fn simulate_two_masters(seed: u64, environment: &Arc<SessionEnvironment>) -> Seen {
    let _seed = Seed(seed);
    World::with_two_masters(seed, environment).run()
}

/// Runs all seeds on all cores, and returns what was seen. A seed that fails does not keep others
/// from being run, so that a long run finds more than one.
fn run_all(name: &str, run: impl Fn(u64, &Arc<SessionEnvironment>) -> Seen + Sync) -> Seen {
    let total = Mutex::new(Seen::default());
    let seeds = Mutex::new(seeds());
    let failed = Mutex::new(Vec::new());
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let environment = environment();
                while failed.lock().len() < FAILURES_MAX {
                    let Some(seed) = seeds.lock().next() else {
                        return;
                    };
                    if seed % PROGRESS == 0 {
                        println!("{name}: at seed {seed}");
                    }
                    match catch_unwind(AssertUnwindSafe(|| run(seed, &environment))) {
                        Ok(seen) => *total.lock() += seen,
                        Err(_) => failed.lock().push(seed),
                    }
                }
            });
        }
    });
    let failed = failed.into_inner();
    assert!(failed.is_empty(), "seeds {failed:?} failed");
    total.into_inner()
}

#[test]
fn whatever_fails_nothing_is_lost_doubled_or_out_of_order_without_being_told() {
    let seen = run_all("whatever fails", simulate);
    println!("{seen:?}");
    let is_one = variable("LINERATE_SEED").is_some();
    assert!(
        is_one || seen.all().iter().all(|count| *count > 10),
        "{seen:?}"
    );
}

#[test]
fn clients_that_move_between_two_masters_see_nothing_twice_without_being_told() {
    run_all("two masters", simulate_two_masters);
}

/// `docs/gateway/cost.md` is computed with these assumptions.
#[test]
fn a_cluster_costs_its_broker_what_the_cost_model_says() {
    let traffic = World::medium(&environment()).measure();
    let is_near = |measured: f64, model: f64| (measured / model - 1.0).abs() < 0.2;
    assert!(is_near(traffic.reached, traffic.expected), "{traffic:?}");
    // A lease is renewed every two seconds.
    assert!(is_near(traffic.beats, 0.5), "{traffic:?}");
}

#[test]
fn a_seed_behaves_the_same_each_time() {
    let environment = environment();
    for seed in 0..SEEDS / 2 {
        assert_eq!(
            simulate(seed, &environment),
            simulate(seed, &environment),
            "seed {seed}"
        );
    }
}
