//! Applies deltas.

use super::{DIGITS, checksum};

/// The reason why a delta cannot be applied.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// The target does not have the checksum that the delta names, so the delta is for another
    /// source.
    #[error("delta has checksum {expected}, and its target {actual}; it is for another source")]
    Checksum {
        /// The checksum in the delta.
        expected: u32,
        /// The checksum of the target.
        actual: u32,
    },
    /// The delta does not have the form of one.
    #[error("delta is malformed at byte {at}")]
    Malformed {
        /// The offset in the delta.
        at: usize,
    },
    /// The target is longer or shorter than the delta names, or longer than allowed.
    #[error("delta makes {bytes} bytes instead of {expected}; at most {bytes_max} are allowed")]
    Length {
        /// The number of bytes that the delta makes, as far as they were made.
        bytes: usize,
        /// The number of bytes that it names.
        expected: usize,
        /// The limit in bytes.
        bytes_max: usize,
    },
}

/// Returns what a delta makes from `source`, at most `bytes_max` bytes.
///
/// # Errors
/// The delta is malformed, is for another source, or makes more than `bytes_max` bytes.
pub fn apply(source: &[u8], delta: &[u8], bytes_max: usize) -> Result<Vec<u8>, ApplyError> {
    let mut reader = Reader { delta, at: 0 };
    let expected = reader.number()? as usize;
    reader.expect(b'\n')?;
    let wrong_length = |bytes| ApplyError::Length {
        bytes,
        expected,
        bytes_max,
    };
    let mut target = Vec::new();
    loop {
        if target.len() > expected.min(bytes_max) {
            return Err(wrong_length(target.len()));
        }
        let number = reader.number()?;
        match reader.byte()? {
            b'@' => {
                let from = reader.number()? as usize;
                reader.expect(b',')?;
                let copied = source
                    .get(from..)
                    .and_then(|rest| rest.get(..number as usize));
                target.extend_from_slice(copied.ok_or(reader.malformed())?);
            }
            b':' => target.extend_from_slice(reader.bytes(number as usize)?),
            b';' if target.len() != expected => return Err(wrong_length(target.len())),
            b';' => {
                let (expected, actual) = (number, checksum(&target));
                let is_right = expected == actual;
                return is_right
                    .then_some(target)
                    .ok_or(ApplyError::Checksum { expected, actual });
            }
            _ => return Err(reader.malformed()),
        }
    }
}

struct Reader<'a> {
    delta: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Result<u8, ApplyError> {
        let byte = self.delta.get(self.at).copied();
        self.at += 1;
        byte.ok_or(self.malformed())
    }

    fn bytes(&mut self, count: usize) -> Result<&'a [u8], ApplyError> {
        let rest = self.delta.get(self.at..).and_then(|rest| rest.get(..count));
        self.at = self.at.saturating_add(count);
        rest.ok_or(self.malformed())
    }

    fn expect(&mut self, expected: u8) -> Result<(), ApplyError> {
        match self.byte()? == expected {
            true => Ok(()),
            false => Err(self.malformed()),
        }
    }

    /// Reads a number of at most 32 bits.
    fn number(&mut self) -> Result<u32, ApplyError> {
        let mut number: Option<u32> = None;
        while let Some(byte) = self.delta.get(self.at)
            && let Some(digit) = DIGITS.iter().position(|digit| digit == byte)
        {
            let shifted = number.unwrap_or(0).checked_mul(64);
            number = Some(shifted.ok_or(self.malformed())? | digit as u32);
            self.at += 1;
        }
        number.ok_or(self.malformed())
    }

    const fn malformed(&self) -> ApplyError {
        ApplyError::Malformed { at: self.at }
    }
}
