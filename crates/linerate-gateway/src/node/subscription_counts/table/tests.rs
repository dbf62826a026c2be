//! Tests of the numbers and of when they are told, with a virtual clock.

use std::time::{Duration, Instant};

use linerate_hub::ChannelName;

use super::{Due, HEARD_MAX, PAUSE, PAUSE_LARGE, REFRESH, SETTLE, SMALL_MAX, Table};

const MS: Duration = Duration::from_millis(1);

fn channel() -> ChannelName {
    ChannelName::new("news").unwrap()
}

/// Numbers, each with the time at which it was announced or told.
type Timed = Vec<(Duration, u64)>;

/// A table with a clock.
struct World {
    table: Table,
    now: Instant,
}

impl World {
    fn new(node: &str) -> Self {
        Self {
            table: Table::new(node),
            now: Instant::now(),
        }
    }

    fn subscribe(&mut self, count: u64) {
        self.table.set(self.now, &channel(), (0, count), true);
    }

    fn unsubscribe(&mut self, count: u64) {
        self.table.set(self.now, &channel(), (0, count), false);
    }

    fn hear(&mut self, node: &str, count: u64) {
        self.table.hear(self.now, node, &channel(), count);
    }

    /// Lets time pass. Returns the numbers that were announced and told, each with its time since
    /// the start of the call.
    fn pass(&mut self, time: Duration) -> (Timed, Timed) {
        let (start, until) = (self.now, self.now + time);
        let (mut announced, mut told) = (Vec::new(), Vec::new());
        loop {
            for due in self.table.take(self.now, 10) {
                let at = self.now - start;
                announced.extend(due.announced.map(|count| (at, count)));
                told.extend(due.told.map(|count| (at, count)));
            }
            match self.table.next() {
                Some(next) if next <= until => self.now = next,
                _ => break,
            }
        }
        self.now = until;
        (announced, told)
    }

    fn told(&mut self, time: Duration) -> Timed {
        self.pass(time).1
    }

    fn due(&mut self, time: Duration) -> Vec<Due> {
        self.now += time;
        self.table.take(self.now, 10)
    }
}

#[test]
fn the_first_number_is_announced_at_once_and_told_with_those_of_other_nodes() {
    let mut world = World::new("a");
    world.subscribe(2);
    let (announced, told) = world.pass(SETTLE - MS);
    assert_eq!((announced, told), (vec![(Duration::ZERO, 2)], vec![]));
    world.hear("b", 5);
    assert_eq!(world.told(SETTLE), [(MS, 7)]);
}

#[test]
fn a_small_channel_is_told_each_change_but_not_more_often_than_the_pause() {
    let mut world = World::new("a");
    world.subscribe(1);
    assert_eq!(world.told(SETTLE), [(SETTLE, 1)]);
    for count in 2..=SMALL_MAX {
        world.subscribe(count);
        assert_eq!(world.told(MS), []);
    }
    let told = world.told(PAUSE);
    assert_eq!(told, [(PAUSE - MS * 99, SMALL_MAX)]);
}

#[test]
fn a_large_channel_is_told_every_few_seconds_and_always_the_last_number() {
    let mut world = World::new("a");
    world.subscribe(SMALL_MAX + 1);
    world.told(SETTLE);
    let mut told = Vec::new();
    for second in 0..60 {
        world.unsubscribe(200 + second);
        told.extend(world.told(Duration::from_secs(1)));
    }
    assert_eq!(told.len(), 12);
    world.unsubscribe(SMALL_MAX + 1);
    let last = world.told(PAUSE_LARGE);
    assert_eq!(last.last().unwrap().1, SMALL_MAX + 1);
}

#[test]
fn a_new_subscriber_is_told_a_number_that_has_not_changed() {
    let mut world = World::new("a");
    world.subscribe(1);
    world.told(SETTLE);
    world.pass(PAUSE);
    world.unsubscribe(0);
    world.subscribe(1);
    assert_eq!(world.told(PAUSE), [(Duration::ZERO, 1)]);
    world.unsubscribe(1);
    assert_eq!(world.told(PAUSE), []);
}

#[test]
fn the_numbers_of_workers_and_nodes_are_added() {
    let mut world = World::new("a");
    world.subscribe(1);
    world.table.set(world.now, &channel(), (1, 3), true);
    world.hear("b", 10);
    world.hear("c", 20);
    world.hear("b", 11);
    let (announced, told) = world.pass(SETTLE);
    assert_eq!(announced, [(Duration::ZERO, 4)]);
    assert_eq!(told, [(SETTLE, 35)]);
    world.pass(PAUSE);
    world.hear("c", 0);
    assert_eq!(world.told(Duration::ZERO), [(Duration::ZERO, 15)]);
}

