//! TLS of connections to the application: to its backends and databases.

use std::{
    io,
    path::{Path, PathBuf},
};

use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{PrivateKeyDer, pem::PemObject},
};

use crate::pem_file::{self, certificates};

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

/// Why a file cannot be used.
#[derive(Debug)]
pub(crate) enum TlsFileError {
    /// It cannot be read.
    File { path: PathBuf, source: io::Error },
    /// The content of the file that an option names is not valid.
    Invalid { key: &'static str, reason: String },
}

impl TlsFiles<'_> {
    /// Reads the files.
    ///
    /// # Errors
    /// A file cannot be read, or its content is not valid.
    pub(crate) fn read(self) -> Result<ClientConfig, TlsFileError> {
        let invalid = |key, reason: String| TlsFileError::Invalid { key, reason };
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

fn read_file(path: &Path) -> Result<Vec<u8>, TlsFileError> {
    pem_file::read(path).map_err(|source| TlsFileError::File {
        path: path.to_owned(),
        source,
    })
}
