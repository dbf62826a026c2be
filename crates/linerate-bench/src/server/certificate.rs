//! The certificate that servers present over TLS, generated for this run, and the clients that
//! trust it.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use thiserror::Error;

/// A self-signed certificate for `localhost` and its key, in files that are removed when this value
/// is dropped.
#[derive(Debug)]
pub struct Certificate {
    folder: TempDir,
    client: Arc<ClientConfig>,
}

impl Certificate {
    /// Generates a certificate with a key on the curve P-256, which most sites use.
    ///
    /// # Errors
    ///
    /// Returns an error if the certificate cannot be generated or its files cannot be written.
    pub fn new() -> Result<Self, CertificateError> {
        let names = ["localhost", "127.0.0.1"].map(String::from).to_vec();
        let made = rcgen::generate_simple_self_signed(names)?;
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone())?;
        let folder = TempDir::with_prefix("linerate-bench-")?;
        let certificate = Self {
            folder,
            client: Arc::new(client_config(roots)?),
        };
        fs::write(certificate.chain_file(), made.cert.pem())?;
        fs::write(certificate.key_file(), made.signing_key.serialize_pem())?;
        Ok(certificate)
    }

    /// Returns the path of the certificate, in PEM format.
    pub fn chain_file(&self) -> PathBuf {
        self.folder.path().join("certificate.pem")
    }

    /// Returns the path of its key, in PEM format (PKCS #8).
    pub fn key_file(&self) -> PathBuf {
        self.folder.path().join("key.pem")
    }

    /// Returns what a client needs to connect to a server with this certificate.
    pub fn client(&self) -> (Arc<ClientConfig>, ServerName<'static>) {
        let name = ServerName::try_from("localhost").expect("`localhost` is a valid name");
        (Arc::clone(&self.client), name)
    }
}

/// Returns a configuration for clients that use TLS 1.3 with AES-128-GCM and nothing else, so that
/// every server encrypts in the same way.
fn client_config(roots: RootCertStore) -> Result<ClientConfig, rustls::Error> {
    let provider = CryptoProvider {
        cipher_suites: vec![ring::cipher_suite::TLS13_AES_128_GCM_SHA256],
        ..ring::default_provider()
    };
    Ok(ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth())
}

/// The reason why there is no certificate.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// A file cannot be written.
    #[error("cannot write the certificate")]
    File(#[from] io::Error),
    /// The certificate cannot be generated.
    #[error("cannot generate a certificate")]
    Make(#[from] rcgen::Error),
    /// The certificate cannot be used.
    #[error("cannot use the certificate")]
    Use(#[from] rustls::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_are_there_as_long_as_the_value() {
        let certificate = Certificate::new().unwrap();
        let files = [certificate.chain_file(), certificate.key_file()];
        let texts = files.clone().map(|file| fs::read_to_string(file).unwrap());
        assert!(texts[0].starts_with("-----BEGIN CERTIFICATE-----"));
        assert!(texts[1].starts_with("-----BEGIN PRIVATE KEY-----"));
        drop(certificate);
        assert!(!files[0].exists() && !files[1].exists());
    }
}
