//! Whom to trust over `wss://`, where that is not whom the system trusts.

use std::{path::Path, sync::Arc};

use anyhow::{Context, bail};
use linerate::tls::rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};

/// Returns a configuration that trusts the certificates in a PEM file.
///
/// # Errors
/// The file can't be read or holds no certificate.
pub(super) fn trusting(file: &Path) -> anyhow::Result<ClientConfig> {
    let name = file.display();
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(file);
    for certificate in certificates.with_context(|| format!("can't read {name}"))? {
        let certificate = certificate.with_context(|| format!("{name} is not well-formed PEM"))?;
        let added = roots.add(certificate);
        added.with_context(|| format!("{name} holds a certificate that can't be used"))?;
    }
    if roots.is_empty() {
        bail!("{name} holds no certificate in PEM");
    }
    Ok(linerate::tls::client_config(roots))
}

/// Returns a configuration that accepts whatever certificate a server presents.
pub(super) fn danger_trusting_anybody() -> ClientConfig {
    let mut config = linerate::tls::client_config(RootCertStore::empty());
    let anybody = Arc::new(Anybody(ring::default_provider()));
    config.dangerous().set_certificate_verifier(anybody);
    config
}

/// Accepts every certificate; only that the server has its key is checked.
#[derive(Debug)]
struct Anybody(CryptoProvider);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(
            message,
            cert,
            dss,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(
            message,
            cert,
            dss,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
