//! Certificates for a node, all issued by one authority.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use linerate::tls::{
    self,
    rustls::{
        ClientConfig, RootCertStore,
        pki_types::{CertificateDer, pem::PemObject},
    },
};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

/// A certificate authority, and the files of the latest certificate that it has issued.
pub(crate) struct Certificates {
    directory: TempDir,
    issuer: Issuer<'static, KeyPair>,
    roots: RootCertStore,
}

impl Certificates {
    /// Creates an authority, and a certificate for 127.0.0.1.
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(DnType::CommonName, "authority of the test");
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(certificate.der().clone()).unwrap();
        let made = Self {
            directory: tempfile::tempdir().unwrap(),
            issuer: Issuer::new(params, key),
            roots,
        };
        fs::write(made.authority(), certificate.pem()).unwrap();
        made.rotate();
        made
    }

    /// Replaces the certificate and its key by new ones.
    pub(crate) fn rotate(&self) {
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        fs::write(self.key(), key.serialize_pem()).unwrap();
        fs::write(self.certificate(), certificate.pem()).unwrap();
    }

    /// Returns the certificate that a server should currently present.
    pub(crate) fn current(&self) -> CertificateDer<'static> {
        CertificateDer::from_pem_file(self.certificate()).unwrap()
    }

    /// Returns a client configuration that trusts the authority.
    pub(crate) fn client_config(&self) -> Arc<ClientConfig> {
        Arc::new(tls::client_config(self.roots.clone()))
    }

    pub(crate) fn authority(&self) -> PathBuf {
        self.file("authority.pem")
    }

    pub(crate) fn certificate(&self) -> PathBuf {
        self.file("certificate.pem")
    }

    pub(crate) fn key(&self) -> PathBuf {
        self.file("key.pem")
    }

    fn file(&self, name: &str) -> PathBuf {
        Path::join(self.directory.path(), name)
    }
}
