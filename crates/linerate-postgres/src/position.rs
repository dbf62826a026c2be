//! Positions of publications: which change of which transaction each one is.

use std::fmt;

use crate::lsn::Lsn;

/// The tag with the name of the source of a publication.
pub(crate) const SOURCE_TAG: &str = "source";

/// The tag with the position of a publication in its source.
pub(crate) const POSITION_TAG: &str = "lsn";

/// The position of a change. Positions of a timeline have the order in which changes are read.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Position {
    /// The timeline of the server, which changes when a replica is promoted.
    pub(crate) timeline: u32,
    /// Where the transaction was committed.
    pub(crate) commit: Lsn,
    /// The number of the change in its transaction, counted from 0.
    pub(crate) index: u64,
}

impl Position {
    /// Reads what [`Display`](fmt::Display) wrote.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (timeline, rest) = text.split_once(':')?;
        let (commit, index) = rest.split_once(':')?;
        Some(Self {
            timeline: timeline.parse().ok()?,
            commit: commit.parse().ok()?,
            index: index.parse().ok()?,
        })
    }

    /// Returns whether a publication at this position proves that one at `other` was published
    /// before. Positions of different timelines prove nothing, because a promoted replica may have
    /// begun before the end of the old server's log.
    pub(crate) fn includes(&self, other: &Self) -> bool {
        self.timeline == other.timeline && other <= self
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.timeline, self.commit, self.index)
    }
}

#[cfg(test)]
mod tests {
    use super::Position;

    #[test]
    fn positions_have_the_order_of_commits() {
        let position = |text| Position::parse(text).unwrap();
        let newest = position("1:0/20:3");
        assert_eq!(newest.to_string(), "1:0/20:3");
        for earlier in ["1:0/20:3", "1:0/20:2", "1:0/1F:9"] {
            assert!(newest.includes(&position(earlier)), "{earlier}");
        }
        for later in ["1:0/20:4", "1:0/21:0", "2:0/1:0", "0:0/1:0"] {
            assert!(!newest.includes(&position(later)), "{later}");
        }
        for wrong in ["", "1", "1:0/20", "1:20:3", "a:0/20:3", "1:0/20:-1"] {
            assert_eq!(Position::parse(wrong), None, "{wrong}");
        }
    }
}
