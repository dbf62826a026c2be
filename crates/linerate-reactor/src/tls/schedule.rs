//! The secrets of a server's session, from which its keys come (RFC 8446 §7.2 and §7.3).

use rustls::{
    ConnectionTrafficSecrets, ExtractedSecrets, SupportedCipherSuite, Tls13CipherSuite,
    crypto::{
        cipher::{AeadKey, Iv},
        tls13::{self, OkmBlock},
    },
};
use zeroize::Zeroizing;

use super::{capture::Captured, key, outcome::Failed};

/// The length of a nonce.
const NONCE_BYTES: usize = 12;

/// The secrets of both directions: in TLS 1.3 the traffic secrets, and in TLS 1.2, whose keys do
/// not change, the key followed by the base of the nonces.
pub(super) struct Schedule {
    suite: SupportedCipherSuite,
    receiving: OkmBlock,
    sending: OkmBlock,
}

/// A key, and the base of its nonces.
pub(super) type KeyAndIv = (AeadKey, Iv);

impl Schedule {
    /// Creates the schedule of a server whose handshake has just been completed.
    ///
    /// # Errors
    /// If the secrets were not captured, or are of an unknown kind.
    pub(super) fn new(
        suite: SupportedCipherSuite,
        extracted: &ExtractedSecrets,
        captured: Captured,
    ) -> Result<Self, Failed> {
        let (receiving, sending) = match suite {
            SupportedCipherSuite::Tls13(_) => captured.client.zip(captured.server),
            SupportedCipherSuite::Tls12(_) => joined(&extracted.rx.1).zip(joined(&extracted.tx.1)),
        }
        .ok_or_else(Failed::default)?;
        Ok(Self {
            suite,
            receiving,
            sending,
        })
    }

    /// Returns the schedule with these secrets; `None` if they have not the lengths that the suite
    /// requires.
    #[cfg(unix)]
    pub(super) fn from_secrets(
        suite: SupportedCipherSuite,
        receiving: &[u8],
        sending: &[u8],
    ) -> Option<Self> {
        let length = match suite {
            SupportedCipherSuite::Tls12(suite) => {
                suite.aead_alg.key_block_shape().enc_key_len + NONCE_BYTES
            }
            SupportedCipherSuite::Tls13(suite) => suite.common.hash_provider.output_len(),
        };
        let is_valid = receiving.len() == length && sending.len() == length;
        is_valid.then(|| Self {
            suite,
            receiving: OkmBlock::new(receiving),
            sending: OkmBlock::new(sending),
        })
    }

    /// Replaces the secret of the peer's records; returns the new keys.
    ///
    /// # Errors
    /// If the version is TLS 1.2.
    pub(super) fn next_receiving(&mut self) -> Result<KeyAndIv, Failed> {
        self.receiving = next(self.suite, &self.receiving)?;
        self.receiving_keys(None)
    }

    /// Replaces the secret of our records; returns the new keys.
    ///
    /// # Errors
    /// If the version is TLS 1.2.
    pub(super) fn next_sending(&mut self) -> Result<KeyAndIv, Failed> {
        self.sending = next(self.suite, &self.sending)?;
        self.sending_keys(None)
    }

    /// Returns the keys of the peer's records. `any` is a suite of the same provider, which TLS 1.2
    /// needs.
    ///
    /// # Errors
    /// If the keys have an unknown length.
    pub(super) fn receiving_keys(
        &self,
        any: Option<&'static Tls13CipherSuite>,
    ) -> Result<KeyAndIv, Failed> {
        keys(self.suite, any, &self.receiving)
    }

    /// Returns the keys of our records, like [`receiving_keys`](Self::receiving_keys).
    ///
    /// # Errors
    /// If the keys have an unknown length.
    pub(super) fn sending_keys(
        &self,
        any: Option<&'static Tls13CipherSuite>,
    ) -> Result<KeyAndIv, Failed> {
        keys(self.suite, any, &self.sending)
    }

    pub(super) const fn suite(&self) -> SupportedCipherSuite {
        self.suite
    }

    /// Returns the secret of the peer's records, and that of our records.
    #[cfg(unix)]
    pub(super) fn secrets(&self) -> (&[u8], &[u8]) {
        (self.receiving.as_ref(), self.sending.as_ref())
    }
}

/// Returns a key followed by the base of its nonces.
fn joined(secrets: &ConnectionTrafficSecrets) -> Option<OkmBlock> {
    let (key, iv) = match secrets {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv }
        | ConnectionTrafficSecrets::Aes256Gcm { key, iv }
        | ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (key.as_ref(), iv.as_ref()),
        _ => return None,
    };
    let mut bytes = Zeroizing::new([0; OkmBlock::MAX_LEN]);
    let length = key.len() + iv.len();
    bytes[..key.len()].copy_from_slice(key);
    bytes[key.len()..length].copy_from_slice(iv);
    Some(OkmBlock::new(&bytes[..length]))
}

/// Returns the traffic secret that follows (§7.2).
fn next(suite: SupportedCipherSuite, secret: &OkmBlock) -> Result<OkmBlock, Failed> {
    let suite = tls13(suite).ok_or_else(Failed::default)?;
    let expander = suite.hkdf_provider.expander_for_okm(secret);
    let info = Info::new(b"traffic upd", expander.hash_len());
    Ok(expander.expand_block(&info.parts()))
}

/// Returns the keys that follow from a secret (§7.3).
fn keys(
    suite: SupportedCipherSuite,
    any: Option<&'static Tls13CipherSuite>,
    secret: &OkmBlock,
) -> Result<KeyAndIv, Failed> {
    let mut bytes = Zeroizing::new([0; 32]);
    let keys = match suite {
        SupportedCipherSuite::Tls12(_) => {
            let secret = secret.as_ref().split_last_chunk::<NONCE_BYTES>();
            secret.and_then(|(key, iv)| Some((key::from_bytes(key, any?)?, Iv::from(*iv))))
        }
        SupportedCipherSuite::Tls13(suite) => {
            let expander = &*suite.hkdf_provider.expander_for_okm(secret);
            let key = bytes.get_mut(..suite.aead_alg.key_len());
            key.and_then(|key| {
                let info = Info::new(b"key", key.len());
                expander.expand_slice(&info.parts(), key).ok()?;
                let info = Info::new(b"iv", NONCE_BYTES);
                let iv = tls13::expand::<Iv, NONCE_BYTES>(expander, &info.parts());
                Some((key::from_bytes(key, suite)?, iv))
            })
        }
    };
    keys.ok_or_else(Failed::default)
}

fn tls13(suite: SupportedCipherSuite) -> Option<&'static Tls13CipherSuite> {
    match suite {
        SupportedCipherSuite::Tls12(_) => None,
        SupportedCipherSuite::Tls13(suite) => Some(suite),
    }
}

/// The parameters of an HKDF-Expand-Label without a context (§7.1).
struct Info {
    length: [u8; 2],
    label_length: [u8; 1],
    label: &'static [u8],
}

impl Info {
    const PREFIX: &'static [u8] = b"tls13 ";

    const fn new(label: &'static [u8], bytes: usize) -> Self {
        Self {
            length: (bytes as u16).to_be_bytes(),
            label_length: [(Self::PREFIX.len() + label.len()) as u8],
            label,
        }
    }

    fn parts(&self) -> [&[u8]; 5] {
        [
            &self.length,
            &self.label_length,
            Self::PREFIX,
            self.label,
            &[0],
        ]
    }
}
