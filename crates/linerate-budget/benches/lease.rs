//! Measures the cost of a lease, with and without a budget, on one thread and on two at once.

use divan::{Bencher, black_box};
use linerate_budget::{Budget, Consumer};

fn main() {
    divan::main();
}

/// One small increase and one small decrease, as a buffer makes them: within the slab.
#[divan::bench(threads = [1, 2])]
fn grow_and_shrink_within_a_slab(bencher: Bencher<'_, '_>) {
    let budget = Budget::new(1 << 30);
    bencher
        .with_inputs(|| {
            budget
                .lease_of(Consumer::Publications, 1 << 20)
                .expect("the budget has room")
        })
        .bench_refs(|lease| {
            for _ in 0..1000 {
                let _ = black_box(lease.grow(black_box(250)));
                lease.shrink(black_box(250));
            }
        });
}

/// A lease that lives as long as one buffer: two shared counters are increased and decreased.
#[divan::bench(threads = [1, 2])]
fn lease_grow_and_drop(bencher: Bencher<'_, '_>) {
    let budget = Budget::new(1 << 30);
    bencher.bench(|| {
        for _ in 0..1000 {
            let mut lease = budget.lease(Consumer::Messages);
            let _ = black_box(lease.grow(black_box(4096)));
        }
    });
}

/// The cost for libraries without a budget.
#[divan::bench]
fn unbounded_grow_and_shrink(bencher: Bencher<'_, '_>) {
    let mut lease = Budget::unbounded().lease(Consumer::Publications);
    bencher.bench_local(|| {
        for _ in 0..1000 {
            let _ = black_box(lease.grow(black_box(250)));
            lease.shrink(black_box(250));
        }
    });
}

/// A share of an account, as each publication holds one.
#[divan::bench(threads = [1, 2])]
fn share_and_drop(bencher: Bencher<'_, '_>) {
    let account = Budget::new(1 << 30).account(Consumer::Publications);
    bencher.bench(|| {
        for _ in 0..1000 {
            drop(black_box(account.share(black_box(762))));
        }
    });
}
