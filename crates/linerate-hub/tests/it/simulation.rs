//! Random histories, each compared with a naive model of what every subscriber must see.

mod channel;
mod checker;
mod options;
mod random;
mod world;

use self::world::Simulation;

/// The number of steps in all, and the number of steps until a new world begins.
const STEPS: u64 = if cfg!(debug_assertions) {
    100_000
} else {
    5_000_000
};
const STEPS_OF_WORLD: u64 = 10_000;

fn run(seeds: u64, is_conflating: bool) {
    let (mut gaps, mut deltas) = (0, 0);
    for world in 0..STEPS / 2 / STEPS_OF_WORLD {
        println!("seed {}", seeds + world);
        let mut simulation = Simulation::new(seeds + world, is_conflating);
        for step in 0..STEPS_OF_WORLD {
            simulation.step();
            if step % 500 == 499 {
                simulation.settle();
            }
        }
        simulation.settle();
        let (more_gaps, more_deltas) = simulation.end();
        gaps += more_gaps;
        deltas += more_deltas;
    }
    assert!(
        gaps > 100,
        "only {gaps} gaps occurred; the simulation does too little"
    );
    assert!(
        deltas > 100,
        "only {deltas} deltas were possible; the simulation does too little"
    );
}

#[test]
fn every_subscriber_sees_what_a_naive_model_says() {
    run(0x5eed_0000, false);
}

#[test]
fn every_conflating_subscriber_ends_with_the_newest_of_each_key() {
    run(0x5eed_8000, true);
}
