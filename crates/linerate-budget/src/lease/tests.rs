//! Tests of leases on one thread.

use crate::{Budget, Consumer, Exhausted};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

#[test]
fn a_lease_counts_what_it_holds_and_returns_it_when_dropped() {
    let budget = Budget::new(16 * MIB);
    let mut lease = budget.lease_of(Consumer::Publications, MIB).unwrap();
    assert_eq!(
        (lease.bytes(), lease.consumer()),
        (MIB, Consumer::Publications)
    );
    let used = budget.used(Consumer::Publications);
    assert!((MIB..=MIB + MIB / 8).contains(&used), "{used}");
    assert_eq!(budget.used_total(), used);
    assert_eq!(budget.used(Consumer::Uploads), 0);

    lease.shrink(MIB);
    assert_eq!((lease.bytes(), budget.used_total()), (0, 0));
    lease.set(5);
    drop(lease);
    assert_eq!(budget.used_total(), 0);
}

#[test]
fn the_last_byte_is_lent_and_the_next_one_refused() {
    let budget = Budget::new(MIB);
    let mut lease = budget.lease_of(Consumer::Backlogs, MIB).unwrap();
    let refused = lease.grow(1).unwrap_err();
    let expected = Exhausted {
        consumer: Consumer::Backlogs,
        asked: 1,
        used: MIB,
        limit: MIB,
    };
    assert_eq!(refused, expected);
    assert_eq!((lease.bytes(), budget.used_total()), (MIB, MIB));
    assert_eq!(budget.refusals(Consumer::Backlogs), 1);

    lease.resize(MIB - 1).unwrap();
    lease.resize(MIB).unwrap();
    let error = refused.to_string();
    for part in ["backlogs", "1048576", "server.memory_bytes_max"] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn uploads_can_use_half_of_the_budget() {
    let budget = Budget::new(MIB);
    let mut uploads = budget.lease_of(Consumer::Uploads, MIB / 2).unwrap();
    let refused = uploads.grow(1).unwrap_err();
    assert_eq!((refused.used, refused.limit), (MIB / 2, MIB / 2));
    budget.lease_of(Consumer::Publications, MIB / 2).unwrap();
}

#[test]
fn optional_requests_are_refused_while_the_budget_is_critical() {
    let budget = Budget::new(100 * MIB);
    let mut others = budget.lease(Consumer::Backlogs);
    let mut bodies = budget.lease(Consumer::Bodies);
    others.set(93 * MIB);
    bodies.grow_unless_critical(MIB).unwrap();
    others.set(95 * MIB);
    let refused = bodies.grow_unless_critical(7).unwrap_err();
    assert_eq!((refused.asked, refused.limit), (7, 95 * MIB));
    assert_eq!(budget.refusals(Consumer::Bodies), 1);
    // The state stays critical until less than 90 % is in use.
    others.set(90 * MIB);
    assert!(bodies.grow_unless_critical(7).is_err());
    others.set(80 * MIB);
    bodies.grow_unless_critical(7).unwrap();
    assert_eq!(bodies.bytes(), MIB + 7);
}

#[test]
fn forced_bytes_are_counted_beyond_the_limit() {
    let budget = Budget::new(MIB);
    let mut lease = budget.lease(Consumer::Messages);
    lease.force(3 * MIB);
    assert_eq!(budget.used_total(), 3 * MIB);
    assert!(budget.lease_of(Consumer::Publications, 1).is_err());
    lease.set(KIB);
    assert!(budget.used_total() < 8 * KIB);
    drop(lease);
    assert_eq!(budget.used_total(), 0);
}

#[test]
fn small_changes_touch_no_shared_counter() {
    let budget = Budget::new(1 << 30);
    let mut worker = budget.worker_lease(Consumer::Publications);
    worker.grow(1).unwrap();
    let used = budget.used_total();
    assert!((256 * KIB..257 * KIB).contains(&used), "{used}");
    for _ in 0..10_000 {
        worker.grow(200 * KIB).unwrap();
        worker.shrink(200 * KIB + 1);
        assert_eq!((worker.bytes(), budget.used_total()), (0, used));
        worker.grow(1).unwrap();
    }

    // A lease for one buffer draws an amount that depends on its size.
    let one = budget.lease_of(Consumer::Messages, 100).unwrap();
    assert!(budget.used(Consumer::Messages) <= 2 * KIB);
    drop(one);
}

#[test]
fn slabs_of_a_small_budget_are_small() {
    let budget = Budget::new(MIB);
    let mut worker = budget.worker_lease(Consumer::Publications);
    worker.grow(1).unwrap();
    assert!(budget.used_total() <= MIB / 64 + 1);
}

#[test]
fn a_lease_draws_what_it_holds_and_little_more() {
    let budget = Budget::new(64 * MIB);
    let mut lease = budget.lease(Consumer::Inflaters);
    let mut state = 1_u64;
    for _ in 0..100_000 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let bytes = (state >> 40) % (32 * MIB);
        lease.resize(bytes >> (state >> 60)).unwrap();
        let (held, used) = (lease.bytes(), budget.used(Consumer::Inflaters));
        assert!(held <= used, "{held} held, {used} used");
        assert!(used <= held + held / 4 + 4 * KIB || used - held <= 512 * KIB);
    }
}

#[test]
fn without_a_bound_nothing_is_counted_or_refused() {
    let budget = Budget::unbounded();
    let mut lease = budget.lease_of(Consumer::Publications, u64::MAX).unwrap();
    lease.grow(1).unwrap();
    lease.shrink(5);
    assert_eq!(lease.bytes(), u64::MAX - 5);
    assert_eq!((budget.used_total(), budget.bytes_max()), (0, None));
    budget.note_shed(Consumer::Publications, 1);
    assert_eq!(budget.sheds(Consumer::Publications), 0);
}

#[test]
fn impossible_sizes_do_not_panic() {
    let budget = Budget::new(MIB);
    let mut lease = budget.lease(Consumer::Publications);
    assert!(lease.grow(u64::MAX).is_err());
    lease.grow(7).unwrap();
    assert!(lease.resize(u64::MAX).is_err());
    lease.shrink(u64::MAX);
    assert_eq!((lease.bytes(), budget.used_total()), (0, 0));
    lease.force(u64::MAX);
    lease.force(u64::MAX);
    drop(lease);
    assert_eq!(budget.used_total(), 0);
    assert!(Budget::new(0).lease_of(Consumer::Publications, 1).is_err());
}
