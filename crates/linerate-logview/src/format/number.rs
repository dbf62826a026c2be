//! Numbers as they appear in logs.

use std::ops::Range;

/// Parses a number that consists only of digits and is below 2^64.
#[inline]
pub(super) fn decimal(field: &[u8]) -> Option<u64> {
    if field.is_empty() {
        return None;
    }
    field.iter().try_fold(0u64, |number, &byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Parses the part of `text` in `range`, which must consist only of digits and be below 2^64.
///
/// Up to eight digits are read at once, together with preceding bytes if there are enough.
#[inline]
pub(super) fn decimal_within(text: &[u8], range: Range<usize>) -> Option<u64> {
    let len = range.len();
    match text[..range.end].last_chunk() {
        Some(word) if (1..=8).contains(&len) => {
            let all = u64::MAX << (8 * (8 - len));
            eight_digits(u64::from_le_bytes(*word) & all | ZEROS & !all)
        }
        _ => decimal(&text[range]),
    }
}

const ZEROS: u64 = u64::from_ne_bytes([b'0'; 8]);

/// Parses eight digits, the first of which is the lowest byte, by combining pairs of numbers in
/// parallel.
#[inline]
fn eight_digits(word: u64) -> Option<u64> {
    const HIGH: u64 = u64::from_ne_bytes([0xF0; 8]);
    const SIX: u64 = u64::from_ne_bytes([6; 8]);
    let digits = word ^ ZEROS;
    // Only digits stay below 16 even after adding 6.
    if (digits | digits.wrapping_add(SIX)) & HIGH != 0 {
        return None;
    }
    let pairs = digits.wrapping_mul(10 << 8 | 1) >> 8 & 0x00FF_00FF_00FF_00FF;
    let fours = pairs.wrapping_mul(100 << 16 | 1) >> 16 & 0x0000_FFFF_0000_FFFF;
    Some(fours.wrapping_mul(10_000 << 32 | 1) >> 32)
}

/// Parses three digits.
#[inline]
pub(super) fn three_digits(text: [u8; 3]) -> Option<u16> {
    let [a, b, c] = text.map(|byte| byte.wrapping_sub(b'0'));
    (a <= 9 && b <= 9 && c <= 9).then(|| u16::from(a) * 100 + u16::from(b * 10 + c))
}

/// Returns a number such as `0.125` multiplied by 10^`shift`, truncated to an integer.
///
/// Exponents are accepted, as in `1.2e-05`. Returns `None` for anything that is negative, not a
/// number, or too large.
#[inline]
pub(super) fn scaled(field: &[u8], shift: u32) -> Option<u64> {
    let point = field.iter().position(|&byte| byte == b'.');
    let (whole, fraction) = match point {
        Some(point) => (&field[..point], &field[point + 1..]),
        None => (field, &b""[..]),
    };
    if fraction.iter().all(u8::is_ascii_digit)
        && let Some(whole) = decimal(whole)
    {
        let whole = whole.checked_mul(10u64.checked_pow(shift)?)?;
        return whole.checked_add(leading_digits(fraction, shift));
    }
    scaled_float(field, shift)
}

/// Returns the first `count` digits of a fraction as a number, padded with zeros.
fn leading_digits(fraction: &[u8], count: u32) -> u64 {
    let digits = fraction.iter().copied().chain(std::iter::repeat(b'0'));
    digits
        .take(count as usize)
        .fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
}

#[cold]
fn scaled_float(field: &[u8], shift: u32) -> Option<u64> {
    let number: f64 = std::str::from_utf8(field).ok()?.parse().ok()?;
    let number = number * 10f64.powi(shift.cast_signed());
    // Above 2^53 not every integer is a float. 2^63 microseconds are 292,000 years.
    (0.0..9e18).contains(&number).then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use super::{decimal, decimal_within, scaled, three_digits};

    #[test]
    fn decimals_are_digits_below_2_pow_64() {
        assert_eq!(decimal(b"007"), Some(7));
        assert_eq!(decimal(b"18446744073709551615"), Some(u64::MAX));
        for text in ["", "18446744073709551616", "-1", "+1", "1.0", "1e3", " 1"] {
            assert_eq!(decimal(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn decimals_within_a_text_are_parsed_like_standalone_ones() {
        for before in ["", "7", " é 200 99"] {
            for field in [
                "",
                "0",
                "9",
                "10",
                "007",
                "1234567",
                "12345678",
                "99999999",
                "123456789",
                "18446744073709551615",
                "18446744073709551616",
                "-",
                "-1",
                "1 2",
                "/",
                ":",
                "1:",
                "1/34567",
                "12345?78",
                "\u{7F}",
                "1x",
            ] {
                let text = format!("{before}{field} 5");
                let range = before.len()..before.len() + field.len();
                let expected = decimal(field.as_bytes());
                assert_eq!(decimal_within(text.as_bytes(), range), expected, "{text}");
            }
        }
        for byte in 0..=u8::MAX {
            let mut text = *b" 31415926";
            text[4] = byte;
            assert_eq!(decimal_within(&text, 1..9), decimal(&text[1..]));
        }
    }

    #[test]
    fn three_digits_are_a_number() {
        assert_eq!(three_digits(*b"000"), Some(0));
        assert_eq!(three_digits(*b"999"), Some(999));
        assert_eq!(three_digits(*b"204"), Some(204));
        for text in [b"20 ", b"-04", b"2:4", b"2/4", b"2\xFF4"] {
            assert_eq!(three_digits(*text), None);
        }
    }

    #[test]
    fn fractions_are_scaled_and_truncated() {
        assert_eq!(scaled(b"0.125", 6), Some(125_000));
        assert_eq!(scaled(b"1611280025.123", 0), Some(1_611_280_025));
        assert_eq!(scaled(b"3", 3), Some(3_000));
        assert_eq!(scaled(b"3.", 3), Some(3_000));
        assert_eq!(scaled(b"0.0000129", 6), Some(12));
        assert_eq!(scaled(b"1.25e-05", 6), Some(12));
        assert_eq!(scaled(b"2E3", 0), Some(2_000));
        assert_eq!(scaled(b"18446744073709551615", 0), Some(u64::MAX));
        for text in ["", ".", "-", "-0.5", "nan", "inf", "1e99", "0.1x", "1..2"] {
            assert_eq!(scaled(text.as_bytes(), 6), None, "{text}");
        }
        assert_eq!(scaled(b"18446744073709551615", 1), None);
    }
}
