//! Deadlines with a coarse resolution, in a wheel of ticks.

use std::time::Duration;

/// The length of a tick.
pub(crate) const TICK: Duration = Duration::from_millis(250);

/// The number of ticks that the wheel covers, 128 s. A connection with a later deadline is checked
/// before it is due and entered again.
const TICKS: usize = 512;

/// Ticks since the worker started; 32 bits last for 34 years.
pub(crate) type Tick = u32;

/// Returns the tick that is in progress at `now`.
pub(crate) fn tick_at(now: Duration) -> Tick {
    (now.as_millis() / TICK.as_millis()) as Tick
}

/// Returns the first tick that begins after `due`.
pub(crate) fn tick_after(due: Duration) -> Tick {
    tick_at(due).saturating_add(1)
}

/// Returns the time from `now` until a tick in milliseconds.
#[cfg(unix)]
pub(crate) fn millis_until(tick: Tick, now: Duration) -> u32 {
    let left = (TICK * tick).saturating_sub(now);
    u32::try_from(left.as_millis()).unwrap_or(u32::MAX)
}

/// Returns the first tick that begins after this many milliseconds from `now` on.
#[cfg(unix)]
pub(crate) fn tick_in(millis: u32, now: Duration) -> Tick {
    tick_after(now + Duration::from_millis(millis.into()))
}

/// Marks the end of a list.
const NONE: u32 = u32::MAX;

/// The connections to be checked at each of the next ticks. Every key is in the wheel at most once.
///
/// The entries of a tick form a linked list in one array that all ticks share. The wheel therefore
/// needs 8 bytes for each key, regardless of what is added and removed, and never allocates for a
/// tick.
#[derive(Debug)]
pub(crate) struct Wheel {
    /// The first entry of each tick.
    firsts: Vec<u32>,
    links: Links,
    turned: Tick,
    entries: usize,
}

impl Wheel {
    pub(crate) fn new() -> Self {
        Self {
            firsts: vec![NONE; TICKS],
            links: Links::default(),
            turned: 0,
            entries: 0,
        }
    }

    /// Adds `key`, which must not be in the wheel, at `tick` or the nearest tick that the wheel
    /// covers; returns that tick.
    pub(crate) fn push(&mut self, tick: Tick, key: u32) -> Tick {
        let tick = tick.clamp(self.turned + 1, self.turned + TICKS as Tick - 1);
        let next = std::mem::replace(&mut self.firsts[slot(tick)], key);
        *self.links.at(key) = Link {
            next,
            previous: NONE,
        };
        if next != NONE {
            self.links.at(next).previous = key;
        }
        self.entries += 1;
        tick
    }

    /// Removes `key`, which must be in the wheel at `tick`.
    pub(crate) fn remove(&mut self, tick: Tick, key: u32) {
        let Link { next, previous } = *self.links.at(key);
        match previous {
            NONE => self.firsts[slot(tick)] = next,
            previous => self.links.at(previous).next = next,
        }
        if next != NONE {
            self.links.at(next).previous = previous;
        }
        self.entries -= 1;
    }

    /// Removes and returns one of the keys that are due at `now`. If there is none, turns the wheel
    /// to that tick.
    pub(crate) fn pop(&mut self, now: Tick) -> Option<u32> {
        while !self.is_behind() {
            if self.turned >= now {
                return None;
            }
            self.turned += 1;
        }
        let key = self.firsts[slot(self.turned)];
        self.remove(self.turned, key);
        Some(key)
    }

    /// Returns whether keys are left that were already due when [`pop`](Self::pop) was last called.
    pub(crate) fn is_behind(&self) -> bool {
        self.firsts[slot(self.turned)] != NONE
    }

    /// Returns whether the wheel is empty.
    pub(crate) const fn is_empty(&self) -> bool {
        self.entries == 0
    }
}

const fn slot(tick: Tick) -> usize {
    tick as usize % TICKS
}

/// The neighbours of a key in its list.
#[derive(Clone, Copy, Debug)]
struct Link {
    next: u32,
    previous: u32,
}

/// A link for each key, in chunks that never move.
#[derive(Debug, Default)]
struct Links(Vec<Box<[Link; Self::CHUNK]>>);

impl Links {
    const CHUNK: usize = 512;

    fn at(&mut self, key: u32) -> &mut Link {
        let (chunk, at) = (key as usize / Self::CHUNK, key as usize % Self::CHUNK);
        while self.0.len() <= chunk {
            let unused = Link {
                next: NONE,
                previous: NONE,
            };
            self.0.push(Box::new([unused; Self::CHUNK]));
        }
        &mut self.0[chunk][at]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use linerate_testkit::Rng;

    use super::*;

    fn turn_to(wheel: &mut Wheel, now: Tick) -> Vec<(Tick, u32)> {
        let due = std::iter::from_fn(|| wheel.pop(now).map(|key| (wheel.turned, key)));
        let mut due: Vec<_> = due.collect();
        due.sort_unstable();
        due
    }

    #[test]
    fn entries_come_at_their_tick() {
        let mut wheel = Wheel::new();
        assert_eq!(wheel.push(3, 30), 3);
        assert_eq!(wheel.push(1, 10), 1);
        assert_eq!(turn_to(&mut wheel, 2), [(1, 10)]);
        assert!(!wheel.is_empty());
        assert_eq!(turn_to(&mut wheel, 1_000), [(3, 30)]);
        assert!(wheel.is_empty());
    }

    #[test]
    fn the_past_is_the_next_tick_and_the_far_future_the_last() {
        let mut wheel = Wheel::new();
        turn_to(&mut wheel, 100);
        assert_eq!(wheel.push(7, 1), 101);
        assert_eq!(wheel.push(Tick::MAX, 2), 100 + TICKS as Tick - 1);
        assert_eq!(turn_to(&mut wheel, 700), [(101, 1), (611, 2)]);
    }

    #[test]
    fn equals_a_map_from_keys_to_ticks() {
        let mut rng = Rng::new(9);
        let mut wheel = Wheel::new();
        let mut map = BTreeMap::new();
        for now in 1..3_000 {
            for _ in 0..rng.below(20) {
                let key = rng.below(2_000) as u32;
                if let Some(tick) = map.remove(&key) {
                    wheel.remove(tick, key);
                }
                if rng.below(3) > 0 {
                    let tick = wheel.push(now + rng.below(600) as Tick, key);
                    map.insert(key, tick);
                }
            }
            assert_eq!(wheel.entries, map.len());
            let due = map.extract_if(.., |_, tick| *tick <= now);
            let due: Vec<_> = due.map(|(key, tick)| (tick, key)).collect();
            assert_eq!(turn_to(&mut wheel, now), due);
        }
    }

    #[test]
    fn a_deadline_has_passed_at_its_tick() {
        for millis in [0, 1, 249, 250, 251, 999] {
            let due = Duration::from_millis(millis);
            assert!(TICK * tick_after(due) >= due);
            assert!(TICK * tick_after(due) <= due + TICK);
        }
    }
}
