//! RSA public keys from PEM and key sets, converted to the one form that verifies signatures.

use jsonwebtoken::{DecodingKey, DecodingKeyKind};

/// RFC 7518 §3.3: "A key of size 2048 bits or larger MUST be used".
const BITS_MIN: usize = 2_048;
/// Verifying with a larger key takes more time than a client that sends garbage may cost.
const BITS_MAX: usize = 8_192;

/// DER tags (X.690 §8).
const INTEGER: u8 = 0x02;
const SEQUENCE: u8 = 0x30;

/// Returns the key as a modulus and an exponent without leading zeros.
///
/// # Errors
///
/// Fails if it is not an RSA public key, or its size is outside the limits.
pub(super) fn usable(key: &DecodingKey) -> Result<DecodingKey, String> {
    let (modulus, exponent) = match key.kind() {
        DecodingKeyKind::RsaModulusExponent { n, e } => (n.as_slice(), e.as_slice()),
        DecodingKeyKind::SecretOrDer(der) => {
            components(der).ok_or("not an RSA public key (RFC 8017 §A.1.1)")?
        }
    };
    let (modulus, exponent) = (trimmed(modulus), trimmed(exponent));
    let bits = bits(modulus);
    if !(BITS_MIN..=BITS_MAX).contains(&bits) {
        return Err(format!(
            "RSA key has {bits} bits; {BITS_MIN} to {BITS_MAX} are required"
        ));
    }
    Ok(DecodingKey::from_rsa_raw_components(modulus, exponent))
}

/// Parses an `RSAPublicKey`: a sequence of the modulus and the exponent.
fn components(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (mut sequence, []) = take(der, SEQUENCE)? else {
        return None;
    };
    let modulus;
    (modulus, sequence) = take(sequence, INTEGER)?;
    let (exponent, []) = take(sequence, INTEGER)? else {
        return None;
    };
    Some((modulus, exponent))
}

/// Splits the contents of one value from the bytes that follow it.
fn take(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[found, first], mut rest) = der.split_first_chunk::<2>()?;
    let mut length = usize::from(first);
    // X.690 §8.1.3.5: in the long form, the first byte contains the number of length bytes that
    // follow.
    if first & 0x80 != 0 {
        let bytes = length & 0x7F;
        let (digits, contents) = rest.split_at_checked(bytes).filter(|_| bytes <= 4)?;
        length = digits
            .iter()
            .fold(0, |length, digit| length << 8 | usize::from(*digit));
        rest = contents;
    }
    rest.split_at_checked(length).filter(|_| found == tag)
}

fn trimmed(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}

fn bits(trimmed: &[u8]) -> usize {
    let first = trimmed.first().map_or(0, |byte| byte.leading_zeros());
    trimmed.len() * 8 - first as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes an `RSAPublicKey` with a modulus of this length, whose first byte is 0x80, and the
    /// exponent 65,537.
    fn der(modulus_bytes: u16) -> Vec<u8> {
        let mut der = vec![SEQUENCE, 0x82];
        der.extend((modulus_bytes + 10).to_be_bytes());
        der.extend([INTEGER, 0x82]);
        der.extend((modulus_bytes + 1).to_be_bytes());
        der.extend([0, 0x80]);
        der.resize(der.len() + usize::from(modulus_bytes) - 1, 1);
        der.extend(b"\x02\x03\x01\x00\x01");
        der
    }

    #[test]
    fn a_key_is_taken_up_to_either_limit() {
        for (bytes, is_usable) in [(255, false), (256, true), (1_024, true), (1_025, false)] {
            let key = usable(&DecodingKey::from_rsa_der(&der(bytes)));
            assert_eq!(key.is_ok(), is_usable, "{bytes} bytes");
        }
        let error = usable(&DecodingKey::from_rsa_der(&der(128))).unwrap_err();
        assert_eq!(error, "RSA key has 1024 bits; 2048 to 8192 are required");
    }

    #[test]
    fn leading_zeros_of_a_key_set_are_left_out() {
        let mut modulus = vec![0, 0, 0x80];
        modulus.resize(258, 7);
        let key = usable(&DecodingKey::from_rsa_raw_components(&modulus, &[0, 3])).unwrap();
        let DecodingKeyKind::RsaModulusExponent { n, e } = key.kind() else {
            panic!("components are kept as such");
        };
        assert_eq!((n.len(), n[0], e.as_slice()), (256, 0x80, &[3][..]));
    }

    #[test]
    fn a_key_cut_off_anywhere_or_with_more_behind_it_is_refused() {
        let whole = der(256);
        for end in 0..whole.len() {
            assert_eq!(components(&whole[..end]), None, "{end}");
        }
        let longer = [&whole[..], &[0]].concat();
        assert_eq!(components(&longer), None);
        assert_eq!(components(b"\x30\x85\xff\xff\xff\xff\xff"), None);
        assert_eq!(components(b"\x30\x03\x02\x01\x00"), None);
    }
}
