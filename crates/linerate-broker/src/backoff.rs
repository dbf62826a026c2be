//! Delays between attempts to connect to a server.

use std::time::Duration;

use rand::RngExt;

use crate::BrokerOptions;

/// A delay that doubles up to a maximum. Each delay is shortened at random by up to half, so that
/// nodes do not reconnect all at once.
#[derive(Debug)]
pub(crate) struct Backoff {
    min: Duration,
    max: Duration,
    next: Duration,
}

impl Backoff {
    pub(crate) fn new(options: &BrokerOptions) -> Self {
        Self {
            min: options.reconnect_delay_min,
            max: options.reconnect_delay_max,
            next: options.reconnect_delay_min,
        }
    }

    /// Returns the next delay.
    pub(crate) fn next(&mut self) -> Duration {
        let wait = self.next.min(self.max);
        self.next = wait.saturating_mul(2);
        wait.mul_f64(rand::rng().random_range(0.5..=1.0))
    }

    /// Starts again with the shortest delay.
    pub(crate) fn reset(&mut self) {
        self.next = self.min;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Backoff;
    use crate::BrokerOptions;

    #[test]
    fn waits_double_up_to_a_bound_and_vary() {
        let milliseconds = Duration::from_millis;
        let mut backoff = Backoff::new(&BrokerOptions {
            reconnect_delay_min: milliseconds(100),
            reconnect_delay_max: milliseconds(1_000),
            ..BrokerOptions::default()
        });
        for full in [100, 200, 400, 800, 1_000, 1_000] {
            let wait = backoff.next();
            assert!(wait >= milliseconds(full) / 2 && wait <= milliseconds(full));
        }
        backoff.reset();
        assert!(backoff.next() <= milliseconds(100));
    }
}
