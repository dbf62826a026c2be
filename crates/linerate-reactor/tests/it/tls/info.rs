//! What a handler learns about the TLS handshake.

use std::sync::Arc;

use linerate_reactor::{
    Context, Handler, Message, Opened, Options, Server,
    rustls::{
        RootCertStore, ServerConfig,
        crypto::ring,
        pki_types::PrivateKeyDer,
        server::WebPkiClientVerifier,
        version::{TLS12, TLS13},
    },
};

use super::{Client, Identity, Tls};
use crate::support::{Running, driver, masked};

/// Sends what is known when the connection opens, and replies with what is known later.
#[derive(Clone)]
struct Describe;

fn describe(cx: &Context<'_>) -> String {
    let tls = cx.tls().unwrap();
    let alpn = tls.alpn().map(String::from_utf8_lossy);
    format!(
        "{:?} {:?} {:?} {:?}",
        tls.version(),
        tls.cipher_suite(),
        alpn,
        tls.peer_certificates()
            .iter()
            .map(|it| it.len())
            .collect::<Vec<_>>()
    )
}

impl Handler for Describe {
    type Data = ();

    fn open(&mut self, cx: &mut Context<'_>, _opened: Opened<'_>) {
        let text = describe(cx);
        cx.send_text(&text).unwrap();
    }

    fn message(&mut self, (): &mut (), cx: &mut Context<'_>, _message: Message<'_>) {
        let text = describe(cx);
        cx.send_text(&text).unwrap();
    }
}

fn start(config: ServerConfig) -> Running {
    let mut options = Options::default();
    options.driver = driver();
    let server = Server::new().with_workers(1).with_options(options);
    Running::serve(
        server
            .with_tls(Arc::new(config))
            .with_route("/chat", Describe),
    )
}

#[test]
fn a_handler_learns_version_suite_protocol_and_certificates() {
    let (identity, user) = (Identity::new(), Identity::new());
    let mut roots = RootCertStore::empty();
    roots.add(user.certificate.clone()).unwrap();
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(
            vec![identity.certificate.clone()],
            PrivateKeyDer::Pkcs8(identity.key.clone_key()),
        )
        .unwrap();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let server = start(config);
    for (version, known) in [
        (&TLS13, "TLSv1_3 TLS13_AES_256_GCM_SHA384"),
        (&TLS12, "TLSv1_2 TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"),
    ] {
        let mut config = identity.client(ring::default_provider(), &[version]);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let key = PrivateKeyDer::Pkcs8(user.key.clone_key());
        let resolver = linerate_reactor::rustls::sign::SingleCertAndKey::from(
            linerate_reactor::rustls::sign::CertifiedKey::from_der(
                vec![user.certificate.clone()],
                key,
                &ring::default_provider(),
            )
            .unwrap(),
        );
        config.client_auth_cert_resolver = Arc::new(resolver);
        let mut client = Client::new(Tls::new(server.address, config)).opened();
        let whole = format!("{known} Some(\"http/1.1\") [{}]", user.certificate.len());
        assert_eq!(client.frame(), (0x81, whole.into_bytes()));
        // What takes memory is not kept.
        client.send(&masked(0x1, b""));
        let rest = format!("{known} None []");
        assert_eq!(client.frame(), (0x81, rest.into_bytes()));
    }
}

#[test]
fn without_a_request_for_certificates_there_are_none() {
    let identity = Identity::new();
    let server = start(identity.server(ring::default_provider()));
    let config = identity.client(ring::default_provider(), &[&TLS13]);
    let mut client = Client::new(Tls::new(server.address, config)).opened();
    let known = b"TLSv1_3 TLS13_AES_256_GCM_SHA384 None []".to_vec();
    assert_eq!(client.frame(), (0x81, known));
}
