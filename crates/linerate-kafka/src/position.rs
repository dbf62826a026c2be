//! Positions of records.

use std::{fmt, str::FromStr};

/// The position of a record in Kafka.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Position {
    pub(crate) topic: String,
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    /// When the record was written, in milliseconds since 1970, or -1 if that is unknown.
    pub(crate) at: i64,
}

/// A text that is not a position.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct NotAPosition;

impl linerate_source::Position for Position {
    const TAG: &'static str = "offset";

    /// The time distinguishes records of a topic from those of an earlier one with the same name.
    fn includes(&self, other: &Self) -> bool {
        let is_same = self.partition == other.partition && self.topic == other.topic;
        is_same && other.offset <= self.offset && other.at <= self.at
    }
}

impl FromStr for Position {
    type Err = NotAPosition;

    /// Reads what [`Display`](fmt::Display) wrote.
    fn from_str(text: &str) -> Result<Self, NotAPosition> {
        let parts: Vec<_> = text.split(':').collect();
        let [topic, partition, offset, at] = parts[..] else {
            return Err(NotAPosition);
        };
        Ok(Self {
            topic: topic.to_owned(),
            partition: partition.parse().map_err(|_| NotAPosition)?,
            offset: offset.parse().map_err(|_| NotAPosition)?,
            at: at.parse().map_err(|_| NotAPosition)?,
        })
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            topic,
            partition,
            offset,
            at,
        } = self;
        write!(f, "{topic}:{partition}:{offset}:{at}")
    }
}

#[cfg(test)]
mod tests {
    use linerate_source::Position as _;

    use super::{NotAPosition, Position};

    #[test]
    fn positions_of_a_partition_have_the_order_of_offsets() {
        let position = |text: &str| text.parse::<Position>().unwrap();
        let newest = position("orders:3:20:1000");
        assert_eq!(newest.to_string(), "orders:3:20:1000");
        for earlier in ["orders:3:20:1000", "orders:3:19:1000", "orders:3:0:-1"] {
            assert!(newest.includes(&position(earlier)), "{earlier}");
        }
        for other in [
            "orders:3:21:1000",
            "orders:2:20:1000",
            "order:3:20:1000",
            "orders:3:1:1001",
        ] {
            assert!(!newest.includes(&position(other)), "{other}");
        }
        for wrong in [
            "",
            "orders",
            "orders:3:20",
            "orders:3:20:1000:1",
            "orders:x:20:1000",
        ] {
            assert_eq!(wrong.parse::<Position>(), Err(NotAPosition), "{wrong}");
        }
    }
}
