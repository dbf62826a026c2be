//! The frame around what TLS protects (RFC 8446 §5.1), and its keys.

use rustls::{
    AlertDescription, ConnectionTrafficSecrets, ContentType, ProtocolVersion, SupportedCipherSuite,
    crypto::cipher::{
        AeadKey, InboundOpaqueMessage, Iv, MessageDecrypter, MessageEncrypter, OutboundChunks,
        OutboundPlainMessage,
    },
};

use super::Failed;
use crate::memory::pool::Pool;

/// The bytes in front of each record: its type, a version, its length.
pub(super) const HEADER_BYTES: usize = 5;

/// The most plaintext of a record (§5.1).
pub(super) const FILLED_BYTES_MAX: usize = 1 << 14;

/// The most that protection may add: 256 bytes in TLS 1.3 (§5.2), 2,048 in TLS 1.2 (RFC 5246
/// §6.2.3). The cipher rejects what is too long for its version.
const PROTECTION_BYTES_MAX: usize = 2_048;

/// Returns the length of the record at the start of `bytes` with its header; none without the whole
/// header.
///
/// # Errors
/// No record starts so.
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

/// Adds to the record that starts at `at` of `joined` what `input` has of it. Returns how many bytes
/// that were, and whether the record is whole now, or its header one that nothing can follow.
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

/// Encrypts what one side sends.
pub(super) struct Sealer {
    cipher: Box<dyn MessageEncrypter>,
    sequence: u64,
}

impl Sealer {
    /// Goes on with the record of this number.
    ///
    /// # Errors
    /// The secrets are of a kind that is unknown here.
    pub(super) fn new(
        suite: SupportedCipherSuite,
        (sequence, secrets): (u64, ConnectionTrafficSecrets),
    ) -> Result<Self, Failed> {
        let (key, iv) = parts(secrets)?;
        let cipher = match suite {
            SupportedCipherSuite::Tls12(suite) => {
                let fixed = suite.aead_alg.key_block_shape().fixed_iv_len;
                let (fixed, explicit) = iv.as_ref().split_at(fixed);
                suite.aead_alg.encrypter(key, fixed, explicit)
            }
            SupportedCipherSuite::Tls13(suite) => suite.aead_alg.encrypter(key, iv),
        };
        Ok(Self { cipher, sequence })
    }

    /// Returns how many records were encrypted.
    pub(super) const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Returns a record of at most [`FILLED_BYTES_MAX`] bytes of plaintext.
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
        let record = self.cipher.encrypt(plain, self.sequence);
        self.sequence += 1;
        record.map_or(Err(Failed::default()), |record| Ok(record.encode()))
    }
}

/// Decrypts what the other side sends.
pub(super) struct Opener {
    cipher: Box<dyn MessageDecrypter>,
    sequence: u64,
}

impl Opener {
    /// Goes on with the record of this number.
    ///
    /// # Errors
    /// The secrets are of a kind that is unknown here.
    pub(super) fn new(
        suite: SupportedCipherSuite,
        (sequence, secrets): (u64, ConnectionTrafficSecrets),
    ) -> Result<Self, Failed> {
        let (key, iv) = parts(secrets)?;
        let cipher = match suite {
            SupportedCipherSuite::Tls12(suite) => {
                let fixed = suite.aead_alg.key_block_shape().fixed_iv_len;
                suite.aead_alg.decrypter(key, &iv.as_ref()[..fixed])
            }
            SupportedCipherSuite::Tls13(suite) => suite.aead_alg.decrypter(key, iv),
        };
        Ok(Self { cipher, sequence })
    }

    /// Decrypts a record in place; returns the type of its content and the content.
    pub(super) fn open<'r>(
        &mut self,
        record: &'r mut [u8],
    ) -> Result<(ContentType, &'r [u8]), rustls::Error> {
        let (header, payload) = record.split_at_mut(HEADER_BYTES);
        let version = ProtocolVersion::from(u16::from_be_bytes([header[1], header[2]]));
        let message = InboundOpaqueMessage::new(header[0].into(), version, payload);
        let plain = self.cipher.decrypt(message, self.sequence)?;
        self.sequence += 1;
        Ok((plain.typ, plain.payload))
    }
}

/// Returns key and nonce base of the ciphers that there are.
fn parts(secrets: ConnectionTrafficSecrets) -> Result<(AeadKey, Iv), Failed> {
    match secrets {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv }
        | ConnectionTrafficSecrets::Aes256Gcm { key, iv }
        | ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => Ok((key, iv)),
        _ => Err(Failed::default()),
    }
}
