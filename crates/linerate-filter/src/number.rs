//! Numbers, which compare by value regardless of their notation.

use std::cmp::Ordering;

/// A number of a filter or a payload.
///
/// Signed and unsigned 64-bit integers are exact; all other numbers are doubles.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Number {
    /// A finite number that has a fraction or an exponent, or does not fit in 64 bits.
    Double(f64),
    /// An integer that fits in an `i64`.
    Int(i64),
    /// An integer that is too large for an `i64`.
    Uint(u64),
}

impl Number {
    /// Returns the number with the opposite sign, or `None` if that is an integer that does not fit
    /// in 64 bits.
    pub fn negated(self) -> Option<Self> {
        match self {
            Self::Double(double) => Some(Self::Double(-double)),
            Self::Int(int) if int > 0 => Some(Self::Int(-int)),
            Self::Int(int) => Some(Self::from_unsigned(int.unsigned_abs())),
            Self::Uint(uint) => (uint == 1 << 63).then_some(Self::Int(i64::MIN)),
        }
    }

    /// Parses the JSON number at the beginning of a text, and returns it with its length in bytes.
    /// Returns `None` if there is no number, or if it is too large for a double.
    #[inline]
    pub(crate) fn from_json(text: &[u8]) -> Option<(Self, usize)> {
        short_int(text).or_else(|| {
            let text = notation(text)?;
            Some((Self::from_notation(text)?, text.len()))
        })
    }

    fn from_notation(text: &str) -> Option<Self> {
        // "-0" is a double, because integers have no negative zero.
        if text != "-0" && !text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
            if let Ok(int) = text.parse() {
                return Some(Self::Int(int));
            }
            if let Ok(uint) = text.parse() {
                return Some(Self::Uint(uint));
            }
        }
        let double: f64 = text.parse().ok()?;
        double.is_finite().then_some(Self::Double(double))
    }

    pub(crate) fn from_unsigned(number: u64) -> Self {
        i64::try_from(number).map_or(Self::Uint(number), Self::Int)
    }

    /// Returns the 64-bit integer that equals the number, if there is one.
    pub(crate) fn as_integer(self) -> Option<i128> {
        match self {
            Self::Double(double) => {
                let is_in_range = (-9.3e18..1.9e19).contains(&double);
                (is_in_range && double.trunc() == double).then_some(double as i128)
            }
            Self::Int(int) => Some(int.into()),
            Self::Uint(uint) => Some(uint.into()),
        }
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let with_double = |integer: i128, double| compare(integer, double);
        match (*self, *other) {
            (Self::Double(one), Self::Double(other)) => one.partial_cmp(&other),
            (Self::Double(one), other) => {
                with_double(other.as_integer()?, one).map(Ordering::reverse)
            }
            (one, Self::Double(other)) => with_double(one.as_integer()?, other),
            (Self::Int(one), Self::Int(other)) => Some(one.cmp(&other)),
            (Self::Uint(one), Self::Uint(other)) => Some(one.cmp(&other)),
            // A number that only fits in an unsigned integer is larger than every signed one.
            (Self::Int(_), Self::Uint(_)) => Some(Ordering::Less),
            (Self::Uint(_), Self::Int(_)) => Some(Ordering::Greater),
        }
    }
}

/// Compares exactly; converting the integer to a double would round it.
fn compare(integer: i128, double: f64) -> Option<Ordering> {
    // The cast saturates, but only far beyond the 64-bit integers.
    let truncated = double.trunc();
    let by_integer = integer.cmp(&(truncated as i128));
    Some(by_integer.then(0.0.partial_cmp(&(double - truncated))?))
}

/// Parses an integer of at most 17 digits, and returns it with its length in bytes. Most numbers in
/// payloads are that short.
#[inline]
fn short_int(text: &[u8]) -> Option<(Number, usize)> {
    let (sign, digits) = match text {
        [b'-', digits @ ..] => (1, digits),
        digits => (0, digits),
    };
    let (mut int, mut count) = (0_i64, 0_usize);
    for byte in digits.iter().take(18) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        int = int * 10 + i64::from(digit);
        count += 1;
    }
    let is_short =
        (1..18).contains(&count) && !matches!(digits.get(count), Some(b'.' | b'e' | b'E'));
    // "-0" is a double, and no other integer starts with a 0.
    let has_zero = digits.first() == Some(&b'0') && (count > 1 || sign > 0);
    let int = if sign > 0 { -int } else { int };
    (is_short && !has_zero).then_some((Number::Int(int), sign + count))
}

