//! Root certificates and client certificates for `wss://`.

use std::path::Path;

use anyhow::{Context, bail};
use linerate::tls::rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

/// Returns the certificates in a PEM file as trusted roots.
///
/// # Errors
/// Returns an error if the file cannot be read or contains no usable certificate.
pub(super) fn roots_in(file: &Path) -> anyhow::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        let added = roots.add(certificate);
        added.with_context(|| {
            let name = file.display();
            format!("cannot use a certificate in {name}")
        })?;
    }
    Ok(roots)
}

/// Returns `config`, changed so that it presents a certificate to servers that ask for one.
///
/// # Errors
/// Returns an error if a file cannot be read, or if the key does not belong to the certificate.
pub(super) fn identified(
    config: ClientConfig,
    certificate: &Path,
    key: &Path,
) -> anyhow::Result<ClientConfig> {
    let chain = certificates(certificate)?;
    let read = PrivateKeyDer::from_pem_file(key);
    let read = read.with_context(|| format!("cannot read a private key from {}", key.display()))?;
    let config = linerate::tls::with_client_certificate(config, chain, read);
    config.with_context(|| {
        let (key, certificate) = (key.display(), certificate.display());
        format!("{key} is not the private key of {certificate}")
    })
}

fn certificates(file: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let name = file.display();
    let certificates = CertificateDer::pem_file_iter(file);
    let certificates = certificates.with_context(|| format!("cannot read {name}"))?;
    let certificates: Vec<_> = certificates
        .collect::<Result<_, _>>()
        .with_context(|| format!("{name} is not well-formed PEM"))?;
    if certificates.is_empty() {
        bail!("{name} contains no PEM certificate");
    }
    Ok(certificates)
}
