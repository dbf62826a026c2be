//! Tests of the places of a node.

use std::time::{Duration, Instant};

use linerate_hub::ChannelName;
use linerate_testkit::Rng;

use super::{Change, Place, Table, VACANT_MAX, VACANT_MIN};

fn room(number: usize) -> Place {
    Place::Channel(ChannelName::new(&format!("room:{number}")).unwrap())
}

fn change(place: &Place, is_occupied: bool) -> Change {
    Change {
        place: place.clone(),
        is_occupied,
    }
}

/// Stores all changes and returns them.
fn store(table: &mut Table, now: Instant) -> Vec<Change> {
    let changes = table.take(now, usize::MAX);
    table.stored(&changes);
    changes
}

#[test]
fn names_of_places_are_read_back() {
    let channel = ChannelName::new("presence-a").unwrap();
    for place in [
        room(1),
        Place::Member(channel.clone(), "ada".into()),
        Place::Member(channel, "a b \n".into()),
    ] {
        assert_eq!(Place::named(&place.name()), Some(place));
    }
    assert_eq!(Place::named(""), None);
    assert_eq!(Place::named(" ada"), None);
}

#[test]
fn a_place_is_occupied_from_the_first_worker_to_the_last_and_a_while_longer() {
    let (mut table, place, now) = (Table::default(), room(1), Instant::now());
    assert!(table.came(&place, 0));
    assert!(!table.came(&place, 1));
    assert_eq!(store(&mut table, now), [change(&place, true)]);
    assert!(!table.left(now, &place, 0));
    assert!(table.left(now, &place, 1));
    let almost = now + VACANT_MIN - Duration::from_millis(1);
    assert_eq!(store(&mut table, almost), []);
    assert_eq!(table.due(), Some(now + VACANT_MIN));
    let vacant = store(&mut table, now + VACANT_MIN);
    assert_eq!(vacant, [change(&place, false)]);
    assert_eq!((table.len(), table.bytes()), (0, 0));
}

#[test]
fn a_client_that_returns_soon_changes_nothing() {
    let (mut table, place, now) = (Table::default(), room(1), Instant::now());
    table.came(&place, 0);
    store(&mut table, now);
    for second in [0, 2, 4, 6] {
        let now = now + Duration::from_secs(second);
        table.left(now, &place, 0);
        assert_eq!(store(&mut table, now + Duration::from_secs(1)), []);
        table.came(&place, 0);
    }
    let now = now + Duration::from_secs(7);
    assert_eq!(store(&mut table, now), []);
    table.left(now, &place, 0);
    let now = now + 2 * VACANT_MIN;
    assert_eq!(store(&mut table, now), [change(&place, false)]);
}

#[test]
fn a_client_that_comes_while_a_vacant_place_is_stored_is_stored_afterwards() {
    let (mut table, place, now) = (Table::default(), room(1), Instant::now());
    table.came(&place, 0);
    store(&mut table, now);
    table.left(now, &place, 0);
    let changes = table.take(now + VACANT_MIN, 1);
    table.came(&place, 0);
    table.stored(&changes);
    let later = store(&mut table, now + VACANT_MIN);
    assert_eq!(later, [change(&place, true)]);
}

#[test]
fn a_change_that_failed_is_attempted_again_and_everything_after_a_loss() {
    let (mut table, now) = (Table::default(), Instant::now());
    for number in 0..3 {
        table.came(&room(number), 0);
    }
    let changes = table.take(now, 2);
    table.failed(changes.clone());
    assert_eq!(table.take(now, 2), changes);
    table.stored(&changes);
    store(&mut table, now);
    table.left(now, &room(0), 0);
    table.restore();
    let mut changes = store(&mut table, now);
    changes.sort_by_key(|change| change.place.name());
    assert_eq!(changes, [0, 1, 2].map(|number| change(&room(number), true)));
}

#[test]
fn a_place_that_was_left_before_a_loss_is_stored_again_and_then_vacated() {
    for is_due in [false, true] {
        let (mut table, place, now) = (Table::default(), room(1), Instant::now());
        table.came(&place, 0);
        store(&mut table, now);
        table.left(now, &place, 0);
        table.restore();
        let later = match is_due {
            false => now,
            true => now + VACANT_MIN,
        };
        assert_eq!(store(&mut table, later), [change(&place, true)]);
        let vacated = store(&mut table, now + VACANT_MIN);
        assert_eq!(vacated, [change(&place, false)]);
        store(&mut table, now + VACANT_MIN);
        assert_eq!((table.len(), table.bytes()), (0, 0));
    }
}

#[test]
fn a_flood_of_vacant_places_does_not_wait() {
    let (mut table, now) = (Table::default(), Instant::now());
    let all = VACANT_MAX + 10;
    for number in 0..all {
        table.came(&room(number), 0);
        store(&mut table, now);
        table.left(now, &room(number), 0);
    }
    assert_eq!(store(&mut table, now).len(), 1);
    assert_eq!(table.len(), VACANT_MAX);
    store(&mut table, now + VACANT_MIN);
    assert_eq!((table.len(), table.bytes()), (0, 0));
}

#[test]
fn what_is_stored_is_at_last_what_is_occupied() {
    let mut rng = Rng::new(7);
    let (mut table, mut now) = (Table::default(), Instant::now());
    let (mut here, mut at_broker) = ([[false; 2]; 5], [false; 5]);
    for step in 0..50_000 {
        let (number, worker) = (rng.below(5), rng.below(2));
        let is_here = &mut here[number][worker];
        *is_here = !*is_here;
        match *is_here {
            true => _ = table.came(&room(number), worker as u16),
            false => _ = table.left(now, &room(number), worker as u16),
        }
        now += Duration::from_millis(rng.below(2_000) as u64);
        match rng.below(4) {
            0 => {
                let changes = table.take(now, 3);
                table.failed(changes);
            }
            1 if step % 100 == 0 => {
                table.restore();
                at_broker = [false; 5];
            }
            _ => {}
        }
        let rounds = match step % 50 {
            0 => 4,
            _ => 1,
        };
        for _ in 0..rounds {
            if rounds > 1 {
                now += VACANT_MIN;
            }
            for change in store(&mut table, now) {
                let number: usize = change.place.channel().as_str()[5..].parse().unwrap();
                at_broker[number] = change.is_occupied;
            }
        }
        if rounds > 1 {
            let occupied = here.map(|workers| workers.contains(&true));
            assert_eq!(at_broker, occupied, "after {step} steps");
        }
    }
}
