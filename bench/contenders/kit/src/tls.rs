//! TLS with rustls: the same certificate, version and cipher for all contenders in Rust.

use std::sync::Arc;

use tokio_rustls::rustls::{
    CipherSuite, ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    version::TLS13,
};

use crate::{Arguments, Result};

/// Returns TLS 1.3 that prefers AES-128-GCM, or `None` if TLS was not requested.
///
/// # Errors
///
/// A file cannot be read, or the key does not match the certificate.
pub fn server_config(arguments: &Arguments) -> Result<Option<Arc<ServerConfig>>> {
    let Some((certificate, key)) = &arguments.tls else {
        return Ok(None);
    };
    let chain =
        CertificateDer::pem_file_iter(certificate)?.collect::<std::result::Result<_, _>>()?;
    let mut provider = ring::default_provider();
    provider
        .cipher_suites
        .sort_by_key(|suite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256);
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::from_pem_file(key)?)?;
    config.ignore_client_order = true;
    Ok(Some(Arc::new(config)))
}
