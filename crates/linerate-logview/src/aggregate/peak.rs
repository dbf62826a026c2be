//! The most requests of an address within one clock minute.

const MINUTE_SECONDS: i64 = 60;

/// Counts the requests of the present minute and of the one before, because most servers write a
/// line when a request ends, but some record when it began.
///
/// A line outside these two minutes starts a new minute, as the first line of another file does.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Peak {
    /// The present minute, in minutes since 1970-01-01 UTC.
    minute: i64,
    minute_of_most: i64,
    /// The requests of the present minute. 0 only if nothing was counted yet.
    present: u32,
    before: u32,
    most: u32,
}

impl Peak {
    #[inline]
    pub(super) fn count(&mut self, time: i64) {
        let minute = time.div_euclid(MINUTE_SECONDS);
        let requests = if minute == self.minute {
            &mut self.present
        } else if minute == self.minute - 1 && self.present > 0 {
            &mut self.before
        } else {
            let follows = minute == self.minute + 1;
            self.before = if follows { self.present } else { 0 };
            self.minute = minute;
            self.present = 0;
            &mut self.present
        };
        *requests = requests.saturating_add(1);
        if *requests > self.most {
            self.most = *requests;
            self.minute_of_most = minute;
        }
    }

    /// Returns the highest number of requests in a minute, and when that minute began.
    pub(super) fn most(&self) -> (u64, i64) {
        (self.most.into(), self.minute_of_most * MINUTE_SECONDS)
    }
}

#[cfg(test)]
mod tests {
    use super::Peak;

    fn most(times: &[i64]) -> (u64, i64) {
        let mut peak = Peak::default();
        times.iter().for_each(|&time| peak.count(time));
        peak.most()
    }

    #[test]
    fn peak_is_the_first_minute_with_the_most_requests() {
        assert_eq!(most(&[]), (0, 0));
        assert_eq!(most(&[-1]), (1, -60));
        assert_eq!(most(&[0, 59, 60, 61, 62, 119, 120, 500]), (4, 60));
        assert_eq!(most(&[60, 119, 120, 179]), (2, 60));
    }

    #[test]
    fn lines_up_to_a_minute_late_are_counted_in_their_minute() {
        assert_eq!(most(&[100, 120, 110, 121, 119]), (3, 60));
        assert_eq!(most(&[600, 60, 60, 600]), (2, 60));
        assert_eq!(most(&[60, 180, 120, 130, 190]), (2, 120));
    }
}
