//! Positions of publications: which change of which transaction each one is.

use std::{fmt, str::FromStr};

use crate::lsn::Lsn;

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

/// A text that is not a position.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct NotAPosition;

impl FromStr for Position {
    type Err = NotAPosition;

    /// Reads what [`Display`](fmt::Display) wrote.
    fn from_str(text: &str) -> Result<Self, NotAPosition> {
        let (timeline, rest) = text.split_once(':').ok_or(NotAPosition)?;
        let (commit, index) = rest.split_once(':').ok_or(NotAPosition)?;
        Ok(Self {
            timeline: timeline.parse().map_err(|_| NotAPosition)?,
            commit: commit.parse().map_err(|_| NotAPosition)?,
            index: index.parse().map_err(|_| NotAPosition)?,
        })
    }
}

impl linerate_source::Position for Position {
    const TAG: &'static str = "lsn";

    /// Positions of different timelines prove nothing, because a promoted replica may have begun
    /// before the end of the old server's log.
    fn includes(&self, other: &Self) -> bool {
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
    use linerate_source::Position as _;

    use super::{NotAPosition, Position};

    #[test]
    fn positions_have_the_order_of_commits() {
        let position = |text: &str| text.parse::<Position>().unwrap();
        let newest = position("1:0/20:3");
        assert_eq!(newest.to_string(), "1:0/20:3");
        for earlier in ["1:0/20:3", "1:0/20:2", "1:0/1F:9"] {
            assert!(newest.includes(&position(earlier)), "{earlier}");
        }
        for later in ["1:0/20:4", "1:0/21:0", "2:0/1:0", "0:0/1:0"] {
            assert!(!newest.includes(&position(later)), "{later}");
        }
        for wrong in ["", "1", "1:0/20", "1:20:3", "a:0/20:3", "1:0/20:-1"] {
            assert_eq!(wrong.parse::<Position>(), Err(NotAPosition), "{wrong}");
        }
    }
}
