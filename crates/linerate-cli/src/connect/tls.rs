//! Whom to trust over `wss://`, where that is not whom the system trusts.

use std::path::Path;

use anyhow::{Context, bail};
use linerate::tls::rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
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
