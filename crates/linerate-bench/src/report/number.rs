//! Numbers for people: three digits, a prefix, a unit.

use linerate_harness::table::{self, grouped};

/// Shown in place of a missing figure.
pub(crate) const NONE: &str = "–";

/// Formats a figure with three significant digits and a decimal prefix: `6.06 M`, `225 k`, `12.0`.
/// The prefix follows a narrow no-break space.
pub(crate) fn si(figure: f64) -> String {
    scaled(figure, 1_000.0, &["", "k", "M", "G", "T"])
}

/// Formats a number of bytes with three significant digits and a binary prefix: `1.50 KiB`.
pub(crate) fn bytes(figure: f64) -> String {
    scaled(figure, 1_024.0, &["B", "KiB", "MiB", "GiB", "TiB"])
}

/// Formats a number of bytes that was chosen by a person, without superfluous digits: `64 KiB`.
pub(crate) fn size(figure: u64) -> String {
    let prefixes = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let whole = |(step, _): &(u64, &str)| figure >= *step && figure.is_multiple_of(*step);
    match prefixes.into_iter().find(whole) {
        Some((step, prefix)) => format!("{}\u{202f}{prefix}", figure / step),
        None => format!("{}\u{202f}B", grouped(figure)),
    }
}

/// Formats a number of bytes with three significant digits and a decimal prefix: `1.50 GB`.
pub(crate) fn decimal_bytes(figure: f64) -> String {
    scaled(figure, 1_000.0, &["B", "kB", "MB", "GB", "TB"])
}

/// Formats a number of microseconds as `950 ns`, `12.3 µs`, `4.56 ms` or `7.89 s`.
pub(crate) fn duration_us(figure: f64) -> String {
    scaled(figure * 1_000.0, 1_000.0, &["ns", "µs", "ms", "s"])
}

/// Formats a ratio with two or three significant digits: `0.012`, `0.55`, `1.45`, `12.3`.
pub(crate) fn ratio(figure: f64) -> String {
    let decimals = match figure.abs() {
        it if it < 0.095 => 3,
        it if it < 9.995 => 2,
        it if it < 99.95 => 1,
        _ => 0,
    };
    format!("{figure:.decimals$}")
}

/// Formats a share as a percentage: `0.05` becomes `5.0 %`.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let decimals = usize::from(percent.abs() < 9.95);
    format!("{percent:.decimals$}\u{a0}%")
}

/// Formats a count with its noun: `1 cell`, `2 cells`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(count as u64))
}

/// Formats a figure as [`table::scaled`] does; one that is not finite is missing.
fn scaled(figure: f64, step: f64, units: &[&str]) -> String {
    match figure.is_finite() {
        true => table::scaled(figure, step, units, '\u{202f}'),
        false => NONE.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::{bytes, counted, decimal_bytes, duration_us, percent, ratio, si, size};

    #[test]
    fn figures_have_three_digits_and_a_prefix() {
        assert_eq!(si(6_058_000.0), "6.06\u{202f}M");
        assert_eq!(si(225_400.0), "225\u{202f}k");
        assert_eq!(si(999_499.0), "999\u{202f}k");
        assert_eq!(si(999_500.0), "1.00\u{202f}M");
        assert_eq!(si(12.04), "12.0");
        assert_eq!(si(7.0), "7");
        assert_eq!(si(0.0), "0");
        assert_eq!(si(-1_500.0), "-1.50\u{202f}k");
    }

    #[test]
    fn bytes_and_durations_have_their_units() {
        assert_eq!(bytes(920.0), "920\u{202f}B");
        assert_eq!(bytes(1_536.0), "1.50\u{202f}KiB");
        assert_eq!(bytes(1_023.0), "1.00\u{202f}KiB");
        assert_eq!(size(65_536), "64\u{202f}KiB");
        assert_eq!(size(1_000), "1,000\u{202f}B");
        assert_eq!(decimal_bytes(1.5e9), "1.50\u{202f}GB");
        assert_eq!(duration_us(0.95), "950\u{202f}ns");
        assert_eq!(duration_us(12.34), "12.3\u{202f}µs");
        assert_eq!(duration_us(4_560.0), "4.56\u{202f}ms");
        assert_eq!(duration_us(7e9), "7000\u{202f}s");
    }

    #[test]
    fn what_is_no_number_is_a_dash() {
        assert_eq!(si(f64::NAN), "–");
        assert_eq!(bytes(f64::INFINITY), "–");
    }

    #[test]
    fn ratios_and_shares_keep_what_can_be_told_apart() {
        assert_eq!(ratio(0.0123), "0.012");
        assert_eq!(ratio(0.554), "0.55");
        assert_eq!(ratio(1.449), "1.45");
        assert_eq!(ratio(12.34), "12.3");
        assert_eq!(percent(0.0512), "5.1\u{a0}%");
        assert_eq!(percent(0.51), "51\u{a0}%");
    }

    #[test]
    fn counts_agree_with_their_noun() {
        assert_eq!(counted(1, "cell"), "1 cell");
        assert_eq!(counted(0, "cell"), "0 cells");
    }
}
