//! Times in formats other than that of `common` lines: ISO 8601, and numbers since 1970.

use super::number;
use super::timestamp::{days_in_month, days_since_1970};

/// A time that is read field by field.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CivilTime {
    pub(super) year: Option<i64>,
    /// Counted from 0.
    pub(super) month: Option<usize>,
    pub(super) day: Option<i64>,
    pub(super) hour: i64,
    pub(super) minute: i64,
    pub(super) second: i64,
    /// The half of the day if the clock has twelve hours; true for the afternoon.
    pub(super) is_afternoon: Option<bool>,
    /// The offset of its time zone from UTC, in minutes.
    pub(super) zone_minutes: i64,
}

impl CivilTime {
    /// Returns the seconds since 1970-01-01 UTC, or `None` if there is no such time or it is
    /// earlier.
    pub(super) fn unix_time(&self) -> Option<i64> {
        let (year, month, day) = (self.year?, self.month?, self.day?);
        let hour = match self.is_afternoon {
            Some(_) if !(1..=12).contains(&self.hour) => return None,
            Some(is_afternoon) => self.hour % 12 + i64::from(is_afternoon) * 12,
            None => self.hour,
        };
        let exists = (1970..=9999).contains(&year)
            && month < 12
            && (1..=days_in_month(year, month)).contains(&day)
            && hour < 24
            && self.minute < 60
            && self.second <= 60;
        if !exists {
            return None;
        }
        let minutes = (days_since_1970(year, month, day) * 24 + hour) * 60 + self.minute;
        Some((minutes - self.zone_minutes) * 60 + self.second)
    }
}

/// Reads `2021-01-22T01:47:05.123+01:00` from the start of `text`, and returns what follows it.
///
/// The `T` may be a space, and the hyphens may be slashes. The fraction and the zone may be
/// missing; the zone is UTC then.
pub(super) fn iso8601(text: &[u8]) -> Option<(i64, &[u8])> {
    let (head, rest) = text.split_first_chunk::<19>()?;
    let separators = [head[4], head[7], head[10], head[13], head[16]];
    if !matches!(
        separators,
        [b'-', b'-', b'T' | b't' | b' ', b':', b':'] | [b'/', b'/', b' ', b':', b':']
    ) {
        return None;
    }
    let two = |at: usize| digits(&head[at..at + 2]);
    let rest = without_fraction(rest);
    let (zone_minutes, rest) = zone(rest).unwrap_or((0, rest));
    let civil = CivilTime {
        year: digits(&head[..4]),
        month: usize::try_from(two(5)? - 1).ok(),
        day: two(8),
        hour: two(11)?,
        minute: two(14)?,
        second: two(17)?,
        is_afternoon: None,
        zone_minutes,
    };
    Some((civil.unix_time()?, rest))
}

/// Reads `Z`, `+0100` or `-05:30` from the start of `text`, and returns the offset from UTC in
/// minutes.
pub(super) fn zone(text: &[u8]) -> Option<(i64, &[u8])> {
    let (&sign, rest) = text.split_first()?;
    let sign = match sign {
        b'Z' | b'z' => return Some((0, rest)),
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, rest) = rest.split_first_chunk::<2>()?;
    let rest = rest.strip_prefix(b":").unwrap_or(rest);
    let (minutes, rest) = rest.split_first_chunk::<2>()?;
    let hours = digits(hours).filter(|&hours| hours < 24)?;
    let minutes = digits(minutes).filter(|&minutes| minutes < 60)?;
    Some((sign * (hours * 60 + minutes), rest))
}

/// Reads a number, possibly with a fraction, from the start of `text`. Its unit is 10^-`shift`
/// seconds since 1970.
pub(super) fn epoch(text: &[u8], shift: u32) -> Option<(i64, &[u8])> {
    let is_number = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    let end = text.iter().position(|byte| !is_number(byte));
    let (number, rest) = text.split_at(end.unwrap_or(text.len()));
    let seconds = number::scaled(number, 0)? / 10u64.checked_pow(shift)?;
    Some((in_the_calendar(seconds)?, rest))
}

