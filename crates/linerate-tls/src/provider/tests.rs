#![allow(clippy::unwrap_used, reason = "a failing test should panic")]

use std::io::{Read, Write};

use rustls::{
    AlertDescription, ClientConfig, ClientConnection, RootCertStore, ServerConfig,
    ServerConnection, SignatureScheme, SupportedProtocolVersion,
    crypto::{
        cipher::{OutboundChunks, OutboundOpaqueMessage, OutboundPlainMessage},
        ring,
    },
    pki_types::PrivateKeyDer,
    version::{TLS12, TLS13},
};

use super::*;

/// Which records to send without content: those of this type whose content begins with this byte.
#[derive(Clone, Copy)]
struct Emptied(ContentType, u8);

const CLOSE_NOTIFY: Emptied = Emptied(ContentType::Alert, 1);
const DATA: Emptied = Emptied(ContentType::ApplicationData, b'S');
const FINISHED: Emptied = Emptied(ContentType::Handshake, 20);
const KEY_UPDATE: Emptied = Emptied(ContentType::Handshake, 24);
const NEW_SESSION_TICKET: Emptied = Emptied(ContentType::Handshake, 4);

/// A cipher that encrypts an empty content for the selected records.
struct Emptying<A: ?Sized + 'static>(&'static A, Emptied);

struct EmptyingEncrypter(Box<dyn MessageEncrypter>, Emptied);

impl Tls12AeadAlgorithm for Emptying<dyn Tls12AeadAlgorithm> {
    fn encrypter(&self, key: AeadKey, iv: &[u8], extra: &[u8]) -> Box<dyn MessageEncrypter> {
        Box::new(EmptyingEncrypter(self.0.encrypter(key, iv, extra), self.1))
    }

    fn decrypter(&self, key: AeadKey, iv: &[u8]) -> Box<dyn MessageDecrypter> {
        self.0.decrypter(key, iv)
    }

    fn key_block_shape(&self) -> KeyBlockShape {
        self.0.key_block_shape()
    }

    fn extract_keys(
        &self,
        key: AeadKey,
        iv: &[u8],
        explicit: &[u8],
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        self.0.extract_keys(key, iv, explicit)
    }
}

impl Tls13AeadAlgorithm for Emptying<dyn Tls13AeadAlgorithm> {
    fn encrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageEncrypter> {
        Box::new(EmptyingEncrypter(self.0.encrypter(key, iv), self.1))
    }

    fn decrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageDecrypter> {
        self.0.decrypter(key, iv)
    }

    fn key_len(&self) -> usize {
        self.0.key_len()
    }

    fn extract_keys(
        &self,
        key: AeadKey,
        iv: Iv,
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        self.0.extract_keys(key, iv)
    }
}

impl MessageEncrypter for EmptyingEncrypter {
    fn encrypt(
        &mut self,
        mut plain: OutboundPlainMessage<'_>,
        sequence: u64,
    ) -> Result<OutboundOpaqueMessage, Error> {
        let Emptied(kind, first) = self.1;
        if plain.typ == kind && plain.payload.to_vec().first() == Some(&first) {
            plain.payload = OutboundChunks::Single(&[]);
        }
        self.0.encrypt(plain, sequence)
    }

    fn encrypted_payload_len(&self, payload_bytes: usize) -> usize {
        self.0.encrypted_payload_len(payload_bytes)
    }
}

fn emptying(emptied: Emptied) -> CryptoProvider {
    let provider = ring::default_provider();
    let suites = provider.cipher_suites.iter().map(|suite| match *suite {
        SupportedCipherSuite::Tls12(suite) => {
            SupportedCipherSuite::Tls12(Box::leak(Box::new(Tls12CipherSuite {
                common: common(&suite.common),
                aead_alg: Box::leak(Box::new(Emptying(suite.aead_alg, emptied))),
                ..*suite
            })))
        }
        SupportedCipherSuite::Tls13(suite) => {
            SupportedCipherSuite::Tls13(Box::leak(Box::new(Tls13CipherSuite {
                common: common(&suite.common),
                aead_alg: Box::leak(Box::new(Emptying(suite.aead_alg, emptied))),
                ..*suite
            })))
        }
    });
    CryptoProvider {
        cipher_suites: suites.collect(),
        ..provider
    }
}

/// A client and a server that are connected in memory.
struct Pair {
    client: ClientConnection,
    server: ServerConnection,
}

impl Pair {
    fn new(
        version: &'static SupportedProtocolVersion,
        client: CryptoProvider,
        server: CryptoProvider,
    ) -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let certificate = made.cert.der().clone();
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone()).unwrap();
        let mut server = ServerConfig::builder_with_provider(server.into())
            .with_protocol_versions(&[version])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        let mut client = ClientConfig::builder_with_provider(client.into())
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        server.enable_secret_extraction = true;
        client.enable_secret_extraction = true;
        let name = "localhost".try_into().unwrap();
        Self {
            client: ClientConnection::new(client.into(), name).unwrap(),
            server: ServerConnection::new(server.into()).unwrap(),
        }
    }

    /// Exchanges data until both sides have nothing more to send; returns the results of the client
    /// and the server.
    fn exchange(&mut self) -> [Result<(), Error>; 2] {
        let mut thought = [Ok(()), Ok(())];
        loop {
            let (mut sent, mut answered) = (Vec::new(), Vec::new());
            while self.client.wants_write() {
                self.client.write_tls(&mut sent).unwrap();
            }
            let mut rest = &sent[..];
            while !rest.is_empty() && thought[1].is_ok() {
                self.server.read_tls(&mut rest).unwrap();
                thought[1] = self.server.process_new_packets().map(|_| ());
            }
            while self.server.wants_write() {
                self.server.write_tls(&mut answered).unwrap();
            }
            let mut rest = &answered[..];
            while !rest.is_empty() && thought[0].is_ok() {
                self.client.read_tls(&mut rest).unwrap();
                thought[0] = self.client.process_new_packets().map(|_| ());
            }
            if sent.is_empty() && answered.is_empty() {
                return thought;
            }
        }
    }

    /// Lets the client send "Spam" and then "egg"; returns what the server receives.
    fn heard(&mut self) -> Vec<u8> {
        for text in ["Spam", "egg"] {
            self.client.writer().write_all(text.as_bytes()).unwrap();
            assert_eq!(self.exchange(), [Ok(()), Ok(())]);
        }
        let mut heard = vec![0; 16];
        let bytes = self.server.reader().read(&mut heard).unwrap();
        heard.truncate(bytes);
        heard
    }
}

