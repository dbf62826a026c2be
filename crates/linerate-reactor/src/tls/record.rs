//! The record layer of TLS (RFC 8446 §5.1) and its keys.

use rustls::{
    AlertDescription, ConnectionTrafficSecrets, ContentType, ProtocolVersion, SupportedCipherSuite,
    crypto::cipher::{
        AeadKey, InboundOpaqueMessage, Iv, MessageDecrypter, MessageEncrypter, OutboundChunks,
        OutboundPlainMessage,
    },
};

use super::outcome::Failed;
use crate::memory::pool::Pool;

/// The length of a record's header: its type, a version, its length.
pub(super) const HEADER_BYTES: usize = 5;

/// Maximum length of a record's plaintext (§5.1).
pub(super) const FILLED_BYTES_MAX: usize = 1 << 14;

/// Maximum number of bytes that protection may add: 256 in TLS 1.3 (§5.2), 2,048 in TLS 1.2 (RFC
/// 5246 §6.2.3). The cipher rejects records that are too long for its version.
const PROTECTION_BYTES_MAX: usize = 2_048;

/// Maximum length of a record with its header.
#[cfg(unix)]
pub(super) const BYTES_MAX: usize = HEADER_BYTES + FILLED_BYTES_MAX + PROTECTION_BYTES_MAX;

/// Returns the length, including the header, of the record at the start of `bytes`; `None` if the
/// header is incomplete.
///
/// # Errors
/// If `bytes` cannot be the start of a record.
pub(super) fn length(bytes: &[u8]) -> Result<Option<usize>, Failed> {
    let Some(&[kind, major, _, high, low]) = bytes.first_chunk() else {
        return Ok(None);
    };
    let payload_bytes = usize::from(u16::from_be_bytes([high, low]));
    match ContentType::from(kind) {
        _ if major != 3 => Err(Failed::telling(AlertDescription::ProtocolVersion)),
        ContentType::Unknown(_) => Err(Failed::telling(AlertDescription::UnexpectedMessage)),
        _ if payload_bytes > FILLED_BYTES_MAX + PROTECTION_BYTES_MAX => {
            Err(Failed::telling(AlertDescription::RecordOverflow))
        }
        _ => Ok(Some(HEADER_BYTES + payload_bytes)),
    }
}

/// Extends the record that starts at `at` in `joined` with its next bytes in `input`. Returns how
/// many bytes that were, and whether the record is now complete or its header invalid.
pub(super) fn join(
    joined: &mut Vec<u8>,
    at: usize,
    input: &[u8],
    pool: &mut Pool,
) -> (usize, bool) {
    let mut taken = 0;
    loop {
        let there = joined.len() - at;
        let wanted = match length(&joined[at..]) {
            Ok(Some(bytes)) if bytes == there => return (taken, true),
            Ok(Some(bytes)) => bytes,
            Ok(None) => HEADER_BYTES,
            Err(_) => return (taken, true),
        };
        let missing = (wanted - there).min(input.len() - taken);
        if missing == 0 {
            return (taken, false);
        }
        pool.reserve(joined, missing);
        joined.extend_from_slice(&input[taken..taken + missing]);
        taken += missing;
    }
}

/// Protects the records of one direction.
pub(super) struct Records<C: ?Sized> {
    /// `None` until the first record of an imported session.
    cipher: Option<Box<C>>,
    sequence: u64,
}

/// Encrypts the records that we send.
pub(super) type Sealer = Records<dyn MessageEncrypter>;

/// Decrypts the records that the peer sends.
pub(super) type Opener = Records<dyn MessageDecrypter>;

impl<C: ?Sized> Records<C> {
    /// Starts with the record of the given sequence number, before which keys are needed.
    #[cfg(unix)]
    pub(super) const fn without_keys(sequence: u64) -> Self {
        Self {
            cipher: None,
            sequence,
        }
    }

    pub(super) const fn has_keys(&self) -> bool {
        self.cipher.is_some()
    }

    /// Returns the number of records so far.
    pub(super) const fn sequence(&self) -> u64 {
        self.sequence
    }
}

impl Sealer {
    /// Starts with the record of the given sequence number.
    pub(super) fn new(
        suite: SupportedCipherSuite,
        sequence: u64,
        (key, iv): (AeadKey, Iv),
    ) -> Self {
        let cipher = match suite {
            SupportedCipherSuite::Tls12(suite) => {
                let fixed = suite.aead_alg.key_block_shape().fixed_iv_len;
                let (fixed, explicit) = iv.as_ref().split_at(fixed);
                suite.aead_alg.encrypter(key, fixed, explicit)
            }
            SupportedCipherSuite::Tls13(suite) => suite.aead_alg.encrypter(key, iv),
        };
        Self {
            cipher: Some(cipher),
            sequence,
        }
    }

    /// Returns a record with at most [`FILLED_BYTES_MAX`] bytes of plaintext.
    pub(super) fn seal(
        &mut self,
        kind: ContentType,
        payload: OutboundChunks<'_>,
    ) -> Result<Vec<u8>, Failed> {
        let plain = OutboundPlainMessage {
            typ: kind,
            version: ProtocolVersion::TLSv1_2,
            payload,
        };
        let cipher = self.cipher.as_mut().ok_or_else(Failed::default)?;
        let record = cipher.encrypt(plain, self.sequence);
        self.sequence += 1;
        record.map_or(Err(Failed::default()), |record| Ok(record.encode()))
    }
}

impl Opener {
    /// Starts with the record of the given sequence number.
    pub(super) fn new(
        suite: SupportedCipherSuite,
        sequence: u64,
        (key, iv): (AeadKey, Iv),
    ) -> Self {
        let cipher = match suite {
            SupportedCipherSuite::Tls12(suite) => {
                let fixed = suite.aead_alg.key_block_shape().fixed_iv_len;
                suite.aead_alg.decrypter(key, &iv.as_ref()[..fixed])
            }
            SupportedCipherSuite::Tls13(suite) => suite.aead_alg.decrypter(key, iv),
        };
        Self {
            cipher: Some(cipher),
            sequence,
        }
    }

    /// Decrypts a record in place; returns its content type and its content.
    pub(super) fn open<'r>(
        &mut self,
        record: &'r mut [u8],
    ) -> Result<(ContentType, &'r [u8]), rustls::Error> {
        let (header, payload) = record.split_at_mut(HEADER_BYTES);
        let version = ProtocolVersion::from(u16::from_be_bytes([header[1], header[2]]));
        let message = InboundOpaqueMessage::new(header[0].into(), version, payload);
        let cipher = self.cipher.as_mut().ok_or(rustls::Error::DecryptError)?;
        let plain = cipher.decrypt(message, self.sequence)?;
        self.sequence += 1;
        Ok((plain.typ, plain.payload))
    }
}

/// Returns the key and the base of the nonces.
///
/// # Errors
/// If the kind of secrets is not supported here.
pub(super) fn parts(secrets: ConnectionTrafficSecrets) -> Result<(AeadKey, Iv), Failed> {
    match secrets {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv }
        | ConnectionTrafficSecrets::Aes256Gcm { key, iv }
        | ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => Ok((key, iv)),
        _ => Err(Failed::default()),
    }
}
