//! A backend over TLS that requires a certificate from its clients.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use linerate::tls::{
    provider,
    rustls::{
        RootCertStore, ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer},
        server::WebPkiClientVerifier,
    },
};
use rcgen::{BasicConstraints, Certificate, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

/// What it answers to each request.
const ANSWER: &str = "{\"result\":{\"data\":\"over TLS\"}}";

/// A backend over TLS, with the files that a gateway needs to be served by it.
pub(super) struct Server {
    address: SocketAddr,
    directory: TempDir,
}

impl Server {
    pub(super) async fn start() -> Self {
        let authority = Authority::new();
        let (certificate, key) = authority.issue("localhost");
        let chain = vec![certificate.der().clone()];
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(authority.roots()), provider());
        let config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier.build().unwrap())
            .with_single_cert(chain, private(&key))
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            directory: tempfile::tempdir().unwrap(),
        };
        let (certificate, key) = authority.issue("linerate");
        server.write("authorities.pem", &authority.certificate.pem());
        server.write("certificate.pem", &certificate.pem());
        server.write("key.pem", &key.serialize_pem());
        tokio::spawn(serve(listener, TlsAcceptor::from(Arc::new(config))));
        server
    }

    /// Returns the configuration of a gateway that calls methods of this backend.
    pub(super) fn toml(&self, with_certificate: bool) -> String {
        let url = format!("https://localhost:{}/", self.address.port());
        let authorities = self.path("authorities.pem");
        let mut toml = format!(
            "[channel]\nrpc_backend = \"app\"\n[[backend]]\nname = \"app\"\nurl = {url:?}\n\
             tls_authorities = {authorities:?}\n"
        );
        if with_certificate {
            let (certificate, key) = (self.path("certificate.pem"), self.path("key.pem"));
            toml += &format!("tls_certificate = {certificate:?}\ntls_key = {key:?}\n");
        }
        toml
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, pem: &str) {
        std::fs::write(self.path(name), pem).unwrap();
    }
}

/// Answers one request on each connection.
async fn serve(listener: TcpListener, acceptor: TlsAcceptor) {
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        let Ok(mut stream) = acceptor.accept(socket).await else {
            continue;
        };
        let mut request = vec![0; 4_096];
        let Ok(1..) = stream.read(&mut request).await else {
            continue;
        };
        let length = ANSWER.len();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n");
        let response = format!("{head}\r\n{ANSWER}");
        _ = stream.write_all(response.as_bytes()).await;
        _ = stream.shutdown().await;
    }
}

struct Authority {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut parameters = CertificateParams::new(Vec::<String>::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self {
            certificate: parameters.self_signed(&key).unwrap(),
            issuer: Issuer::new(parameters, key),
        }
    }

    fn issue(&self, name: &str) -> (Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let parameters = CertificateParams::new([name.to_owned()]).unwrap();
        (parameters.signed_by(&key, &self.issuer).unwrap(), key)
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        let certificate: CertificateDer<'static> = self.certificate.der().clone();
        roots.add(certificate).unwrap();
        roots
    }
}

fn private(key: &KeyPair) -> PrivateKeyDer<'static> {
    PrivateKeyDer::Pkcs8(key.serialize_der().into())
}
