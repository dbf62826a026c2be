//! The fill level of the budget: three states with hysteresis.

use std::fmt;

/// The fill level of the budget.
///
/// The enum is exhaustive on purpose, because callers `match` on it to decide what to do.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
pub enum State {
    /// Enough bytes are left.
    Normal,
    /// New connections and uploads are refused, and pools shrink. Entered at 85 %, left below 75 %.
    Tight,
    /// The most expensive consumers are closed. Entered at 95 %, left below 90 %.
    Critical,
}

impl State {
    /// The budget becomes tight when at least this percentage is in use.
    pub const TIGHT_PERCENT: u64 = 85;

    /// The budget becomes critical when at least this percentage is in use.
    pub const CRITICAL_PERCENT: u64 = 95;

    /// The budget becomes normal again when less than this percentage is in use.
    pub(crate) const NORMAL_BELOW_PERCENT: u64 = 75;

    /// The budget is no longer critical when less than this percentage is in use.
    const TIGHT_BELOW_PERCENT: u64 = 90;

    /// Returns the name that metrics and logs use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Tight => "tight",
            Self::Critical => "critical",
        }
    }

    /// Returns the state that follows this one when `used` of `limit` bytes are in use.
    pub(crate) fn after(self, used: u64, limit: u64) -> Self {
        let reaches = |percent| used >= percent_of(limit, percent);
        if reaches(Self::CRITICAL_PERCENT)
            || (self == Self::Critical && reaches(Self::TIGHT_BELOW_PERCENT))
        {
            Self::Critical
        } else if reaches(Self::TIGHT_PERCENT)
            || (self >= Self::Tight && reaches(Self::NORMAL_BELOW_PERCENT))
        {
            Self::Tight
        } else {
            Self::Normal
        }
    }

    pub(crate) fn from_byte(byte: u8) -> Self {
        match byte {
            0 => Self::Normal,
            1 => Self::Tight,
            _ => Self::Critical,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Returns `percent` percent of `limit`. Does not overflow, even for the largest limit.
pub(crate) fn percent_of(limit: u64, percent: u64) -> u64 {
    (limit / 100)
        .saturating_mul(percent)
        .saturating_add(limit % 100 * percent / 100)
}

#[cfg(test)]
mod tests {
    use super::{State, percent_of};

    #[test]
    fn states_are_left_later_than_they_are_entered() {
        let mut state = State::Normal;
        let way = [
            (84, State::Normal),
            (85, State::Tight),
            (94, State::Tight),
            (95, State::Critical),
            (90, State::Critical),
            (89, State::Tight),
            (95, State::Critical),
            (75, State::Tight),
            (74, State::Normal),
            (100, State::Critical),
            (0, State::Normal),
        ];
        for (used, expected) in way {
            state = state.after(used, 100);
            assert_eq!(state, expected, "at {used}");
        }
    }

    #[test]
    fn percentages_of_the_largest_limit_do_not_overflow() {
        assert_eq!(percent_of(u64::MAX, 100), u64::MAX);
        assert_eq!(percent_of(1 << 20, 50), 1 << 19);
        assert_eq!(percent_of(7, 85), 5);
    }
}
