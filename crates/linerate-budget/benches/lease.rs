//! What a lease costs, with a bound and without, alone and with all threads at once.

use divan::{Bencher, black_box};
use linerate_budget::{Budget, Consumer};

fn main() {
    divan::main();
}

/// One small change up and one down, as a buffer makes them: within the slab.
#[divan::bench(threads = [1, 2])]
fn grow_and_shrink_within_a_slab(bencher: Bencher<'_, '_>) {
    let budget = Budget::new(1 << 30);
    bencher
        .with_inputs(|| {
            budget
                .lease_of(Consumer::Publications, 1 << 20)
                .expect("bytes are left")
        })
        .bench_refs(|lease| {
            for _ in 0..1000 {
                let _ = black_box(lease.grow(black_box(250)));
                lease.shrink(black_box(250));
            }
        });
}

/// A lease that lives as long as one buffer: two shared counters up, two down.
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

/// What libraries without a budget pay.
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

/// A share of an account, as each publication has one.
#[divan::bench(threads = [1, 2])]
fn share_and_drop(bencher: Bencher<'_, '_>) {
    let account = Budget::new(1 << 30).account(Consumer::Publications);
    bencher.bench(|| {
        for _ in 0..1000 {
            drop(black_box(account.share(black_box(762))));
        }
    });
}