/// The error of the side that receives such a message, and the alert that the other side gets.
fn refused() -> [Result<(), Error>; 2] {
    [
        Err(PeerMisbehaved::IllegalMiddleboxChangeCipherSpec.into()),
        Err(Error::AlertReceived(AlertDescription::UnexpectedMessage)),
    ]
}

fn strict_ring() -> CryptoProvider {
    strict(ring::default_provider())
}

#[test]
fn t13_a_handshake_that_ends_in_an_empty_message_is_refused() {
    for version in [&TLS12, &TLS13] {
        let mut pair = Pair::new(version, emptying(FINISHED), strict_ring());
        let [client, server] = pair.exchange();
        assert_eq!([server, client], refused(), "{version:?}");
    }
    let mut pair = Pair::new(&TLS12, strict_ring(), emptying(FINISHED));
    assert_eq!(pair.exchange(), refused(), "by the client");
}

#[test]
fn t13_an_empty_message_behind_the_handshake_is_refused_by_servers() {
    let mut pair = Pair::new(&TLS13, emptying(KEY_UPDATE), strict_ring());
    assert_eq!(pair.exchange(), [Ok(()), Ok(())]);
    pair.client.refresh_traffic_keys().unwrap();
    let [client, server] = pair.exchange();
    assert_eq!([server, client], refused());
}

#[test]
fn t13_an_empty_message_behind_the_handshake_is_refused_by_clients() {
    let mut pair = Pair::new(&TLS13, strict_ring(), emptying(NEW_SESSION_TICKET));
    assert_eq!(pair.exchange(), refused());
}

#[test]
fn t13_an_empty_alert_is_refused() {
    for version in [&TLS12, &TLS13] {
        let mut pair = Pair::new(version, emptying(CLOSE_NOTIFY), strict_ring());
        assert_eq!(pair.exchange(), [Ok(()), Ok(())]);
        pair.client.send_close_notify();
        let [client, server] = pair.exchange();
        assert_eq!([server, client], refused(), "{version:?}");
    }
}

/// If this test fails, rustls has become strict itself.
#[test]
fn rustls_alone_takes_empty_messages() {
    let mut pair = Pair::new(
        &TLS13,
        ring::default_provider(),
        emptying(NEW_SESSION_TICKET),
    );
    assert_eq!(pair.exchange(), [Ok(()), Ok(())]);
    let mut pair = Pair::new(&TLS12, emptying(FINISHED), ring::default_provider());
    assert_eq!(pair.exchange(), [Ok(()), Ok(())], "nothing more comes");
    assert!(pair.server.is_handshaking());
}

/// RFC 8446 §5.1: "Zero-length fragments of Application Data MAY be sent".
#[test]
fn data_without_content_is_in_order() {
    for version in [&TLS12, &TLS13] {
        let mut pair = Pair::new(version, emptying(DATA), strict_ring());
        assert_eq!(pair.exchange(), [Ok(()), Ok(())]);
        assert_eq!(pair.heard(), b"egg", "{version:?}");
    }
}

/// Returns whether a suite can be negotiated with the key of a `Pair`.
fn fits_the_key(suite: &&SupportedCipherSuite) -> bool {
    match suite {
        SupportedCipherSuite::Tls12(suite) => {
            suite.sign.contains(&SignatureScheme::ECDSA_NISTP256_SHA256)
        }
        SupportedCipherSuite::Tls13(_) => true,
    }
}

#[test]
fn every_suite_works_and_keeps_what_it_can() {
    let (inner, provider) = (ring::default_provider(), provider());
    assert_eq!(inner.cipher_suites, provider.cipher_suites);
    for suite in provider.cipher_suites.iter().filter(fits_the_key) {
        let version = suite.version();
        let only = || CryptoProvider {
            cipher_suites: vec![*suite],
            ..ring::default_provider()
        };
        let mut pair = Pair::new(version, only(), only());
        assert_eq!(pair.exchange(), [Ok(()), Ok(())], "{suite:?}");
        assert_eq!(pair.heard(), b"Spamegg");
        let client = pair.client.dangerous_extract_secrets().unwrap();
        let server = pair.server.dangerous_extract_secrets().unwrap();
        assert_eq!([client.tx.0, client.rx.0], [server.rx.0, server.tx.0]);
        let speaks_quic = suite
            .tls13()
            .is_some_and(|suite| suite.quic_suite().is_some());
        assert_eq!(speaks_quic, version == &TLS13);
    }
}

#[test]
fn a_provider_is_made_once() {
    assert!(Arc::ptr_eq(&provider(), &provider()));
}
