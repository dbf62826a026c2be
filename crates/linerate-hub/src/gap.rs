//! What subscribers are told of publications that they do not get.

/// Publications are missing at this place of a subscription.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Gap {
    /// How many; `None` if nobody knows, or whether any.
    pub missed: Option<u64>,
    /// What happened.
    pub cause: GapCause,
}

/// Why publications are missing.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum GapCause {
    /// The stream of the channel began anew, so that nothing is known of the time between.
    EpochChanged,
    /// The link to the broker was cut.
    LinkLost,
    /// The offsets of two publications do not follow each other.
    OffsetHole,
    /// The broker dropped messages, because this node took them too slowly.
    Overflow,
    /// The subscriber was too slow: the channel's ring no longer holds what comes next for it.
    RingEvicted,
    /// The broker's stream was reset, or went back in time.
    StreamReset,
}

impl GapCause {
    /// All causes, in the order of their numbers.
    pub const ALL: [Self; 6] = [
        Self::EpochChanged,
        Self::LinkLost,
        Self::OffsetHole,
        Self::Overflow,
        Self::RingEvicted,
        Self::StreamReset,
    ];

    /// Returns its name in metrics and notices.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EpochChanged => "epoch_changed",
            Self::LinkLost => "link_lost",
            Self::OffsetHole => "offset_hole",
            Self::Overflow => "overflow",
            Self::RingEvicted => "ring_evicted",
            Self::StreamReset => "stream_reset",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::GapCause;

    #[test]
    fn causes_are_numbered_and_named_by_their_names() {
        for (number, cause) in GapCause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, number);
            let letters = cause.as_str().replace('_', "");
            assert_eq!(letters, format!("{cause:?}").to_lowercase());
        }
    }
}
