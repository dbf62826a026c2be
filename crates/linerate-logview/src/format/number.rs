//! Numbers as logs have them.

/// Returns a number of digits alone, if it is below 2^64.
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

/// Returns a number such as `0.125` multiplied by 10 to the power of `shift`; the rest is cut off.
///
/// Exponents, as in `1.2e-05`, are understood. `None` for what is negative, no number, or too big.
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

/// Returns the first `count` digits of a fraction as a number, as though zeros followed it.
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
    // Beyond 2^53 not every integer is a float; 2^63 microseconds are 292,000 years.
    (0.0..9e18).contains(&number).then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use super::{decimal, scaled};

    #[test]
    fn decimals_are_digits_below_2_pow_64() {
        assert_eq!(decimal(b"007"), Some(7));
        assert_eq!(decimal(b"18446744073709551615"), Some(u64::MAX));
        for text in ["", "18446744073709551616", "-1", "+1", "1.0", "1e3", " 1"] {
            assert_eq!(decimal(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn fractions_are_shifted_and_cut_off() {
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
