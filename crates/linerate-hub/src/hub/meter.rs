//! Counters of deliveries for each label and encoding.

use std::time::Duration;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use crate::EncodingId;

/// Upper bounds in seconds of the buckets of [`Deliveries::by_delay`] except the last. They range
/// from the time of one turn of a busy worker to delays that are no longer live.
pub const DELAY_BOUNDS_S: [f64; 16] = [
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0,
];

/// Upper bounds of the buckets of [`Deliveries::by_messages`] except the last, as numbers of
/// publications in a block.
pub const MESSAGES_BOUNDS: [u32; 12] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 4_096];

/// Counters of the deliveries to subscriptions with one label and encoding. None but
/// `subscriptions` ever decreases.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Deliveries {
    /// The [`SubscriptionOptions::label`](crate::SubscriptionOptions::label) of the subscriptions.
    pub label: u16,
    /// Their encoding.
    pub encoding: EncodingId,
    /// The number of subscriptions at the moment.
    pub subscriptions: u64,
    /// Publications delivered, counted once for each subscriber.
    pub messages: u64,
    /// Encoded bytes delivered, counted once for each subscriber.
    pub bytes: u64,
    /// Blocks delivered, counted once for each subscriber.
    pub blocks: u64,
    /// The sum over all blocks of the time that their oldest publication waited after its arrival.
    pub delay: Duration,
    /// A histogram of the blocks by that time. Each bucket counts the blocks that waited at most as
    /// long as its bound in [`DELAY_BOUNDS_S`] and longer than the previous bound. The last bucket
    /// counts those that exceed all bounds.
    pub by_delay: [u64; DELAY_BOUNDS_S.len() + 1],
    /// A histogram of the blocks by their number of publications, with the bounds
    /// [`MESSAGES_BOUNDS`].
    pub by_messages: [u64; MESSAGES_BOUNDS.len() + 1],
}

/// The deliveries of a hub.
///
/// Many subscribers receive the same block one after the other. Such a run costs two additions for
/// each of them; the remaining counters are updated once per run.
#[derive(Debug, Default)]
pub(crate) struct Meters {
    list: Vec<Deliveries>,
    places: HashMap<(u16, EncodingId), u32, RandomState>,
    run: Run,
}

/// Consecutive deliveries with the same counters, delay and number of publications.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    meter: u32,
    messages: u32,
    delay: Duration,
    blocks: u64,
    bytes: u64,
}

impl Meters {
    /// Returns the place of the counters of a label and an encoding, and adds them if they are new.
    /// Each entry takes half a kilobyte and is never removed.
    pub(crate) fn find_or_add(&mut self, label: u16, encoding: EncodingId) -> u32 {
        *self.places.entry((label, encoding)).or_insert_with(|| {
            self.list.push(Deliveries::new(label, encoding));
            (self.list.len() - 1) as u32
        })
    }

    pub(crate) fn joined(&mut self, meter: u32) {
        self.list[meter as usize].subscriptions += 1;
    }

    pub(crate) fn left(&mut self, meter: u32) {
        self.list[meter as usize].subscriptions -= 1;
    }

    /// Counts the delivery of a block to a subscriber.
    pub(crate) fn count(&mut self, meter: u32, delay: Duration, messages: u32, bytes: usize) {
        let run = &mut self.run;
        if (run.meter, run.messages, run.delay) != (meter, messages, delay) {
            run.settle(&mut self.list);
            *run = Run {
                meter,
                messages,
                delay,
                ..Run::default()
            };
        }
        run.blocks += 1;
        run.bytes += bytes as u64;
    }

    pub(crate) fn list(&self) -> Vec<Deliveries> {
        let mut list = self.list.clone();
        self.run.settle(&mut list);
        list
    }
}

impl Run {
    fn settle(&self, list: &mut [Deliveries]) {
        if self.blocks == 0 {
            return;
        }
        let meter = &mut list[self.meter as usize];
        meter.blocks += self.blocks;
        meter.bytes += self.bytes;
        meter.messages += self.blocks * u64::from(self.messages);
        let nanoseconds = self.delay.as_nanos() * u128::from(self.blocks);
        let nanoseconds = u64::try_from(nanoseconds).unwrap_or(u64::MAX);
        meter.delay = meter
            .delay
            .saturating_add(Duration::from_nanos(nanoseconds));
        let seconds = self.delay.as_secs_f64();
        let place = DELAY_BOUNDS_S.partition_point(|bound| *bound < seconds);
        meter.by_delay[place] += self.blocks;
        let place = MESSAGES_BOUNDS.partition_point(|bound| *bound < self.messages);
        meter.by_messages[place] += self.blocks;
    }
}

