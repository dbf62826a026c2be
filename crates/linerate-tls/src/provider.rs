//! The crypto provider for TLS, which rejects invalid records that rustls would accept (RFC 8446
//! §5.4).
//!
//! The record layer is internal to rustls, but rustls calls its provider to decrypt each record,
//! and that is where all of them can be inspected.

use std::sync::{Arc, LazyLock};

use rustls::{
    CipherSuiteCommon, ConnectionTrafficSecrets, ContentType, Error, PeerMisbehaved,
    SupportedCipherSuite, Tls12CipherSuite, Tls13CipherSuite,
    crypto::{
        CryptoProvider,
        cipher::{
            AeadKey, InboundOpaqueMessage, InboundPlainMessage, Iv, KeyBlockShape,
            MessageDecrypter, MessageEncrypter, Tls12AeadAlgorithm, Tls13AeadAlgorithm,
            UnsupportedOperationError,
        },
    },
};

/// Returns the crypto provider that all configurations of `linerate` use, made [`strict`].
///
/// It is the provider that the program has installed before the first call
/// ([`CryptoProvider::install_default`]), or else that of *ring*, if the feature `ring` is enabled.
///
/// Use it to build your own configuration:
///
/// ```
/// use rustls::{ClientConfig, RootCertStore};
///
/// let roots = RootCertStore::empty();
/// let config = ClientConfig::builder_with_provider(linerate_tls::provider())
///     .with_safe_default_protocol_versions()?
///     .with_root_certificates(roots)
///     .with_no_client_auth();
/// # Ok::<(), rustls::Error>(())
/// ```
///
/// # Panics
/// Panics if no provider is installed and the feature `ring` is disabled.
pub fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| {
        let installed =
            CryptoProvider::get_default().map(|provider| CryptoProvider::clone(provider));
        Arc::new(strict(installed.or_else(bundled).expect(
            "TLS needs a crypto provider: install one with `CryptoProvider::install_default`, or enable \
             the feature `ring`",
        )))
    });
    PROVIDER.clone()
}

/// Returns the provider that is compiled in.
fn bundled() -> Option<CryptoProvider> {
    #[cfg(feature = "ring")]
    return Some(rustls::crypto::ring::default_provider());
    #[cfg(not(feature = "ring"))]
    None
}

/// Returns `provider` with cipher suites that reject empty handshake messages and alerts.
///
/// Such records are forbidden, and a connection on which one arrives has to end with the alert
/// `unexpected_message` (RFC 8446 §5.4; RFC 5246 §6.2.1). rustls silently accepts up to 32 of them
/// in a row. With this provider, it sends the alert and fails with
/// [`PeerMisbehaved::IllegalMiddleboxChangeCipherSpec`], the only error from a cipher for which
/// rustls sends this alert.
///
/// Call this only once: the suites are never freed, because rustls requires them to be `'static`.
pub fn strict(provider: CryptoProvider) -> CryptoProvider {
    let suites = provider.cipher_suites.iter();
    CryptoProvider {
        cipher_suites: suites.map(strict_suite).collect(),
        ..provider
    }
}

/// A cipher of TLS 1.2 or 1.3 that inspects the decrypted plaintext.
struct Strict<A: ?Sized + 'static>(&'static A);

/// Decrypts and inspects the records of one connection.
struct StrictDecrypter(Box<dyn MessageDecrypter>);

impl Tls12AeadAlgorithm for Strict<dyn Tls12AeadAlgorithm> {
    fn encrypter(&self, key: AeadKey, iv: &[u8], extra: &[u8]) -> Box<dyn MessageEncrypter> {
        self.0.encrypter(key, iv, extra)
    }

    fn decrypter(&self, key: AeadKey, iv: &[u8]) -> Box<dyn MessageDecrypter> {
        Box::new(StrictDecrypter(self.0.decrypter(key, iv)))
    }

    fn key_block_shape(&self) -> KeyBlockShape {
        self.0.key_block_shape()
    }

    fn extract_keys(
        &self,
        key: AeadKey,
        iv: &[u8],
        explicit: &[u8],
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        self.0.extract_keys(key, iv, explicit)
    }

    fn fips(&self) -> bool {
        self.0.fips()
    }
}

impl Tls13AeadAlgorithm for Strict<dyn Tls13AeadAlgorithm> {
    fn encrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageEncrypter> {
        self.0.encrypter(key, iv)
    }

    fn decrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageDecrypter> {
        Box::new(StrictDecrypter(self.0.decrypter(key, iv)))
    }

    fn key_len(&self) -> usize {
        self.0.key_len()
    }

    fn extract_keys(
        &self,
        key: AeadKey,
        iv: Iv,
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        self.0.extract_keys(key, iv)
    }

    fn fips(&self) -> bool {
        self.0.fips()
    }
}

impl MessageDecrypter for StrictDecrypter {
    fn decrypt<'a>(
        &mut self,
        record: InboundOpaqueMessage<'a>,
        sequence: u64,
    ) -> Result<InboundPlainMessage<'a>, Error> {
        let plain = self.0.decrypt(record, sequence)?;
        // §5.4: "Implementations MUST NOT send Handshake and Alert records that have a zero-length
        // TLSInnerPlaintext.content; if such a message is received, the receiving implementation
        // MUST terminate the connection with an "unexpected_message" alert."
        let needs_content = matches!(plain.typ, ContentType::Alert | ContentType::Handshake);
        if needs_content && plain.payload.is_empty() {
            // Of all errors that a decrypter can return, rustls sends that alert only for this one.
            return Err(PeerMisbehaved::IllegalMiddleboxChangeCipherSpec.into());
        }
        Ok(plain)
    }
}

fn strict_suite(suite: &SupportedCipherSuite) -> SupportedCipherSuite {
    match *suite {
        SupportedCipherSuite::Tls12(suite) => {
            SupportedCipherSuite::Tls12(Box::leak(Box::new(Tls12CipherSuite {
                common: common(&suite.common),
                prf_provider: suite.prf_provider,
                kx: suite.kx,
                sign: suite.sign,
                aead_alg: Box::leak(Box::new(Strict(suite.aead_alg))),
            })))
        }
        SupportedCipherSuite::Tls13(suite) => {
            SupportedCipherSuite::Tls13(Box::leak(Box::new(Tls13CipherSuite {
                common: common(&suite.common),
                hkdf_provider: suite.hkdf_provider,
                aead_alg: Box::leak(Box::new(Strict(suite.aead_alg))),
                // QUIC does not use TLS records.
                quic: suite.quic,
            })))
        }
    }
}

fn common(common: &CipherSuiteCommon) -> CipherSuiteCommon {
    CipherSuiteCommon {
        suite: common.suite,
        hash_provider: common.hash_provider,
        confidentiality_limit: common.confidentiality_limit,
    }
}

#[cfg(all(test, feature = "ring"))]
mod tests;
