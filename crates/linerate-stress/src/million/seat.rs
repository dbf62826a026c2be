//! What one subscriber has received, and whether it was told of everything that it has missed.

use serde::Deserialize;

/// A publication of the feed, or a message that publications were missed.
#[derive(Debug, Deserialize)]
pub(super) struct Received {
    /// The number of the publication in its channel, from 1.
    #[serde(default)]
    pub(super) n: u32,
    /// Its channel.
    #[serde(default)]
    pub(super) c: u32,
    /// When it was published, in nanoseconds since 1970.
    #[serde(default)]
    pub(super) at: u64,
    pub(super) gap: Option<serde::de::IgnoredAny>,
}

/// The state of one subscriber.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seat {
    /// The number of the last publication.
    pub(super) last: u32,
    /// True once the subscriber has been connected.
    pub(super) was_open: bool,
    /// True if the node has closed the connection, or has reported a gap, since the last
    /// publication: the subscriber knows that it may have missed some.
    was_told: bool,
}

/// What a publication says about those before it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Verdict {
    /// It is the next one.
    Next,
    /// It has been received before.
    Repeated,
    /// Some are missing, and the subscriber was told so.
    MissedTold(u32),
    /// Some are missing, and the subscriber was not told.
    LostUntold(u32),
}

impl Seat {
    /// Records that the subscriber was told that it may miss publications.
    pub(super) const fn tell(&mut self) {
        self.was_told = true;
    }

    /// Records a publication.
    pub(super) const fn receive(&mut self, number: u32) -> Verdict {
        if number <= self.last {
            return Verdict::Repeated;
        }
        let missing = number - self.last - 1;
        self.last = number;
        let was_told = std::mem::replace(&mut self.was_told, false);
        match (missing, was_told) {
            (0, _) => Verdict::Next,
            (_, true) => Verdict::MissedTold(missing),
            (_, false) => Verdict::LostUntold(missing),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Received, Seat, Verdict};

    #[test]
    fn what_is_missing_was_lost_unless_the_subscriber_was_told_since_the_last_publication() {
        let mut seat = Seat::default();
        assert_eq!(seat.receive(2), Verdict::LostUntold(1));
        assert_eq!(seat.receive(3), Verdict::Next);
        assert_eq!(seat.receive(3), Verdict::Repeated);
        seat.tell();
        assert_eq!(seat.receive(7), Verdict::MissedTold(3));
        assert_eq!(seat.receive(9), Verdict::LostUntold(1));
        seat.tell();
        assert_eq!(seat.receive(10), Verdict::Next);
        assert_eq!(seat.receive(12), Verdict::LostUntold(1));
    }

    #[test]
    fn a_gap_is_not_a_publication() {
        let gap = r#"{"gap":{"channel":"million-7","missed":3,"cause":"ring_evicted"}}"#;
        let gap: Received = serde_json::from_str(gap).unwrap();
        assert!(gap.gap.is_some());
        let publication: Received = serde_json::from_str(r#"{"c":7,"n":1,"at":5}"#).unwrap();
        assert!(publication.gap.is_none());
        assert_eq!((publication.c, publication.n, publication.at), (7, 1, 5));
    }
}
