//! Records that no TLS library would send, protected with the keys of a connection (RFC 8446 §5.2,
//! RFC 5246 §6.2.3).

use std::io;

use rustls::{
    ConnectionTrafficSecrets, ContentType, ExtractedSecrets, ProtocolVersion, SupportedCipherSuite,
    crypto::cipher::{AeadKey, Iv, OutboundChunks, OutboundPlainMessage},
};
use tokio_rustls::TlsStream;

/// Takes a TLS connection apart. Returns the underlying stream, and the bytes of a record of this
/// type and content, protected as the next one of the connection.
///
/// # Errors
/// If the keys of the connection cannot be extracted.
pub(super) fn forge<S>(stream: TlsStream<S>, kind: u8, content: &[u8]) -> io::Result<(S, Vec<u8>)> {
    let (io, suite, secrets) = match stream {
        TlsStream::Client(stream) => {
            let (io, connection) = stream.into_inner();
            let suite = connection.negotiated_cipher_suite();
            (io, suite, connection.dangerous_extract_secrets())
        }
        TlsStream::Server(stream) => {
            let (io, connection) = stream.into_inner();
            let suite = connection.negotiated_cipher_suite();
            (io, suite, connection.dangerous_extract_secrets())
        }
    };
    let suite = suite.ok_or(io::ErrorKind::NotConnected)?;
    let record = seal(suite, secrets.map_err(io::Error::other)?, kind, content);
    Ok((io, record.map_err(io::Error::other)?))
}

fn seal(
    suite: SupportedCipherSuite,
    secrets: ExtractedSecrets,
    kind: u8,
    content: &[u8],
) -> Result<Vec<u8>, rustls::Error> {
    let (sequence, secrets) = secrets.tx;
    let (key, iv) = parts(secrets)?;
    let mut cipher = match suite {
        SupportedCipherSuite::Tls12(suite) => {
            let fixed = suite.aead_alg.key_block_shape().fixed_iv_len;
            let (fixed, explicit) = iv.as_ref().split_at(fixed);
            suite.aead_alg.encrypter(key, fixed, explicit)
        }
        SupportedCipherSuite::Tls13(suite) => suite.aead_alg.encrypter(key, iv),
    };
    let plain = OutboundPlainMessage {
        typ: ContentType::from(kind),
        version: ProtocolVersion::TLSv1_2,
        payload: OutboundChunks::Single(content),
    };
    Ok(cipher.encrypt(plain, sequence)?.encode())
}

/// Returns the key and the base of the nonce.
fn parts(secrets: ConnectionTrafficSecrets) -> Result<(AeadKey, Iv), rustls::Error> {
    match secrets {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv }
        | ConnectionTrafficSecrets::Aes256Gcm { key, iv }
        | ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => Ok((key, iv)),
        _ => Err(rustls::Error::General("unknown cipher".into())),
    }
}
