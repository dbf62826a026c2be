//! Timestamps such as `22/Jan/2021:01:47:05 +0000`.

/// The length of a timestamp without its brackets.
pub(super) const LEN: usize = 26;

/// The offset of the seconds, `05` above.
const SECOND: usize = 18;
/// The offset of the zone with the space before it, ` +0000` above.
const ZONE: usize = 20;

/// Reads timestamps and remembers the minute of the last one.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    /// The last valid timestamp.
    last: [u8; LEN],
    /// The Unix time at which the minute of `last` begins.
    minute: i64,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            last: *b"01/Jan/1970:00:00:00 +0000",
            minute: 0,
        }
    }
}

impl Reader {
    /// Returns the seconds since 1970-01-01 UTC, or `None` if there is no such time or it is
    /// earlier.
    #[inline]
    pub(super) fn read(&mut self, text: &[u8; LEN]) -> Option<i64> {
        let second = second(text)?;
        if text[..SECOND] != self.last[..SECOND] || text[ZONE..] != self.last[ZONE..] {
            self.minute = minute(text)?;
            self.last = *text;
        }
        Some(self.minute + second)
    }

    /// Reads a time with a fraction instead of a zone, such as `22/Jan/2021:01:47:05.123`, from the
    /// start of `text`, and returns what follows it. It counts as UTC.
    pub(super) fn read_local<'a>(&mut self, text: &'a [u8]) -> Option<(i64, &'a [u8])> {
        let (time, rest) = text.split_first_chunk::<ZONE>()?;
        let fraction = rest.strip_prefix(b".")?;
        let mut stamp = *b"00/Jan/0000:00:00:00 +0000";
        stamp[..ZONE].copy_from_slice(time);
        let end = fraction.iter().position(|byte| !byte.is_ascii_digit());
        let rest = &fraction[end.unwrap_or(fraction.len())..];
        Some((self.read(&stamp)?, rest))
    }
}

/// Returns the seconds within the minute; 60 is a leap second.
#[inline]
fn second(text: &[u8; LEN]) -> Option<i64> {
    two_digits(text, SECOND).filter(|&second| second <= 60)
}

/// Returns the Unix time at which the minute begins.
fn minute(text: &[u8; LEN]) -> Option<i64> {
    let marks = [text[2], text[6], text[11], text[14], text[17], text[20]];
    if marks != *b"//::: " {
        return None;
    }
    let day = two_digits(text, 0)?;
    let month = month([text[3], text[4], text[5]])?;
    let year = two_digits(text, 7)? * 100 + two_digits(text, 9)?;
    let hour = two_digits(text, 12).filter(|&hour| hour < 24)?;
    let minute = two_digits(text, 15).filter(|&minute| minute < 60)?;
    if year < 1970 || day < 1 || day > days_in_month(year, month) {
        return None;
    }
    let minutes = (days_since_1970(year, month, day) * 24 + hour) * 60 + minute;
    Some((minutes - zone_minutes(text)?) * 60)
}

/// Returns the offset of the zone from UTC in minutes.
fn zone_minutes(text: &[u8; LEN]) -> Option<i64> {
    let hours = two_digits(text, 22).filter(|&hours| hours < 24)?;
    let minutes = two_digits(text, 24).filter(|&minutes| minutes < 60)?;
    match text[21] {
        b'+' => Some(hours * 60 + minutes),
        b'-' => Some(-(hours * 60 + minutes)),
        _ => None,
    }
}

#[inline]
fn two_digits(text: &[u8; LEN], at: usize) -> Option<i64> {
    let [tens, ones] = [text[at], text[at + 1]].map(|byte| byte.wrapping_sub(b'0'));
    (tens <= 9 && ones <= 9).then(|| i64::from(tens * 10 + ones))
}

