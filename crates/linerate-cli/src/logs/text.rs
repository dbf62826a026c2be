//! Formatting of numbers, times and untrusted text.

use linerate_harness::table::{grouped, scaled};
use time::OffsetDateTime;

use crate::terminal;

/// Formats a number of things: `1 line`, `2 lines`.
pub(super) fn counted(count: u64, name: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {name}{plural}", grouped(count))
}

pub(super) fn percent(count: u64, total: u64) -> String {
    format!("{:.1} %", count as f64 * 100.0 / total.max(1) as f64)
}

/// Formats a number of bytes with three significant digits: `405 MB`.
pub(super) fn bytes(bytes: u64) -> String {
    scaled(
        bytes as f64,
        1_000.0,
        &["B", "kB", "MB", "GB", "TB", "PB", "EB"],
        ' ',
    )
}

/// Formats a duration with three significant digits: `1.25 ms`.
pub(super) fn microseconds(microseconds: u64) -> String {
    match microseconds {
        0..60_000_000 => scaled(microseconds as f64, 1_000.0, &["µs", "ms", "s"], ' '),
        _ => duration(microseconds / 1_000_000),
    }
}

/// Formats a time in UTC: `2021-01-22 01:47 UTC`. A time outside the calendar's range is shown in
/// seconds.
pub(super) fn moment(seconds: i64) -> String {
    match OffsetDateTime::from_unix_timestamp(seconds) {
        Ok(at) => format!(
            "{:04}-{:02}-{:02} {:02}:{:02} UTC",
            at.year(),
            u8::from(at.month()),
            at.day(),
            at.hour(),
            at.minute()
        ),
        Err(_) => format!("{seconds} s"),
    }
}

/// Formats a time in UTC to the second: `2021-01-22 01:47:05 UTC`.
pub(super) fn precise_moment(seconds: i64) -> String {
    let minute = moment(seconds);
    match minute.strip_suffix(" UTC") {
        Some(minute) => format!("{minute}:{:02} UTC", seconds.rem_euclid(60)),
        None => minute,
    }
}

/// Formats a duration in the largest unit that fits: `5 seconds`, `1 minute`, `2.5 hours`.
pub(super) fn duration(seconds: u64) -> String {
    let (unit, name) = match seconds {
        0..60 => (1, "second"),
        60..3_600 => (60, "minute"),
        3_600..86_400 => (3_600, "hour"),
        _ => (86_400, "day"),
    };
    let count = seconds as f64 / unit as f64;
    let plural = if seconds == unit { "" } else { "s" };
    // At most two decimals, without trailing zeros.
    let count = format!("{count:.2}");
    let count = count.trim_end_matches('0').trim_end_matches('.');
    format!("{count} {name}{plural}")
}

/// Shortens `text` to at most `chars` characters, ending with an ellipsis if it was longer.
pub(super) fn shortened(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        None => text.to_owned(),
        Some(_) => text
            .chars()
            .take(chars.saturating_sub(1))
            .chain(['…'])
            .collect(),
    }
}

/// Shortens `text` to at most `chars` characters by replacing its middle with an ellipsis, because
/// user agents and addresses differ at their ends.
pub(super) fn without_middle(text: &str, chars: usize) -> String {
    let len = text.chars().count();
    if len <= chars {
        return text.to_owned();
    }
    let kept = chars.saturating_sub(1);
    let start = text.chars().take(kept.div_ceil(2));
    let end = text.chars().skip(len - kept / 2);
    start.chain(['…']).chain(end).collect()
}

/// Returns text from a log as a single line, with control characters escaped.
pub(super) fn printable(text: &str) -> String {
    terminal::printable(text, &[])
}

#[cfg(test)]
mod tests {
    use super::{
        bytes, counted, duration, microseconds, moment, percent, precise_moment, shortened,
        without_middle,
    };

    #[test]
    fn numbers_times_and_durations_are_for_people() {
        assert_eq!(percent(1, 3), "33.3 %");
        assert_eq!(percent(0, 0), "0.0 %");
        assert_eq!(moment(1_611_280_025), "2021-01-22 01:47 UTC");
        assert_eq!(precise_moment(1_611_280_025), "2021-01-22 01:47:05 UTC");
        assert_eq!(precise_moment(i64::MAX), moment(i64::MAX));
        assert_eq!(counted(1, "line"), "1 line");
        assert_eq!(counted(0, "line"), "0 lines");
        assert_eq!(counted(1_000, "byte"), "1,000 bytes");
        assert_eq!(moment(i64::MAX), "9223372036854775807 s");
        assert_eq!(duration(1), "1 second");
        assert_eq!(duration(45), "45 seconds");
        assert_eq!(duration(60), "1 minute");
        assert_eq!(duration(9_000), "2.5 hours");
        assert_eq!(duration(86_400), "1 day");
    }

    #[test]
    fn sizes_and_short_times_have_three_digits() {
        for (number, expected) in [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1.00 kB"),
            (12_345, "12.3 kB"),
            (404_908_179, "405 MB"),
            (999_600, "1.00 MB"),
            (u64::MAX, "18.4 EB"),
        ] {
            assert_eq!(bytes(number), expected);
        }
        for (number, expected) in [
            (17, "17 µs"),
            (1_250, "1.25 ms"),
            (31_000_000, "31.0 s"),
            (90_000_000, "1.5 minutes"),
        ] {
            assert_eq!(microseconds(number), expected);
        }
    }

    #[test]
    fn middle_of_a_long_text_is_left_out() {
        assert_eq!(without_middle("größer", 6), "größer");
        assert_eq!(without_middle("größer", 5), "gr…er");
        assert_eq!(without_middle("größer", 4), "gr…r");
        assert_eq!(without_middle("größer", 0), "…");
    }

    #[test]
    fn what_is_too_long_ends_with_an_ellipsis() {
        assert_eq!(shortened("größer", 6), "größer");
        assert_eq!(shortened("größer", 5), "größ…");
        assert_eq!(shortened("größer", 0), "…");
    }
}
