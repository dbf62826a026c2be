//! The counters of one value.

/// The requests that have a value.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Tally {
    pub(super) requests: u64,
    /// Their total response bytes, capped at 2^64 - 1.
    pub(super) bytes: u64,
    /// The requests with a status of 400 to 499.
    pub(super) client_errors: u64,
    /// The requests with a status of 500 to 599.
    pub(super) server_errors: u64,
}

impl Tally {
    #[inline]
    pub(super) fn count(&mut self, status: u16, bytes_sent: u64) {
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(bytes_sent);
        self.client_errors += u64::from((400..500).contains(&status));
        self.server_errors += u64::from((500..600).contains(&status));
    }

    pub(super) fn errors(&self) -> u64 {
        self.client_errors + self.server_errors
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.client_errors += other.client_errors;
        self.server_errors += other.server_errors;
    }
}

#[cfg(test)]
mod tests {
    use super::Tally;

    #[test]
    fn errors_are_the_statuses_from_400_to_599() {
        let mut tally = Tally::default();
        for status in [0, 399, 400, 499, 500, 599, 600, 999] {
            tally.count(status, u64::MAX / 4);
        }
        let expected = Tally {
            requests: 8,
            bytes: u64::MAX,
            client_errors: 2,
            server_errors: 2,
        };
        assert_eq!((tally, tally.errors()), (expected, 4));
        let mut sum = tally;
        sum.add(&tally);
        assert_eq!((sum.requests, sum.bytes, sum.errors()), (16, u64::MAX, 8));
    }
}
