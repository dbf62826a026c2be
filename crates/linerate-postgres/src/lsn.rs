//! Positions in the write-ahead log of Postgres.

use std::{fmt, num::ParseIntError, str::FromStr};

/// A log sequence number: a byte position in the write-ahead log, as in `16/B374D848`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Lsn(pub u64);

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 as u32)
    }
}

impl FromStr for Lsn {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        // A text without a slash fails, because the empty half is not a number.
        let (high, low) = text.split_once('/').unwrap_or((text, ""));
        let half = |text: &str| u32::from_str_radix(text, 16).map(u64::from);
        Ok(Self(half(high)? << 32 | half(low)?))
    }
}

#[cfg(test)]
mod tests {
    use super::Lsn;

    #[test]
    fn is_written_and_read_as_postgres_does() {
        for (number, text) in [(0, "0/0"), (0x16_B374_D848, "16/B374D848"), (7, "0/7")] {
            assert_eq!(Lsn(number).to_string(), text);
            assert_eq!(text.parse(), Ok(Lsn(number)));
        }
        for wrong in ["", "16", "/", "0/G", "1/2/3", "100000000/0"] {
            assert!(wrong.parse::<Lsn>().is_err(), "{wrong}");
        }
    }
}
