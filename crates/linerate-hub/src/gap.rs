//! Gaps: the notice to a subscriber that publications are missing.

/// A place in a subscription's stream where publications are missing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Gap {
    /// The number of missing publications, or `None` if it is unknown. It may be zero then.
    pub missed: Option<u64>,
    /// Why they are missing.
    pub cause: GapCause,
}

/// Why publications are missing.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum GapCause {
    /// The channel's stream was started again under a new epoch, so its offsets cannot be compared
    /// with earlier ones.
    EpochChanged,
    /// The connection to the broker was lost.
    LinkLost,
    /// The offsets of two successive publications are not consecutive.
    OffsetHole,
    /// The broker dropped messages because this node read them too slowly.
    Overflow,
    /// The subscriber was too slow: the channel's ring no longer holds its next publication.
    RingEvicted,
    /// The broker's stream was reset or restored to an earlier state.
    StreamReset,
}

impl GapCause {
    /// All causes, in the order of their discriminants.
    pub const ALL: [Self; 6] = [
        Self::EpochChanged,
        Self::LinkLost,
        Self::OffsetHole,
        Self::Overflow,
        Self::RingEvicted,
        Self::StreamReset,
    ];

    /// Returns its name in metrics and in notices to clients.
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
    fn causes_have_numbers_and_names() {
        for (number, cause) in GapCause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, number);
            let letters = cause.as_str().replace('_', "");
            assert_eq!(letters, format!("{cause:?}").to_lowercase());
        }
    }
}
