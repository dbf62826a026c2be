//! TLS of connections to the application: to its backends and databases.

use std::path::Path;

use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{PrivateKeyDer, pem::PemObject},
};

use crate::{
    endpoint_error::EndpointProblem,
    pem_file::{self, certificates},
};

/// The files that a section of the configuration names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TlsFiles<'a> {
    /// The authorities to trust, instead of those of the system.
    pub(crate) authorities: Option<&'a Path>,
    /// The certificate chain to present, together with `key`.
    pub(crate) certificate: Option<&'a Path>,
    /// The private key of that certificate.
    pub(crate) key: Option<&'a Path>,
}

impl TlsFiles<'_> {
    /// Reads the files.
    ///
    /// # Errors
    /// A file cannot be read, or its content is not valid.
    pub(crate) fn read(self) -> Result<ClientConfig, EndpointProblem> {
        let invalid = |key, reason: String| EndpointProblem::invalid(key, reason);
        let config = match self.authorities {
            None => ClientConfig::clone(&linerate::tls::default_client_config()),
            Some(path) => {
                let roots = roots(&read_file(path)?);
                let roots = roots.map_err(|reason| invalid("tls_authorities", reason))?;
                linerate::tls::client_config(roots)
            }
        };
        let (Some(certificate), Some(key)) = (self.certificate, self.key) else {
            return Ok(config);
        };
        let chain = certificates(&read_file(certificate)?);
        let chain = chain.map_err(|reason| invalid("tls_certificate", reason))?;
        let key = PrivateKeyDer::from_pem_slice(&read_file(key)?);
        let key = key.map_err(|error| invalid("tls_key", error.to_string()))?;
        let config = linerate::tls::with_client_certificate(config, chain, key);
        config.map_err(|error| invalid("tls_key", error.to_string()))
    }
}

fn roots(pem: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem)? {
        let added = roots.add(certificate);
        added.map_err(|error| error.to_string())?;
    }
    Ok(roots)
}

/// Reads a PEM file.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, EndpointProblem> {
    pem_file::read(path).map_err(|source| EndpointProblem::File {
        path: path.to_owned(),
        source,
    })
}
