//! The certificate and its renewal while the server runs, and encrypted connections.

mod stream;

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use arc_swap::ArcSwap;
use linerate_reactor::TlsAcceptor;
use parking_lot::Mutex;
use rustls::{
    ServerConfig,
    pki_types::{PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

use crate::{config::TlsOptions, pem_file};
pub(super) use stream::TlsStream;

/// A certificate that can be replaced while connections are open.
#[derive(Debug)]
pub(crate) struct Certificate {
    options: TlsOptions,
    current: Arc<CurrentCertificate>,
    acceptor: TlsAcceptor,
    read: Mutex<Option<ModifiedTimes>>,
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file is not valid PEM, or the key does not match the certificate.
    #[error("{}: {reason}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// The modification times of the two files.
type ModifiedTimes = [Option<SystemTime>; 2];

/// Resolves to the current certificate.
#[derive(Debug)]
struct CurrentCertificate(ArcSwap<CertifiedKey>);

impl Certificate {
    /// Loads the certificate and the key from their files.
    ///
    /// # Errors
    /// Fails if a file cannot be read, or the key does not match the certificate.
    pub(crate) fn load(options: &TlsOptions) -> Result<Self, CertificateError> {
        let stamp = stamp(options);
        let current = Arc::new(CurrentCertificate(ArcSwap::new(read(options)?)));
        let config = ServerConfig::builder_with_provider(linerate::tls::provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| pem(&options.certificate, error))?;
        let mut config = config
            .with_no_client_auth()
            .with_cert_resolver(current.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self {
            options: options.clone(),
            current,
            acceptor: TlsAcceptor::new(config),
            read: Mutex::new(Some(stamp)),
        })
    }

    /// Reads the files again and uses them for new connections.
    ///
    /// # Errors
    /// Like [`load`](Self::load), but keeps the current certificate on failure.
    pub(crate) fn reload(&self) -> Result<(), CertificateError> {
        let stamp = stamp(&self.options);
        *self.read.lock() = Some(stamp);
        self.current.0.store(read(&self.options)?);
        Ok(())
    }

    /// Reads the files again if they have changed, and returns whether they have.
    ///
    /// # Errors
    /// Like [`reload`](Self::reload). After a failure, the files are not tried again until they
    /// change once more.
    pub(crate) fn reload_if_changed(&self) -> Result<bool, CertificateError> {
        let known = *self.read.lock();
        if known == Some(stamp(&self.options)) {
            return Ok(false);
        }
        self.reload().map(|()| true)
    }

    /// Returns what accepts encrypted connections.
    pub(super) const fn acceptor(&self) -> &TlsAcceptor {
        &self.acceptor
    }
}

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

fn stamp(options: &TlsOptions) -> ModifiedTimes {
    [&options.certificate, &options.key].map(|path| fs::metadata(path).ok()?.modified().ok())
}

fn read(options: &TlsOptions) -> Result<Arc<CertifiedKey>, CertificateError> {
    let chain = pem_file::certificates(&read_file(&options.certificate)?);
    let chain = chain.map_err(|reason| pem(&options.certificate, reason))?;
    let key = PrivateKeyDer::from_pem_slice(&read_file(&options.key)?);
    let key = key.map_err(|error| pem(&options.key, error))?;
    let certified = CertifiedKey::from_der(chain, key, &linerate::tls::provider());
    let certified = certified.map_err(|error| pem(&options.key, error))?;
    Ok(Arc::new(certified))
}

fn read_file(path: &Path) -> Result<Vec<u8>, CertificateError> {
    pem_file::read(path).map_err(|source| CertificateError::File {
        path: path.to_owned(),
        source,
    })
}

fn pem(path: &Path, reason: impl ToString) -> CertificateError {
    CertificateError::Pem {
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}
