//! Private IDs of sessions (`pid`), with which clients return: secrets that only a client and its
//! node know. What nodes store about a session can be found and opened only with its ID.

use std::fmt;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use ring::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hmac::{self, HMAC_SHA256},
};

const BYTES: usize = 16;

/// The private ID of a session.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub(crate) struct PrivateId([u8; BYTES]);

impl PrivateId {
    /// Returns a new ID.
    pub(crate) fn new() -> Self {
        Self(rand::random())
    }

    /// Reads what a client has presented; returns `None` if no session had this ID.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        // Decoding takes memory, so nothing long is decoded.
        let is_short = text.len() <= 2 * BYTES;
        let bytes = is_short.then(|| BASE64_URL_SAFE_NO_PAD.decode(text).ok());
        Some(Self(bytes??.try_into().ok()?))
    }

    /// Returns the key under which the state of the session is stored. It does not reveal the ID.
    pub(crate) fn key(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(self.derive(b"key of a session"))
    }

    /// Encrypts and authenticates the state of the session.
    pub(crate) fn seal(&self, mut state: Vec<u8>) -> Vec<u8> {
        let nonce: [u8; NONCE_LEN] = rand::random();
        let sealing = self.cipher();
        let sealed = sealing.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::empty(),
            &mut state,
        );
        sealed.expect("the state is far shorter than 64 GiB");
        [&nonce[..], &state].concat()
    }

    /// Decrypts what [`seal`](Self::seal) has returned; `None` if this is something else.
    pub(crate) fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, state) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let mut state = state.to_vec();
        let opened = self.cipher().open_in_place(nonce, Aad::empty(), &mut state);
        let length = opened.ok()?.len();
        state.truncate(length);
        Some(state)
    }

    fn cipher(&self) -> LessSafeKey {
        let key = self.derive(b"state of a session");
        let key = UnboundKey::new(&AES_256_GCM, key.as_ref());
        LessSafeKey::new(key.expect("a digest of SHA-256 has the length of the key"))
    }

    fn derive(&self, purpose: &[u8]) -> hmac::Tag {
        hmac::sign(&hmac::Key::new(HMAC_SHA256, &self.0), purpose)
    }
}

impl fmt::Debug for PrivateId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateId(…)")
    }
}

impl fmt::Display for PrivateId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64_URL_SAFE_NO_PAD.encode(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::PrivateId;

    #[test]
    fn a_client_presents_what_it_was_told() {
        let id = PrivateId::new();
        assert_eq!(PrivateId::parse(&id.to_string()), Some(id));
        assert!(PrivateId::new() != id);
        for text in ["", "a", &id.to_string()[1..], &"A".repeat(23), "ü", "=="] {
            assert_eq!(PrivateId::parse(text), None, "{text}");
        }
        assert!(!format!("{id:?} {}", id.key()).contains(&id.to_string()));
    }

    #[test]
    fn only_the_id_opens_what_it_has_sealed() {
        let (id, other) = (PrivateId::new(), PrivateId::new());
        let sealed = id.seal(b"state".to_vec());
        assert_eq!(id.open(&sealed).as_deref(), Some(&b"state"[..]));
        assert_ne!(id.seal(b"state".to_vec()), sealed, "nonces must differ");
        assert_eq!(other.open(&sealed), None);
        assert_ne!(id.key(), other.key());
        for place in 0..sealed.len() {
            let mut forged = sealed.clone();
            forged[place] ^= 1;
            assert_eq!(id.open(&forged), None);
            assert_eq!(id.open(&sealed[..place]), None);
        }
    }
}
