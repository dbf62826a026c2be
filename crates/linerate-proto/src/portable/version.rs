//! The version of the format.

/// The version of the format of exported states.
///
/// Two processes agree on one before anything is exported:
///
/// ```
/// use linerate_proto::portable::{Version, VersionError};
///
/// // What each side sends to the other.
/// let (oldest, newest) = (Version::OLDEST.number(), Version::NEWEST.number());
/// assert_eq!(Version::negotiate(oldest, newest)?, Version::NEWEST);
///
/// let error = Version::negotiate(7, 9).unwrap_err().to_string();
/// assert_eq!(error, "peer has state versions 7 to 9, and this program has 1 to 1");
/// # Ok::<_, VersionError>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Version(u16);

impl Version {
    /// The oldest version that this library reads and writes.
    pub const OLDEST: Self = Self(1);
    /// The newest version that this library reads and writes.
    pub const NEWEST: Self = Self(1);

    /// Returns the newest version that both sides have, given the peer's oldest and newest.
    ///
    /// # Errors
    /// Fails if there is none.
    pub fn negotiate(oldest: u16, newest: u16) -> Result<Self, VersionError> {
        let common = Self(newest.min(Self::NEWEST.0));
        if common.0 < oldest.max(Self::OLDEST.0) {
            return Err(VersionError { oldest, newest });
        }
        Ok(common)
    }

    /// Returns the number.
    pub const fn number(self) -> u16 {
        self.0
    }

    /// Returns the version with this number if this library has it.
    pub(super) fn known(number: u16) -> Option<Self> {
        let version = Self(number);
        (Self::OLDEST..=Self::NEWEST)
            .contains(&version)
            .then_some(version)
    }
}

/// The error returned when two processes have no version of the format in common.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "peer has state versions {oldest} to {newest}, and this program has {} to {}",
    Version::OLDEST.0,
    Version::NEWEST.0
)]
pub struct VersionError {
    oldest: u16,
    newest: u16,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_common_version_is_used() {
        let (oldest, newest) = (Version::OLDEST.0, Version::NEWEST.0);
        assert_eq!(Version::negotiate(0, u16::MAX), Ok(Version::NEWEST));
        assert_eq!(Version::negotiate(newest, newest + 1), Ok(Version::NEWEST));
        assert_eq!(Version::negotiate(0, oldest), Ok(Version::OLDEST));
        for (oldest, newest) in [
            (newest + 1, u16::MAX),
            (0, oldest - 1),
            (newest, oldest - 1),
        ] {
            let error = VersionError { oldest, newest };
            assert_eq!(Version::negotiate(oldest, newest), Err(error));
        }
    }
}