/// Returns the month, counted from 0.
pub(super) fn month(name: [u8; 3]) -> Option<usize> {
    const NAMES: [&[u8; 3]; 12] = [
        b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov",
        b"Dec",
    ];
    NAMES.iter().position(|&month| *month == name)
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

pub(super) fn days_in_month(year: i64, month: usize) -> i64 {
    const DAYS: [i64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    DAYS[month] + i64::from(month == 1 && is_leap(year))
}

pub(super) fn days_since_1970(year: i64, month: usize, day: i64) -> i64 {
    /// The number of days from 1 January of the year 1 to 1 January 1970.
    const BEFORE_1970: i64 = 719_162;
    let past = year - 1;
    let years = past * 365 + past / 4 - past / 100 + past / 400;
    let months: i64 = (0..month).map(|month| days_in_month(year, month)).sum();
    years + months + day - 1 - BEFORE_1970
}

#[cfg(test)]
mod tests {
    use super::{LEN, Reader};

    fn read(text: &str) -> Option<i64> {
        let text: &[u8; LEN] = text.as_bytes().try_into().unwrap();
        Reader::default().read(text)
    }

    /// The expected values come from GNU `date -u -d … +%s`.
    #[test]
    fn timestamps_become_unix_seconds() {
        assert_eq!(read("01/Jan/1970:00:00:00 +0000"), Some(0));
        assert_eq!(read("22/Jan/2021:01:47:05 +0000"), Some(1_611_280_025));
        assert_eq!(read("22/Jan/2021:01:47:05 +0530"), Some(1_611_260_225));
        assert_eq!(read("22/Jan/2021:01:47:05 -0800"), Some(1_611_308_825));
        assert_eq!(read("29/Feb/2000:23:59:59 +0000"), Some(951_868_799));
        assert_eq!(read("31/Dec/2016:23:59:60 +0000"), Some(1_483_228_800));
        assert_eq!(read("31/Dec/9999:23:59:59 +0000"), Some(253_402_300_799));
        assert_eq!(read("01/Jan/1970:00:00:00 +0100"), Some(-3_600));
    }

    #[test]
    fn local_times_have_a_fraction_and_no_zone() {
        let mut reader = Reader::default();
        let mut read = |text: &'static str| reader.read_local(text.as_bytes());
        assert_eq!(
            read("22/Jan/2021:01:47:05.123] x"),
            Some((1_611_280_025, &b"] x"[..]))
        );
        assert_eq!(
            read("22/Jan/2021:01:47:05."),
            Some((1_611_280_025, &b""[..]))
        );
        for text in [
            "",
            "22/Jan/2021:01:47:05",
            "22/Jan/2021:01:47:05 +0000",
            "32/Jan/2021:01:47:05.123",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn impossible_times_are_refused() {
        for text in [
            "00/Jan/2021:00:00:00 +0000",
            "32/Jan/2021:00:00:00 +0000",
            "29/Feb/2021:00:00:00 +0000",
            "29/Feb/2100:00:00:00 +0000",
            "31/Apr/2021:00:00:00 +0000",
            "01/jan/2021:00:00:00 +0000",
            "01/Jan/1969:00:00:00 +0000",
            "01/Jan/2021:24:00:00 +0000",
            "01/Jan/2021:00:60:00 +0000",
            "01/Jan/2021:00:00:61 +0000",
            "01/Jan/2021:00:00:00 +2400",
            "01/Jan/2021:00:00:00 +0060",
            "01/Jan/2021:00:00:00 ?0000",
            "01/Jan/2021 00:00:00 +0000",
            "01-Jan-2021:00:00:00 +0000",
            "01/Jan/2021:00:00:0x +0000",
            "xx/Jan/2021:00:00:00 +0000",
            "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x30\x30\0\0\0\0\0\0",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn every_day_of_400_years_follows_the_last() {
        let mut expected = 0;
        for year in 1970..2370 {
            for month in 0..12 {
                for day in 1..=super::days_in_month(year, month) {
                    assert_eq!(super::days_since_1970(year, month, day), expected);
                    expected += 1;
                }
            }
        }
        // 400 years of the Gregorian calendar have 146,097 days.
        assert_eq!(expected, 146_097);
    }

    #[test]
    fn cached_minute_does_not_affect_other_results() {
        let mut reader = Reader::default();
        let texts = [
            "22/Jan/2021:01:47:05 +0000",
            "22/Jan/2021:01:47:06 +0000",
            "22/Jan/2021:01:47:06 +0100",
            "22/Jan/2021:01:48:06 +0100",
            "99/Jan/2021:01:48:06 +0100",
            "22/Jan/2021:01:48:07 +0100",
            "22/Jan/2021:01:48:99 +0100",
            "22/Jan/2021:01:48:08 +0000",
        ];
        for text in texts {
            let bytes: &[u8; LEN] = text.as_bytes().try_into().unwrap();
            assert_eq!(reader.read(bytes), read(text), "{text}");
        }
    }
}