/// Returns the JSON number at the beginning of a text.
fn notation(text: &[u8]) -> Option<&str> {
    let mut rest = text.strip_prefix(b"-").unwrap_or(text);
    rest = match rest {
        [b'0', rest @ ..] => rest,
        _ => digits(rest)?,
    };
    if let [b'.', fraction @ ..] = rest {
        rest = digits(fraction)?;
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let ([b'+' | b'-', exponent @ ..] | exponent) = exponent;
        rest = digits(exponent)?;
    }
    std::str::from_utf8(&text[..text.len() - rest.len()]).ok()
}

/// Skips digits and returns the rest of the text, or `None` if there is no digit.
fn digits(text: &[u8]) -> Option<&[u8]> {
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (count > 0).then(|| &text[count..])
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering::{Equal, Greater, Less};

    use super::Number::{self, Double, Int, Uint};

    #[test]
    fn numbers_compare_exactly_where_doubles_would_round() {
        for (one, other, expected) in [
            (Int(1), Double(1.0), Equal),
            (
                Int(9_007_199_254_740_993),
                Double(9_007_199_254_740_992.0),
                Greater,
            ),
            (Int(i64::MAX), Double(9_223_372_036_854_775_808.0), Less),
            (Uint(1 << 63), Double(9_223_372_036_854_775_808.0), Equal),
            (Uint(u64::MAX), Double(18_446_744_073_709_551_616.0), Less),
            (Uint(1 << 63), Int(i64::MAX), Greater),
            (Int(i64::MIN), Double(-9_223_372_036_854_775_808.0), Equal),
            (Int(-1), Double(-1.5), Greater),
            (Int(0), Double(-0.0), Equal),
            (Int(5), Double(1e300), Less),
            (Int(5), Double(-1e300), Greater),
        ] {
            assert_eq!(one.partial_cmp(&other), Some(expected), "{one:?} {other:?}");
            assert_eq!(other.partial_cmp(&one), Some(expected.reverse()));
        }
    }

    #[test]
    fn json_numbers_are_integers_if_written_so_and_in_range() {
        let is = |text: &str, expected: &str| {
            for end in ["", " ", ",1", "}", "x"] {
                let (number, length) =
                    Number::from_json(format!("{text}{end}").as_bytes()).unwrap();
                assert_eq!(
                    (format!("{number:?}").as_str(), length),
                    (expected, text.len())
                );
            }
        };
        is("7", "Int(7)");
        is("-7", "Int(-7)");
        is("-0", "Double(-0.0)");
        is("9223372036854775807", "Int(9223372036854775807)");
        is("-9223372036854775808", "Int(-9223372036854775808)");
        is("18446744073709551615", "Uint(18446744073709551615)");
        is("18446744073709551616", "Double(1.8446744073709552e19)");
        is("12345678901234567", "Int(12345678901234567)");
        is("123456789012345678", "Int(123456789012345678)");
        is("0", "Int(0)");
        is("1.0", "Double(1.0)");
        is("1e2", "Double(100.0)");
        is("-1E+2", "Double(-100.0)");
        is("0e-999", "Double(0.0)");
        assert!(Number::from_json(b"1e999").is_none());
        assert!(Number::from_json(&[b'9'; 400]).is_none());
        for text in ["", "-", "+1", ".5", "1.", "1.e1", "1e", "1e+", "x", "NaN"] {
            assert!(Number::from_json(text.as_bytes()).is_none(), "{text}");
        }
        // Digits after a leading 0 are not part of the number.
        for (text, length) in [("01", 1), ("-01", 2), ("00.5", 1)] {
            assert_eq!(Number::from_json(text.as_bytes()).unwrap().1, length);
        }
    }

    #[test]
    fn integers_above_64_bits_are_refused() {
        assert!(Uint(u64::MAX).negated().is_none() && Uint((1 << 63) + 1).negated().is_none());
        assert_eq!(Int(i64::MIN).negated(), Some(Uint(1 << 63)));
        assert_eq!(Uint(1 << 63).negated(), Some(Int(i64::MIN)));
        assert_eq!(Int(i64::MAX).negated(), Some(Int(-i64::MAX)));
    }
}
