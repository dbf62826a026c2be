//! `Sec-WebSocket-Key` and the matching `Sec-WebSocket-Accept` (RFC 6455 §4.2.2, item 5.4).

use core::str;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1_smol::Sha1;

/// The length of an encoded key in bytes: the base64 of sixteen bytes.
const KEY_TEXT_BYTES: usize = 24;

/// The length of an accept value in bytes: the base64 of a SHA-1 digest.
const ACCEPT_TEXT_BYTES: usize = 28;

/// §1.3: the string that a server appends to the key.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The encoded value of `Sec-WebSocket-Key`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key([u8; KEY_TEXT_BYTES]);

impl Key {
    /// Encodes the sixteen random bytes of a client.
    pub(super) fn new(bytes: [u8; 16]) -> Self {
        let mut text = [0; KEY_TEXT_BYTES];
        STANDARD
            .encode_slice(bytes, &mut text)
            .expect("16 bytes are 24 characters of base64");
        Self(text)
    }

    /// Parses a header's value, which must be the canonical base64 of exactly sixteen bytes.
    pub(super) fn parse(value: &[u8]) -> Option<Self> {
        let text: [u8; KEY_TEXT_BYTES] = value.try_into().ok()?;
        // `decode_slice` requires room for the most that a text of this length can yield: 18 bytes.
        let mut bytes = [0; 18];
        (STANDARD.decode_slice(text, &mut bytes) == Ok(16)).then_some(Self(text))
    }

    /// Returns the encoded key.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the accept value for this key.
    pub(super) fn accept(&self) -> Accept {
        let mut hash = Sha1::from(self.0);
        hash.update(GUID);
        let mut text = [0; ACCEPT_TEXT_BYTES];
        STANDARD
            .encode_slice(hash.digest().bytes(), &mut text)
            .expect("20 bytes are 28 characters of base64");
        Accept(text)
    }
}

/// The encoded value of `Sec-WebSocket-Accept`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Accept([u8; ACCEPT_TEXT_BYTES]);

impl Accept {
    /// Returns the encoded value.
    pub(super) fn as_str(&self) -> &str {
        str::from_utf8(&self.0).expect("base64 is ASCII")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_the_rfc_yields_the_accept_of_the_rfc() {
        let key = Key::parse(b"dGhlIHNhbXBsZSBub25jZQ==").unwrap();
        assert_eq!(key.accept().as_str(), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(Key::new(*b"the sample nonce"), key);
    }

    #[test]
    fn only_the_canonical_base64_of_sixteen_bytes_is_a_key() {
        for value in [
            &b""[..],
            b"dGhlIHNhbXBsZSBub25jZQ=",
            b"dGhlIHNhbXBsZSBub25jZQ",
            b"dGhlIHNhbXBsZSBub25jZR==",
            b"dGhlIHNhbXBsZSBub25jZXM=",
            b"dGhlIHNhbXBsZSBub25jZXMh",
            b"dGhlIHNh bXBsZSBub25jZQ=",
            b"dGhlIHNhbXBsZSBub25jZQ==AAAA",
            b"dGhlIHNhbXBsZSBub25j\xC3\xA9==",
            b"dGhlIHNhbXBs_SBub25jZQ==",
        ] {
            assert_eq!(Key::parse(value), None, "{}", value.escape_ascii());
        }
    }
}
