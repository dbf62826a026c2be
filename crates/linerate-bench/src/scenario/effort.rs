//! Efforts: how often and how long each contender is measured.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::load::Budget;

/// How much time a run may take.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Effort {
    /// A first look: few cells, few rounds.
    Quick,
    /// The effort of published figures: all cells.
    Standard,
    /// For differences of a few per cent.
    Thorough,
}

impl Effort {
    /// All efforts, in ascending order.
    pub const ALL: [Self; 3] = [Self::Quick, Self::Standard, Self::Thorough];

    /// Returns the name of the effort on the command line and in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Standard => "standard",
            Self::Thorough => "thorough",
        }
    }

    /// Returns how often and how long the effort measures.
    pub fn budgets(self) -> Budgets {
        let (rounds, warm_up_ms, measured_ms) = match self {
            Self::Quick => (3, 25, 100),
            Self::Standard => (5, 30, 150),
            Self::Thorough => (11, 100, 1_000),
        };
        Budgets {
            rounds,
            each: Budget {
                warm_up: Duration::from_millis(warm_up_ms),
                measured: Duration::from_millis(measured_ms),
                silence_max: Duration::from_secs(10),
            },
        }
    }
}

impl fmt::Display for Effort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Effort {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let mut efforts = Self::ALL.into_iter();
        efforts
            .find(|effort| effort.name() == name)
            .ok_or_else(|| format!("unknown effort {name:?}; use quick, standard or thorough"))
    }
}

/// How often and how long a run measures each contender in each cell.
#[derive(Clone, Copy, Debug)]
pub struct Budgets {
    /// Number of rounds. The median of them counts.
    pub rounds: u32,
    /// Durations of each measurement.
    pub each: Budget,
}
