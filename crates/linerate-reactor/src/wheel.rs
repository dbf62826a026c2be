//! Deadlines on a coarse clock: a wheel of ticks.

use std::time::Duration;

/// The length of a tick.
pub(crate) const TICK: Duration = Duration::from_millis(250);

/// Ticks that the wheel can look ahead, 128 s; a later deadline is looked at once before.
const TICKS: usize = 512;

/// Ticks since the worker started; enough for 34 years.
pub(crate) type Tick = u32;

/// Returns the tick that has begun at `now`.
pub(crate) fn tick_at(now: Duration) -> Tick {
    (now.as_millis() / TICK.as_millis()) as Tick
}

/// Returns the first tick at whose begin `due` has passed.
pub(crate) fn tick_after(due: Duration) -> Tick {
    tick_at(due).saturating_add(1)
}

/// What is to be looked at, at each of the next ticks.
#[derive(Debug)]
pub(crate) struct Wheel {
    slots: Vec<Vec<u64>>,
    turned: Tick,
    entries: usize,
}

impl Wheel {
    pub(crate) fn new() -> Self {
        Self {
            slots: vec![Vec::new(); TICKS],
            turned: 0,
            entries: 0,
        }
    }

    /// Enters `token` for `tick` or the nearest that can be had; returns which.
    pub(crate) fn push(&mut self, tick: Tick, token: u64) -> Tick {
        let tick = tick.clamp(self.turned + 1, self.turned + TICKS as Tick - 1);
        self.slots[tick as usize % TICKS].push(token);
        self.entries += 1;
        tick
    }

    /// Turns by one tick if that is not beyond `now`; moves what was entered for it to `due` and
    /// returns it.
    pub(crate) fn turn(&mut self, now: Tick, due: &mut Vec<u64>) -> Option<Tick> {
        if self.turned >= now {
            return None;
        }
        self.turned += 1;
        let slot = &mut self.slots[self.turned as usize % TICKS];
        self.entries -= slot.len();
        due.append(slot);
        Some(self.turned)
    }

    /// Returns whether nothing is entered.
    pub(crate) const fn is_empty(&self) -> bool {
        self.entries == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn_to(wheel: &mut Wheel, now: Tick) -> Vec<(Tick, u64)> {
        let mut all = Vec::new();
        let mut due = Vec::new();
        while let Some(tick) = wheel.turn(now, &mut due) {
            all.extend(due.drain(..).map(|token| (tick, token)));
        }
        all
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
    fn a_deadline_has_passed_at_its_tick() {
        for millis in [0, 1, 249, 250, 251, 999] {
            let due = Duration::from_millis(millis);
            assert!(TICK * tick_after(due) >= due);
            assert!(TICK * tick_after(due) <= due + TICK);
        }
    }
}
