//! The attempts to renew something that has expired, by asking a backend.

use std::time::{Duration, Instant};

use super::{deadlines::until, identity::end_of};
use crate::{backend::Renewal, protocol::codes::Refusal};

/// How often a backend is asked until the grace period is over.
const ATTEMPTS: u8 = 5;

/// The attempts to renew something.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Renewals {
    failed: u8,
    is_asked: bool,
}

/// What follows an attempt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Next {
    /// It continues until then, if it expires again.
    Renewed(Option<Instant>),
    /// The backend is asked again then.
    Retry(Instant),
    Over,
}

impl Renewals {
    /// Starts an attempt at `now`. Returns when its time is over, or `None` if the time of the
    /// previous one is.
    pub(super) fn start(&mut self, now: Instant, grace: Duration) -> Option<Instant> {
        if self.is_asked {
            return None;
        }
        self.is_asked = true;
        let left = ATTEMPTS.saturating_sub(self.failed);
        Some(now + grace / u32::from(ATTEMPTS) * u32::from(left))
    }

    /// Ends an attempt.
    pub(super) fn finish(
        &mut self,
        now: Instant,
        grace: Duration,
        result: &Result<Renewal, Refusal>,
    ) -> Next {
        self.is_asked = false;
        match result {
            Ok(Renewal::Ended) => Next::Over,
            Ok(Renewal::Until(at)) => {
                *self = Self::default();
                Next::Renewed(end_of(now, at.map(until), Duration::ZERO))
            }
            Err(_) => {
                self.failed += 1;
                match self.failed < ATTEMPTS {
                    true => Next::Retry(now + grace / u32::from(ATTEMPTS)),
                    false => Next::Over,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::codes::ClientError;

    const GRACE: Duration = Duration::from_secs(10);

    const UNANSWERED: Result<Renewal, Refusal> = Err(Refusal::Error(ClientError::INTERNAL));

    #[test]
    fn backend_that_does_not_answer_is_asked_until_the_grace_period_is_over() {
        let (mut renewals, start) = (Renewals::default(), Instant::now());
        for attempt in 1..ATTEMPTS {
            let now = start + u32::from(attempt - 1) * GRACE / 5;
            assert_eq!(renewals.start(now, GRACE), Some(start + GRACE));
            let next = renewals.finish(now, GRACE, &UNANSWERED);
            assert_eq!(next, Next::Retry(now + GRACE / 5));
        }
        assert!(renewals.start(start, GRACE).is_some());
        assert_eq!(renewals.finish(start, GRACE, &UNANSWERED), Next::Over);
    }

    #[test]
    fn time_of_an_attempt_ends_with_the_grace_period() {
        let (mut renewals, start) = (Renewals::default(), Instant::now());
        assert_eq!(renewals.start(start, GRACE), Some(start + GRACE));
        assert_eq!(renewals.start(start + GRACE, GRACE), None);
    }

    #[test]
    fn renewal_begins_anew_or_ends() {
        let (mut renewals, now) = (Renewals::default(), Instant::now());
        renewals.start(now, GRACE);
        renewals.finish(now, GRACE, &UNANSWERED);
        renewals.start(now, GRACE);
        let forever = renewals.finish(now, GRACE, &Ok(Renewal::Until(None)));
        assert_eq!(forever, Next::Renewed(None));
        assert_eq!(renewals, Renewals::default());
        renewals.start(now, GRACE);
        assert_eq!(renewals.finish(now, GRACE, &Ok(Renewal::Ended)), Next::Over);
    }
}
