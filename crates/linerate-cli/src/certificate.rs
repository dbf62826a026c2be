//! Server certificates for TLS: generated for one run, or read from files.

use std::{path::Path, sync::Arc};

use anyhow::Context;
use linerate::tls::rustls::{
    self,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

/// Returns a TLS configuration with a new self-signed certificate for `localhost`, `127.0.0.1` and
/// `::1`.
pub(crate) fn self_signed() -> anyhow::Result<Arc<rustls::ServerConfig>> {
    let names = ["localhost", "127.0.0.1", "::1"].map(String::from).to_vec();
    let certified = rcgen::generate_simple_self_signed(names)?;
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der())
        .map_err(|error| anyhow::anyhow!("invalid key of the self-signed certificate: {error}"))?;
    let config = linerate::tls::server_config(vec![certified.cert.der().clone()], key)?;
    Ok(Arc::new(config))
}

/// Returns a TLS configuration with a certificate chain and its key, read from PEM files.
pub(crate) fn from_files(
    certificate: &Path,
    key: &Path,
) -> anyhow::Result<Arc<rustls::ServerConfig>> {
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
    let chain: Vec<_> = chain.with_context(|| format!("cannot read {}", certificate.display()))?;
    anyhow::ensure!(
        !chain.is_empty(),
        "no certificate in {}",
        certificate.display()
    );
    let read = PrivateKeyDer::from_pem_file(key);
    let read = read.with_context(|| format!("cannot read a private key from {}", key.display()))?;
    let config = linerate::tls::server_config(chain, read);
    let config = config.with_context(|| format!("cannot use {}", certificate.display()))?;
    Ok(Arc::new(config))
}
