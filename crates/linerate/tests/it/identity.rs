//! Identity over TLS: client certificates, names by SNI, protocols by ALPN.

use std::sync::Arc;

use linerate::{
    Client, Error, Server,
    dial::DialError,
    tls::{self, rustls},
};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer},
    server::WebPkiClientVerifier,
};

use crate::{
    raw::in_time,
    support::{Running, echo},
    tls::certificate,
};

/// A certificate authority.
struct Authority {
    certificate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Creates an authority with this name, which is signed by `parent` or by itself.
    fn new(name: &str, parent: Option<&Self>) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let certificate = match parent {
            None => params.self_signed(&key),
            Some(parent) => params.signed_by(&key, &parent.issuer),
        };
        Self {
            certificate: certificate.unwrap().der().clone(),
            issuer: Issuer::new(params, key),
        }
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        roots
    }

    /// Returns a certificate for `name` and its key.
    fn vouch_for(&self, name: &str) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        (certificate.der().clone(), key)
    }
}

/// Returns a server that requires clients to have a certificate from `authority`, and the roots
/// that verify the server.
async fn asking(authority: &Authority) -> (Running, RootCertStore) {
    let ours = Authority::new("servers", None);
    let (certificate, key) = ours.vouch_for("localhost");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(authority.roots()), provider.clone());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let server = Server::new().with_tls(Arc::new(config));
    (Running::start(server, echo).await, ours.roots())
}

fn url(server: &Running) -> String {
    format!("wss://localhost:{}/", server.address.port())
}

fn client(
    roots: &RootCertStore,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Client {
    let config = tls::client_config(roots.clone());
    let config = tls::with_client_certificate(config, chain, key);
    Client::new().with_tls(Arc::new(config.unwrap()))
}

#[tokio::test]
async fn a_client_certificate_is_shown_to_a_server_that_asks() {
    let authority = Authority::new("clients", None);
    let (server, roots) = asking(&authority).await;
    let (certificate, key) = authority.vouch_for("somebody");
    let known = client(&roots, vec![certificate], key);
    drop(in_time(known.connect(&url(&server))).await.unwrap());
    let (certificate, key) = Authority::new("others", None).vouch_for("somebody");
    let unknown = client(&roots, vec![certificate], key);
    let nobody = Client::new().with_tls(Arc::new(tls::client_config(roots)));
    for refused in [unknown, nobody] {
        in_time(refused.connect(&url(&server))).await.unwrap_err();
    }
    server.stop().await;
}

/// By its name, each of these certificates could have been issued by each of the others, so that
/// there are very many possible chains. None of them leads to a root.
#[tokio::test]
async fn t07_a_client_certificate_with_very_many_paths_is_refused_and_others_are_served() {
    let authority = Authority::new("clients", None);
    let (server, roots) = asking(&authority).await;
    let mut last = Authority::new("clients", None);
    let mut chain = Vec::new();
    for _ in 0..40 {
        last = Authority::new("clients", Some(&last));
        chain.push(last.certificate.clone());
    }
    let (certificate, key) = last.vouch_for("somebody");
    chain.insert(0, certificate);
    let exploding = client(&roots, chain, key);
    in_time(exploding.connect(&url(&server))).await.unwrap_err();
    let (certificate, key) = authority.vouch_for("somebody");
    let known = client(&roots, vec![certificate], key);
    drop(in_time(known.connect(&url(&server))).await.unwrap());
    server.stop().await;
}

#[tokio::test]
async fn c01_a_client_certificate_is_not_shown_to_another_origin() {
    let (key, certificate) = {
        let (certificate, key) = Authority::new("clients", None).vouch_for("somebody");
        (key, certificate)
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut raw = crate::raw::Raw::new(listener.accept().await.unwrap().0);
        raw.head().await;
        raw.send("HTTP/1.1 307 \r\nLocation: wss://localhost:1/\r\n\r\n")
            .await;
    });
    let client = client(&tls::bundled_roots(), vec![certificate], key).with_redirects_max(1);
    let error = in_time(client.connect(&format!("ws://{address}/"))).await;
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("must not receive the client certificate"),
        "{error}"
    );
}

#[tokio::test]
async fn c06_the_certificate_is_checked_for_the_name_that_was_asked_for() {
    let (config, roots) = certificate("linerate.test");
    let server = Server::new().with_tls(Arc::new(config));
    let server = Running::start(server, echo).await;
    let client = Client::new().with_tls(Arc::new(tls::client_config(roots)));
    let error = in_time(client.connect(&url(&server))).await.unwrap_err();
    assert!(
        matches!(&error, Error::Dial(DialError::Tls(_))) && error.to_string().contains("name"),
        "{error}"
    );
    // Every later attempt performs the same checks.
    in_time(client.connect(&url(&server))).await.unwrap_err();
    let named = client.with_server_name("linerate.test").unwrap();
    drop(in_time(named.connect(&url(&server))).await.unwrap());
    assert!(Client::new().with_server_name("no name").is_err());
    server.stop().await;
}

#[tokio::test]
async fn t05_what_alpn_agrees_on_is_followed() {
    for (offered_by_server, opens) in [
        (&[][..], true),
        (&["http/1.1"], true),
        (&["unknown", "http/1.1"], true),
        // There is no common protocol: "no_application_protocol" (RFC 7301 §3.2).
        (&["unknown"], false),
    ] {
        let (mut config, roots) = certificate("localhost");
        config.alpn_protocols = offered_by_server
            .iter()
            .map(|name| (*name).into())
            .collect();
        let server = Server::new().with_tls(Arc::new(config));
        let server = Running::start(server, echo).await;
        let client = Client::new().with_tls(Arc::new(tls::client_config(roots)));
        let connected = in_time(client.connect(&url(&server))).await;
        assert_eq!(
            connected.is_ok(),
            opens,
            "{offered_by_server:?}: {connected:?}"
        );
        drop(connected);
        server.stop().await;
    }
}

#[tokio::test]
async fn t05_a_protocol_that_carries_no_websocket_is_an_error() {
    let (mut config, roots) = certificate("localhost");
    config.alpn_protocols = vec![b"mqtt".to_vec()];
    let server = Server::new().with_tls(Arc::new(config));
    let server = Running::start(server, echo).await;
    let mut config = tls::client_config(roots);
    config.alpn_protocols = vec![b"mqtt".to_vec()];
    let client = Client::new().with_tls(Arc::new(config));
    let error = in_time(client.connect(&url(&server))).await.unwrap_err();
    assert!(
        matches!(error, Error::Dial(DialError::ProtocolUnsupported)),
        "{error}"
    );
    server.stop().await;
}
