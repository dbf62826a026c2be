//! Tests of leases on many threads, and of the states.

use std::thread;

use crate::{Budget, Consumer, State};

const MIB: u64 = 1 << 20;

#[test]
fn threads_never_exceed_the_budget_and_return_all_of_it() {
    let budget = Budget::new(4 * MIB);
    thread::scope(|scope| {
        for seed in 0..8_u64 {
            let budget = &budget;
            scope.spawn(move || {
                let mut lease = budget.lease(Consumer::ALL[seed as usize]);
                let mut random = seed + 1;
                for _ in 0..20_000 {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    let wanted = (random >> 40) % (2 * MIB);
                    let before = lease.bytes();
                    match lease.resize(wanted) {
                        Ok(()) => assert_eq!(lease.bytes(), wanted),
                        Err(_) => assert_eq!(lease.bytes(), before),
                    }
                    assert!(budget.used_total() <= 4 * MIB);
                }
            });
        }
    });
    assert_eq!(budget.used_total(), 0);
    assert!(
        Consumer::ALL
            .iter()
            .all(|consumer| budget.used(*consumer) == 0)
    );
    assert_eq!(budget.state(), State::Normal);
}

#[test]
fn the_state_agrees_with_the_total_under_concurrency() {
    let budget = Budget::new(MIB);
    for _ in 0..300 {
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let _ = budget.lease_of(Consumer::Publications, MIB * 9 / 10);
                    }
                });
            }
        });
        assert_eq!((budget.used_total(), budget.state()), (0, State::Normal));
    }
}

#[test]
fn the_states_have_hysteresis() {
    let budget = Budget::new(100 * MIB);
    let mut lease = budget.lease(Consumer::Publications);
    let mut after = |mib: u64| {
        lease.set(mib * MIB);
        (budget.state(), budget.excess().div_ceil(MIB))
    };
    assert_eq!(after(84), (State::Normal, 0));
    assert_eq!(after(85), (State::Tight, 11));
    assert_eq!(after(80), (State::Tight, 6));
    assert_eq!(after(96), (State::Critical, 12));
    assert_eq!(after(91), (State::Critical, 7));
    assert_eq!(after(88), (State::Tight, 14));
    assert_eq!(after(60), (State::Normal, 0));
}

#[test]
fn uploads_alone_leave_the_state_normal() {
    let budget = Budget::new(MIB);
    let _uploads = budget.lease_of(Consumer::Uploads, MIB / 2).unwrap();
    assert_eq!(budget.state(), State::Normal);
}

#[test]
fn shed_bytes_are_counted() {
    let budget = Budget::new(MIB);
    budget.note_shed(Consumer::Backlogs, 7);
    budget.note_shed(Consumer::Backlogs, 5);
    assert_eq!(budget.sheds(Consumer::Backlogs), 2);
    assert_eq!(budget.shed_bytes(Consumer::Backlogs), 12);
    assert_eq!(budget.sheds(Consumer::Publications), 0);
}
