//! The CA certificates that are trusted for Redis servers.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};

/// The trusted CA certificates: as a configuration for our own connections, and as PEM for those
/// that send commands. The library of the latter only takes PEM, so the system's certificates have
/// to be loaded instead of having the system verify servers.
#[derive(Clone, Debug)]
pub(super) struct Trust {
    pub(super) config: Arc<ClientConfig>,
    pub(super) pem: Vec<u8>,
}

/// The reason why no CA certificates could be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// A certificate is malformed.
    #[error("malformed CA certificate")]
    Certificate(#[source] rustls::Error),
    /// The given text or the system contains no certificate.
    #[error("found no CA certificate to trust")]
    Empty,
    /// The text is not PEM.
    #[error("CA certificates are not valid PEM")]
    Pem(#[source] rustls::pki_types::pem::Error),
    /// The TLS versions cannot be configured.
    #[error("cannot set up TLS")]
    Setup(#[source] rustls::Error),
}

impl Trust {
    /// Trusts the CA certificates in `pem`, or those of the system.
    pub(super) fn new(pem: Option<&[u8]>) -> Result<Self, TrustError> {
        let certificates = match pem {
            Some(pem) => CertificateDer::pem_slice_iter(pem)
                .collect::<Result<Vec<_>, _>>()
                .map_err(TrustError::Pem)?,
            None => rustls_native_certs::load_native_certs().certs,
        };
        if certificates.is_empty() {
            return Err(TrustError::Empty);
        }
        let mut roots = RootCertStore::empty();
        // Systems often have a few malformed certificates, which are skipped. Configured
        // certificates must all be well-formed.
        match pem {
            None => _ = roots.add_parsable_certificates(certificates.iter().cloned()),
            Some(_) => {
                for certificate in &certificates {
                    let added = roots.add(certificate.clone());
                    added.map_err(TrustError::Certificate)?;
                }
            }
        }
        let pem = roots_as_pem(&certificates, &roots);
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(TrustError::Setup)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        // The connections for commands use the default provider of the process.
        let _ = ring::default_provider().install_default();
        Ok(Self {
            config: Arc::new(config),
            pem,
        })
    }
}

/// Returns the well-formed certificates as PEM.
fn roots_as_pem(certificates: &[CertificateDer<'_>], roots: &RootCertStore) -> Vec<u8> {
    let is_all = roots.len() == certificates.len();
    let mut pem = Vec::new();
    for certificate in certificates {
        let is_parsable = || RootCertStore::empty().add(certificate.clone()).is_ok();
        if is_all || is_parsable() {
            pem.extend_from_slice(b"-----BEGIN CERTIFICATE-----\n");
            pem.extend_from_slice(STANDARD.encode(certificate).as_bytes());
            pem.extend_from_slice(b"\n-----END CERTIFICATE-----\n");
        }
    }
    pem
}

#[cfg(test)]
mod tests {
    use super::{Trust, TrustError};

    #[test]
    fn a_valid_authority_is_trusted() {
        let certificate = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let pem = certificate.cert.pem();
        let trust = Trust::new(Some(pem.as_bytes())).unwrap();
        assert_eq!(
            trust.pem.iter().filter(|byte| **byte == b'-').count(),
            pem.bytes().filter(|byte| *byte == b'-').count()
        );
    }

    #[test]
    fn invalid_authorities_have_distinct_errors() {
        let error = |pem: &str| Trust::new(Some(pem.as_bytes())).unwrap_err();
        assert!(matches!(error("hello"), TrustError::Empty));
        let block =
            |text| format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n");
        assert!(matches!(error(&block("!")), TrustError::Pem(_)));
        assert!(matches!(error(&block("AAAA")), TrustError::Certificate(_)));
    }
}
