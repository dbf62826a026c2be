//! Limits the rate of a client's commands.

use std::time::{Duration, Instant};

/// Counts a client's commands in windows of one second.
#[derive(Debug)]
pub(super) struct Budget {
    per_second_max: u32,
    second: Instant,
    spent: u32,
}

/// The decision on one command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Verdict {
    /// The client sent more than twice its limit within one second and is disconnected.
    Excessive,
    /// The command is executed.
    Granted,
    /// The command is refused; the client may try again later.
    Refused,
}

impl Budget {
    pub(super) fn new(per_second_max: u32, now: Instant) -> Self {
        Self {
            per_second_max,
            second: now,
            spent: 0,
        }
    }

    /// Counts a command and decides what happens to it.
    pub(super) fn spend(&mut self, now: Instant) -> Verdict {
        if now.duration_since(self.second) >= Duration::from_secs(1) {
            self.second = now;
            self.spent = 0;
        }
        self.spent = self.spent.saturating_add(1);
        match self.spent {
            spent if spent <= self.per_second_max => Verdict::Granted,
            spent if spent <= self.per_second_max.saturating_mul(2) => Verdict::Refused,
            _ => Verdict::Excessive,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_is_refused_and_then_excessive() {
        let start = Instant::now();
        let mut budget = Budget::new(3, start);
        let verdicts: Vec<_> = (0..7).map(|_| budget.spend(start)).collect();
        assert_eq!(verdicts[..3], [Verdict::Granted; 3]);
        assert_eq!(verdicts[3..6], [Verdict::Refused; 3]);
        assert_eq!(verdicts[6], Verdict::Excessive);
    }

    #[test]
    fn every_second_is_a_new_one() {
        let start = Instant::now();
        let mut budget = Budget::new(1, start);
        for second in 0..10 {
            let now = start + Duration::from_secs(second);
            assert_eq!(budget.spend(now), Verdict::Granted);
            let later = now + Duration::from_millis(999);
            assert_eq!(budget.spend(later), Verdict::Refused);
        }
    }
}