/// Reads any time that a JSON member may contain: all of the above, and numbers whose magnitude
/// determines whether they are in seconds, milliseconds, microseconds or nanoseconds.
pub(super) fn any(text: &[u8]) -> Option<i64> {
    if let Some((time, b"")) = iso8601(text) {
        return Some(time);
    }
    let number = number::scaled(text, 0)?;
    // 10^11 is the year 5138 in seconds but 1973 in milliseconds, and so on.
    let divisor = match number {
        0..100_000_000_000 => 1,
        100_000_000_000..100_000_000_000_000 => 1_000,
        100_000_000_000_000..100_000_000_000_000_000 => 1_000_000,
        _ => 1_000_000_000,
    };
    in_the_calendar(number / divisor)
}

/// Returns `None` for times after the year 9999.
fn in_the_calendar(seconds: u64) -> Option<i64> {
    const END: u64 = 253_402_300_800;
    i64::try_from(seconds).ok().filter(|_| seconds < END)
}

fn without_fraction(text: &[u8]) -> &[u8] {
    let [b'.' | b',', digits @ ..] = text else {
        return text;
    };
    match digits.iter().position(|byte| !byte.is_ascii_digit()) {
        Some(end) => &digits[end..],
        None => b"",
    }
}

fn digits(text: &[u8]) -> Option<i64> {
    number::decimal(text)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::{CivilTime, any, epoch, iso8601};

    /// The expected values come from GNU `date -u -d … +%s`.
    #[test]
    fn iso_8601_is_parsed_with_and_without_fraction_and_zone() {
        for (text, expected, rest) in [
            ("2021-01-22T01:47:05+00:00", 1_611_280_025, ""),
            ("2021-01-22T01:47:05Z\"", 1_611_280_025, "\""),
            ("2021-01-22T01:47:05.881Z host", 1_611_280_025, " host"),
            ("2021-01-22 01:47:05 200", 1_611_280_025, " 200"),
            ("2021-01-22 01:47:05,123", 1_611_280_025, ""),
            ("2021-01-22T01:47:05+0530", 1_611_260_225, ""),
            ("2021-01-22T01:47:05.000000-08:00]", 1_611_308_825, "]"),
            ("2021/01/22 01:47:05", 1_611_280_025, ""),
            ("2000-02-29T23:59:59Z", 951_868_799, ""),
        ] {
            let read = iso8601(text.as_bytes());
            assert_eq!(read, Some((expected, rest.as_bytes())), "{text}");
        }
    }

    #[test]
    fn invalid_times_are_refused() {
        for text in [
            "",
            "2021-01-22",
            "2021-01-22T01:47",
            "2021-13-22T01:47:05Z",
            "2021-00-22T01:47:05Z",
            "2021-02-29T01:47:05Z",
            "2021-01-22T24:47:05Z",
            "2021-01-22T01:60:05Z",
            "2021-01-22T01:47:61Z",
            "1969-12-31T23:59:59Z",
            "2021-01/22T01:47:05Z",
            "20x1-01-22T01:47:05Z",
        ] {
            assert_eq!(iso8601(text.as_bytes()), None, "{text}");
        }
        assert_eq!(epoch(b"", 0), None);
        assert_eq!(epoch(b"-5", 0), None);
        assert_eq!(epoch(b"253402300800", 0), None);
        assert_eq!(any(b"yesterday"), None);
        assert_eq!(any(b"2021-01-22T01:47:05Z and more"), None);
    }

    #[test]
    fn units_of_numeric_times_are_inferred_from_their_size() {
        assert_eq!(
            epoch(b"1611280025.999 x", 0),
            Some((1_611_280_025, &b" x"[..]))
        );
        assert_eq!(epoch(b"1611280025999", 3), Some((1_611_280_025, &b""[..])));
        for text in [
            "1611280025",
            "1611280025.123",
            "1611280025123",
            "1611280025123456",
            "1611280025123456789",
            "1.611280025123e9",
        ] {
            assert_eq!(any(text.as_bytes()), Some(1_611_280_025), "{text}");
        }
    }

    #[test]
    fn twelve_hour_times_require_am_or_pm() {
        let at = |hour, is_afternoon| {
            let day = CivilTime {
                year: Some(1970),
                month: Some(0),
                day: Some(1),
                hour,
                is_afternoon,
                ..CivilTime::default()
            };
            day.unix_time()
        };
        assert_eq!(at(12, Some(false)), Some(0));
        assert_eq!(at(12, Some(true)), Some(43_200));
        assert_eq!(at(11, Some(true)), Some(82_800));
        assert_eq!(at(13, Some(true)), None);
        assert_eq!(at(0, Some(false)), None);
    }
}
