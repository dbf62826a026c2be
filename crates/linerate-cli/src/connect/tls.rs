//! Whom to trust over `wss://`, where that is not whom the system trusts, and who we are.

use std::path::Path;

use anyhow::{Context, bail};
use linerate::tls::rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

/// Returns the certificates in a PEM file, to be trusted.
///
/// # Errors
/// The file can't be read or holds no certificate.
pub(super) fn roots_in(file: &Path) -> anyhow::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        let added = roots.add(certificate);
        added.with_context(|| {
            let name = file.display();
            format!("{name} holds a certificate that can't be used")
        })?;
    }
    Ok(roots)
}

/// Returns a configuration that trusts `roots` and shows a certificate to servers that ask for one.
///
/// # Errors
/// A file can't be read, or the key is not that of the certificate.
pub(super) fn identified(
    roots: RootCertStore,
    certificate: &Path,
    key: &Path,
) -> anyhow::Result<ClientConfig> {
    let chain = certificates(certificate)?;
    let read = PrivateKeyDer::from_pem_file(key);
    let read = read.with_context(|| format!("can't read a key from {}", key.display()))?;
    let config = linerate::tls::client_config_with_certificate(roots, chain, read);
    config.with_context(|| {
        let (key, certificate) = (key.display(), certificate.display());
        format!("{key} is not the key of {certificate}")
    })
}

fn certificates(file: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let name = file.display();
    let certificates = CertificateDer::pem_file_iter(file);
    let certificates = certificates.with_context(|| format!("can't read {name}"))?;
    let certificates: Vec<_> = certificates
        .collect::<Result<_, _>>()
        .with_context(|| format!("{name} is not well-formed PEM"))?;
    if certificates.is_empty() {
        bail!("{name} holds no certificate in PEM");
    }
    Ok(certificates)
}