impl Deliveries {
    const fn new(label: u16, encoding: EncodingId) -> Self {
        Self {
            label,
            encoding,
            subscriptions: 0,
            messages: 0,
            bytes: 0,
            blocks: 0,
            delay: Duration::ZERO,
            by_delay: [0; DELAY_BOUNDS_S.len() + 1],
            by_messages: [0; MESSAGES_BOUNDS.len() + 1],
        }
    }

    /// Adds the counters of another hub for the same label and encoding.
    pub fn add(&mut self, other: &Self) {
        self.subscriptions += other.subscriptions;
        self.messages += other.messages;
        self.bytes += other.bytes;
        self.blocks += other.blocks;
        self.delay = self.delay.saturating_add(other.delay);
        for (count, more) in self.by_delay.iter_mut().zip(other.by_delay) {
            *count += more;
        }
        for (count, more) in self.by_messages.iter_mut().zip(other.by_messages) {
            *count += more;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{DELAY_BOUNDS_S, Deliveries, MESSAGES_BOUNDS, Meters};
    use crate::EncodingId;

    /// Returns the counters after blocks with these delays in microseconds and numbers of
    /// publications.
    fn counted(blocks: &[(u64, u32)]) -> Deliveries {
        let mut meters = Meters::default();
        let meter = meters.find_or_add(3, EncodingId(1));
        for (delay, messages) in blocks {
            meters.count(meter, Duration::from_micros(*delay), *messages, 100);
        }
        meters.list().remove(0)
    }

    #[test]
    fn a_block_is_counted_in_the_first_bucket_that_fits() {
        let counts = counted(&[(0, 1), (100, 2), (101, 3), (10_000_000, 4_096)]);
        assert_eq!(counts.by_delay[..2], [2, 1]);
        assert_eq!(counts.by_delay[DELAY_BOUNDS_S.len() - 1], 1);
        assert_eq!(counts.by_messages[..3], [1, 1, 1]);
        assert_eq!(counts.by_messages[MESSAGES_BOUNDS.len() - 1], 1);
        let beyond = counted(&[(10_000_001, 4_097)]);
        assert_eq!(beyond.by_delay[DELAY_BOUNDS_S.len()], 1);
        assert_eq!(beyond.by_messages[MESSAGES_BOUNDS.len()], 1);
    }

    #[test]
    fn runs_and_single_blocks_give_the_same_sums() {
        let run = counted(&[(200, 5), (200, 5), (300, 5), (300, 6)]);
        let mixed = counted(&[(300, 6), (200, 5), (300, 5), (200, 5)]);
        assert_eq!(run, mixed);
        assert_eq!((run.blocks, run.messages, run.bytes), (4, 21, 400));
        assert_eq!(run.delay, Duration::from_micros(1_000));
    }

    #[test]
    fn labels_and_encodings_are_counted_separately() {
        let mut meters = Meters::default();
        let places = [(0, 0), (0, 1), (1, 0)];
        let places = places.map(|(label, id)| meters.find_or_add(label, EncodingId(id)));
        assert_eq!(places, [0, 1, 2]);
        assert_eq!(meters.find_or_add(0, EncodingId(1)), 1);
        meters.count(1, Duration::ZERO, 1, 10);
        meters.count(2, Duration::ZERO, 1, 10);
        let blocks: Vec<u64> = meters.list().iter().map(|meter| meter.blocks).collect();
        assert_eq!(blocks, [0, 1, 1]);
        let mut sum = meters.list().remove(1);
        sum.add(&meters.list()[2]);
        assert_eq!((sum.label, sum.blocks), (0, 2));
        assert_eq!((sum.by_delay[0], sum.by_messages[0]), (2, 2));
    }

    #[test]
    fn deliveries_of_two_hubs_add_up() {
        let mut sum = counted(&[(200, 5), (300, 6)]);
        let mut other = counted(&[(400, 7)]);
        (sum.subscriptions, other.subscriptions) = (2, 3);
        sum.add(&other);
        let all = counted(&[(200, 5), (300, 6), (400, 7)]);
        assert_eq!(
            sum,
            Deliveries {
                subscriptions: 5,
                ..all
            }
        );
    }
}
