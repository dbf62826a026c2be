//! Rates of channels per second, computed from two samples of monotonic counters.

use std::{collections::HashMap, time::Duration};

use linerate_hub::ChannelName;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::node::{Node, Traffic};

/// Minimum age of the newest sample before another is taken.
const FRESH: Duration = Duration::from_secs(1);

/// Age at which the newest sample is too old to compute a rate.
const STALE: Duration = Duration::from_secs(10);

/// The rates and the newest sample.
#[derive(Debug, Default)]
pub(super) struct Rates(Mutex<Samples>);

#[derive(Debug, Default)]
struct Samples {
    newest: Option<Sample>,
    channels: HashMap<ChannelName, ChannelRates>,
}

#[derive(Debug)]
struct Sample {
    at: Instant,
    channels: HashMap<ChannelName, Traffic>,
}

/// The rates of a channel, per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ChannelRates {
    pub(super) publications: f64,
    pub(super) bytes: f64,
}

impl Rates {
    /// Takes another sample if the newest one is old enough.
    pub(super) fn refresh(&self, node: &Node, now: Instant) {
        let newest = self.0.lock().newest.as_ref().map(|sample| sample.at);
        if newest.is_some_and(|at| now < at + FRESH) {
            return;
        }
        let sample = Sample {
            at: now,
            channels: node.dispatcher.routes.traffic().into_iter().collect(),
        };
        self.0.lock().take(sample);
    }

    /// Returns the rates of a channel.
    pub(super) fn channel(&self, channel: &ChannelName) -> ChannelRates {
        self.0
            .lock()
            .channels
            .get(channel)
            .copied()
            .unwrap_or_default()
    }
}

impl Samples {
    fn take(&mut self, sample: Sample) {
        let previous = self.newest.take();
        let previous =
            previous.filter(|previous| previous.at < sample.at && sample.at < previous.at + STALE);
        self.channels = match &previous {
            None => HashMap::new(),
            Some(previous) => sample.channels_since(previous),
        };
        self.newest = Some(sample);
    }
}

impl Sample {
    fn channels_since(&self, previous: &Self) -> HashMap<ChannelName, ChannelRates> {
        let seconds = (self.at - previous.at).as_secs_f64();
        // A channel that is new in this sample may have counters from earlier subscribers.
        let rates = |(channel, now): (&ChannelName, &Traffic)| {
            let then = previous.channels.get(channel).unwrap_or(now);
            let rates = ChannelRates {
                publications: now.publications.saturating_sub(then.publications) as f64 / seconds,
                bytes: now.bytes.saturating_sub(then.bytes) as f64 / seconds,
            };
            (channel.clone(), rates)
        };
        self.channels.iter().map(rates).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashMap, time::Duration};

    use linerate_hub::ChannelName;
    use tokio::time::Instant;

    use super::{STALE, Sample, Samples, Traffic};

    fn sample(at: Instant, count: u64) -> Sample {
        let traffic = Traffic {
            publications: count,
            bytes: 10 * count,
        };
        Sample {
            at,
            channels: HashMap::from([(ChannelName::new("news").unwrap(), traffic)]),
        }
    }

    #[test]
    fn rates_are_what_was_added_in_between() {
        let (mut samples, start) = (Samples::default(), Instant::now());
        samples.take(sample(start, 100));
        assert!(samples.channels.is_empty());
        samples.take(sample(start + Duration::from_secs(2), 300));
        assert_eq!(samples.channels["news"].publications, 100.0);
        assert_eq!(samples.channels["news"].bytes, 1_000.0);
    }

    #[test]
    fn an_old_look_says_nothing_about_now() {
        let (mut samples, start) = (Samples::default(), Instant::now());
        samples.take(sample(start, 100));
        samples.take(sample(start + STALE, 300));
        assert!(samples.channels.is_empty());
    }

    #[test]
    fn counters_of_earlier_subscribers_are_not_a_rate() {
        let (mut samples, start) = (Samples::default(), Instant::now());
        let mut empty = sample(start, 0);
        empty.channels.clear();
        samples.take(empty);
        samples.take(sample(start + Duration::from_secs(1), 300));
        assert_eq!(samples.channels["news"].publications, 0.0);
    }
}
