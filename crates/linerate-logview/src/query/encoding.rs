//! The numbers that stand for the values of number fields, in conditions and in columns.

use super::field::Field;
use super::ranges::Ranges;

/// The number of three-digit statuses.
pub(crate) const STATUSES: usize = 1_000;

/// Converts a value of a field to the number that stands for it.
type ToNumber = fn(i128) -> u64;

/// Returns the range of values of a number field, and the function that converts them to the
/// numbers that stand for them.
pub(crate) fn numbers(field: Field) -> ((i128, i128), ToNumber) {
    match field {
        Field::DurationUs => ((0, i128::from(u64::MAX - 1)), |it| it as u64 + 1),
        Field::Status => ((0, STATUSES as i128 - 1), |it| it as u64),
        Field::Time => ((i64::MIN.into(), i64::MAX.into()), |it| {
            from_time(it as i64)
        }),
        _ => ((0, u64::MAX.into()), |it| it as u64),
    }
}

/// Returns the numbers of requests that have a duration, or of those that have none.
pub(crate) fn durations(are_there: bool) -> Ranges {
    match are_there {
        true => Ranges::between(1, u64::MAX),
        false => Ranges::between(0, 0),
    }
}

const SIGN: u64 = 1 << 63;

#[inline]
pub(crate) fn from_time(time: i64) -> u64 {
    time.cast_unsigned() ^ SIGN
}

#[inline]
pub(crate) fn to_time(number: u64) -> i64 {
    (number ^ SIGN) as i64
}
