//! Timers that end batches.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    time::{Duration, Instant},
};

/// The ticks of all groups.
///
/// Groups of one channel with the same interval tick at the same time. Ticks of different channels
/// are spread over the interval, so that they do not all write at once.
#[derive(Debug)]
pub(crate) struct Ticks {
    queue: BinaryHeap<Reverse<(Instant, u32)>>,
    origin: Option<Instant>,
    state: u64,
}

impl Ticks {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            queue: BinaryHeap::new(),
            origin: None,
            state: seed,
        }
    }

    /// Returns the phase of a new channel's ticks, as a fraction of 2^64 of their interval.
    pub(crate) fn new_phase(&mut self, now: Instant) -> u64 {
        self.origin.get_or_insert(now);
        // SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Schedules the next tick of `group`, and returns its time.
    pub(crate) fn arm(
        &mut self,
        now: Instant,
        phase: u64,
        interval: Duration,
        group: u32,
    ) -> Instant {
        let origin = *self.origin.get_or_insert(now);
        let interval = interval.as_nanos().max(1);
        let offset = (interval * u128::from(phase)) >> 64;
        let elapsed = now.saturating_duration_since(origin).as_nanos();
        let until = interval - (elapsed + interval - offset) % interval;
        let at = now + Duration::from_nanos(until as u64);
        self.queue.push(Reverse((at, group)));
        at
    }

    /// Removes and returns the next tick if it is due.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<(Instant, u32)> {
        let Reverse((at, _)) = self.queue.peek()?;
        let is_due = *at <= now;
        is_due.then(|| self.queue.pop())?.map(|Reverse(tick)| tick)
    }

    /// Returns the time of the next tick.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.queue.peek().map(|Reverse((at, _))| *at)
    }

    /// Removes the ticks of groups that no longer exist once they outnumber the valid ones.
    pub(crate) fn tidy(&mut self, groups: usize, is_valid: impl Fn(Instant, u32) -> bool) {
        if self.queue.len() > 2 * groups + 64 {
            self.queue
                .retain(|Reverse((at, group))| is_valid(*at, *group));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Ticks;

    const INTERVAL: Duration = Duration::from_millis(200);

    #[test]
    fn a_tick_comes_within_the_interval_and_always_at_the_same_phase() {
        let start = Instant::now();
        let mut ticks = Ticks::new(7);
        let phase = ticks.new_phase(start);
        let first = ticks.arm(start, phase, INTERVAL, 0);
        for step in 0..5_000 {
            let now = start + Duration::from_micros(step * 317);
            let at = ticks.arm(now, phase, INTERVAL, 0);
            assert!(at > now && at <= now + INTERVAL);
            let since_first = (at - start).as_nanos().abs_diff((first - start).as_nanos());
            assert_eq!(since_first % INTERVAL.as_nanos(), 0);
        }
    }

    #[test]
    fn the_phases_of_channels_are_spread() {
        let start = Instant::now();
        let mut ticks = Ticks::new(1);
        let mut tenths = [0; 10];
        for _ in 0..10_000 {
            let phase = ticks.new_phase(start);
            let at = ticks.arm(start, phase, INTERVAL, 0);
            tenths[(at - start - Duration::from_nanos(1)).as_millis() as usize / 20] += 1;
        }
        assert!(
            tenths.iter().all(|count| (800..1_200).contains(count)),
            "{tenths:?}"
        );
    }

    #[test]
    fn phases_are_the_numbers_of_splitmix64() {
        let mut ticks = Ticks::new(1_234_567);
        let now = Instant::now();
        let phases: Vec<u64> = (0..3).map(|_| ticks.new_phase(now)).collect();
        // The output of the authors' own C program.
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        assert_eq!(phases, expected);
    }

    #[test]
    fn stale_ticks_are_removed_once_they_are_the_majority() {
        let now = Instant::now();
        let mut ticks = Ticks::new(1);
        for group in 0..84 {
            ticks.arm(now, 0, INTERVAL, group);
        }
        ticks.tidy(10, |_, group| group < 10);
        assert_eq!(
            ticks.queue.len(),
            84,
            "two ticks per group plus 64 are within bounds"
        );
        ticks.arm(now, 0, INTERVAL, 84);
        ticks.tidy(10, |_, group| group < 10);
        assert_eq!(ticks.queue.len(), 10);
    }
}