#[test]
fn a_node_that_is_heard_for_the_first_time_is_told_the_number() {
    let mut world = World::new("a");
    world.subscribe(1);
    world.pass(PAUSE);
    world.hear("b", 1);
    assert_eq!(world.pass(PAUSE).0, [(Duration::ZERO, 1)]);
    world.hear("b", 2);
    assert_eq!(world.pass(PAUSE).0, []);
}

#[test]
fn the_subscriptions_of_a_node_that_ends_are_not_counted() {
    let mut world = World::new("a");
    world.subscribe(1);
    world.hear("b", 10);
    assert_eq!(world.told(PAUSE * 2), [(SETTLE, 11)]);
    world.table.forget_nodes(&["x".to_owned(), "b".to_owned()]);
    assert_eq!(world.told(Duration::ZERO), [(Duration::ZERO, 1)]);
}

#[test]
fn numbers_are_announced_again_and_those_of_silent_nodes_expire() {
    let mut world = World::new("a");
    world.subscribe(1);
    world.hear("b", 10);
    world.pass(PAUSE);
    let (announced, told) = world.pass(HEARD_MAX + REFRESH);
    assert!(announced.len() >= 3, "{announced:?}");
    assert!(announced.iter().all(|(_, count)| *count == 1));
    let told: Vec<_> = told.into_iter().map(|(_, count)| count).collect();
    assert_eq!(told, [1]);
}

#[test]
fn one_node_tells_webhooks() {
    let is_reporter = |node: &str, other: &str| {
        let mut world = World::new(node);
        world.subscribe(1);
        world.hear(other, 1);
        let due = world.due(SETTLE);
        assert_eq!(due[0].told, Some(2));
        due[0].is_reporter
    };
    assert!(is_reporter("a", "b"));
    assert!(!is_reporter("b", "a"));
}

#[test]
fn webhooks_are_told_only_of_changes() {
    let mut world = World::new("a");
    world.subscribe(2);
    assert!(world.due(SETTLE)[0].is_reporter);
    world.unsubscribe(1);
    world.subscribe(2);
    let due = world.due(PAUSE);
    assert_eq!((due[0].told, due[0].is_reporter), (Some(2), false));
}

#[test]
fn the_last_node_tells_that_a_channel_has_no_subscriptions() {
    let mut world = World::new("b");
    world.subscribe(1);
    world.hear("a", 1);
    world.pass(PAUSE * 2);
    world.hear("a", 0);
    world.pass(PAUSE * 2);
    world.unsubscribe(0);
    let due = world.due(Duration::ZERO);
    assert_eq!((due[0].told, due[0].is_reporter), (Some(0), true));
    assert_eq!(due[0].announced, Some(0));
}

#[test]
fn a_node_without_subscriptions_leaves_it_to_others_to_tell() {
    let mut world = World::new("a");
    world.subscribe(1);
    world.hear("b", 1);
    world.pass(PAUSE * 2);
    world.unsubscribe(0);
    assert_eq!(world.pass(PAUSE * 2), (vec![(Duration::ZERO, 0)], vec![]));
}

#[test]
fn a_channel_without_subscriptions_is_forgotten_and_its_rate_stays_limited() {
    let mut world = World::new("a");
    let mut told = Vec::new();
    for _ in 0..1_000 {
        world.subscribe(1);
        told.extend(world.told(MS));
        world.unsubscribe(0);
        told.extend(world.told(MS));
    }
    assert!(told.len() <= 11, "{told:?}");
    assert!(world.table.bytes() > 0);
    world.hear("b", 1);
    world.pass(HEARD_MAX + REFRESH);
    assert_eq!((world.table.bytes(), world.table.next()), (0, None));
    world.hear("b", 1);
    assert_eq!((world.table.bytes(), world.table.next()), (0, None));
}

#[test]
fn a_subscription_that_ends_before_it_was_counted_is_not_told() {
    let mut world = World::new("a");
    world.subscribe(1);
    world.unsubscribe(0);
    assert_eq!(world.pass(PAUSE * 2), (vec![], vec![]));
    assert_eq!(world.table.bytes(), 0);
}
