//! AEAD keys from their bytes.
//!
//! rustls makes keys of 16 bytes only itself: its one public constructor takes 32. They come out of
//! its key derivations, and the one for the initial packets of QUIC (RFC 9001 §5.2) is public. It
//! is used here with a derivation function that returns its input.

use std::{cell::RefCell, sync::OnceLock};

use rustls::{
    CipherSuiteCommon, Error, Side, Tls13CipherSuite,
    crypto::{
        cipher::{AeadKey, Iv},
        hmac,
        tls13::{Hkdf, HkdfExpander, OkmBlock, OutputLengthError},
    },
    quic::{Algorithm, HeaderProtectionKey, Keys, PacketKey, Tag, Version},
};

/// The length of all keys in TLS that do not have 32 bytes.
const SHORT_BYTES: usize = 16;

thread_local! {
    /// The key that the derivation has produced.
    static DERIVED: RefCell<Option<AeadKey>> = const { RefCell::new(None) };
}

/// Returns the key with these bytes; `None` if no cipher of TLS has keys of this length. `suite` is
/// any suite of the provider.
pub(super) fn from_bytes(bytes: &[u8], suite: &Tls13CipherSuite) -> Option<AeadKey> {
    if let Ok(bytes) = <[u8; 32]>::try_from(bytes) {
        return Some(bytes.into());
    }
    if bytes.len() != SHORT_BYTES {
        return None;
    }
    static SUITE: OnceLock<Tls13CipherSuite> = OnceLock::new();
    let suite = SUITE.get_or_init(|| Tls13CipherSuite {
        common: CipherSuiteCommon {
            suite: suite.common.suite,
            hash_provider: suite.common.hash_provider,
            confidentiality_limit: 0,
        },
        hkdf_provider: &Identity,
        aead_alg: suite.aead_alg,
        quic: None,
    });
    _ = Keys::initial(Version::V1, suite, &Short, bytes, Side::Client);
    DERIVED.take()
}

/// A derivation function whose results begin with its secret.
struct Identity;

impl Hkdf for Identity {
    fn extract_from_zero_ikm(&self, _: Option<&[u8]>) -> Box<dyn HkdfExpander> {
        Box::new(Secret(OkmBlock::new(&[])))
    }

    fn extract_from_secret(&self, _: Option<&[u8]>, secret: &[u8]) -> Box<dyn HkdfExpander> {
        Box::new(Secret(OkmBlock::new(secret)))
    }

    fn expander_for_okm(&self, okm: &OkmBlock) -> Box<dyn HkdfExpander> {
        Box::new(Secret(okm.clone()))
    }

    fn hmac_sign(&self, _: &OkmBlock, _: &[u8]) -> hmac::Tag {
        hmac::Tag::new(&[])
    }
}

struct Secret(OkmBlock);

impl HkdfExpander for Secret {
    fn expand_slice(&self, _: &[&[u8]], output: &mut [u8]) -> Result<(), OutputLengthError> {
        let bytes = self.0.as_ref();
        let length = bytes.len().min(output.len());
        output[..length].copy_from_slice(&bytes[..length]);
        Ok(())
    }

    fn expand_block(&self, _: &[&[u8]]) -> OkmBlock {
        self.0.clone()
    }

    fn hash_len(&self) -> usize {
        self.0.as_ref().len()
    }
}

/// A cipher that only records its key.
struct Short;

impl Algorithm for Short {
    fn packet_key(&self, key: AeadKey, _: Iv) -> Box<dyn PacketKey> {
        DERIVED.set(Some(key));
        Box::new(Unused)
    }

    fn header_protection_key(&self, _: AeadKey) -> Box<dyn HeaderProtectionKey> {
        Box::new(Unused)
    }

    fn aead_key_len(&self) -> usize {
        SHORT_BYTES
    }
}

/// Stands for the ciphers of QUIC, which are not used.
struct Unused;

impl PacketKey for Unused {
    fn encrypt_in_place(&self, _: u64, _: &[u8], _: &mut [u8]) -> Result<Tag, Error> {
        Err(Error::EncryptError)
    }

    fn decrypt_in_place<'a>(&self, _: u64, _: &[u8], _: &'a mut [u8]) -> Result<&'a [u8], Error> {
        Err(Error::DecryptError)
    }

    fn tag_len(&self) -> usize {
        0
    }

    fn confidentiality_limit(&self) -> u64 {
        0
    }

    fn integrity_limit(&self) -> u64 {
        0
    }
}

impl HeaderProtectionKey for Unused {
    fn encrypt_in_place(&self, _: &[u8], _: &mut u8, _: &mut [u8]) -> Result<(), Error> {
        Err(Error::EncryptError)
    }

    fn decrypt_in_place(&self, _: &[u8], _: &mut u8, _: &mut [u8]) -> Result<(), Error> {
        Err(Error::DecryptError)
    }

    fn sample_len(&self) -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use rustls::SupportedCipherSuite;

    use super::*;

    #[test]
    fn keys_have_the_given_bytes() {
        let provider = linerate_tls::provider();
        let suites = &provider.cipher_suites;
        let suite = suites.iter().find_map(|suite| match suite {
            SupportedCipherSuite::Tls13(suite) => Some(suite),
            SupportedCipherSuite::Tls12(_) => None,
        });
        let suite = suite.expect("the provider has TLS 1.3");
        let bytes: Vec<u8> = (1..=33).collect();
        for length in 0..=33 {
            let key = from_bytes(&bytes[..length], suite);
            let found = key.as_ref().map(AsRef::as_ref);
            let is_known = [16, 32].contains(&length);
            assert_eq!(found, is_known.then_some(&bytes[..length]));
        }
    }
}
