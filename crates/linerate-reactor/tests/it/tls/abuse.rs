//! Floods that cost the server more than the client.

use std::io::{Read, Write};

use linerate_reactor::{
    Options,
    rustls::{
        CipherSuite, SupportedCipherSuite, Tls13CipherSuite,
        crypto::{CipherSuiteCommon, CryptoProvider, ring},
        version::TLS13,
    },
};

use super::{Encrypted, Identity};
use crate::support::masked;

#[test]
fn t04_key_updates_between_messages_are_followed() {
    let server = Encrypted::echo();
    let mut client = server.open();
    for _ in 0..100 {
        client.stream.tls.refresh_traffic_keys().unwrap();
        client.round_trip();
    }
}

#[test]
fn t04_a_flood_of_key_updates_ends_the_connection() {
    let server = Encrypted::echo();
    let mut client = server.open();
    let mut ended = false;
    for _ in 0..40 {
        client.stream.tls.refresh_traffic_keys().unwrap();
        ended |= client.stream.flush().is_err();
    }
    assert!(ended || client.stream.read(&mut [0]).is_err());
    server.open().round_trip();
}

#[test]
fn t04_tiny_records_delay_nobody() {
    let mut options = Options::default();
    options.config.limits.message_bytes_max = 1 << 20;
    let server = Encrypted::start(options, |_| {});
    let mut config = server.config();
    config.max_fragment_size = Some(32);
    let mut flood = server.connect(config).opened();
    let payload = vec![b'x'; 500_000];
    let wire = flood.stream.encrypt_all(&masked(0x1, &payload));
    let mut sending = flood.stream.tcp.stream.try_clone().unwrap();
    let sender = std::thread::spawn(move || sending.write_all(&wire).unwrap());
    let mut other = server.open();
    for _ in 0..50 {
        other.round_trip();
    }
    assert!(flood.frame() == (0x81, payload));
    sender.join().unwrap();
}

/// A server's keys protect no more records than the cipher suite allows.
#[test]
fn keys_are_changed_before_they_are_worn_out() {
    let worn = ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
    let SupportedCipherSuite::Tls13(suite) = worn else {
        panic!("not a TLS 1.3 suite");
    };
    let limited = Box::leak(Box::new(Tls13CipherSuite {
        common: CipherSuiteCommon {
            suite: CipherSuite::TLS13_AES_128_GCM_SHA256,
            hash_provider: suite.common.hash_provider,
            confidentiality_limit: 5,
        },
        hkdf_provider: suite.hkdf_provider,
        aead_alg: suite.aead_alg,
        quic: None,
    }));
    let provider = CryptoProvider {
        cipher_suites: vec![SupportedCipherSuite::Tls13(limited)],
        ..ring::default_provider()
    };
    let identity = Identity::new();
    let config = identity.server(provider);
    let server = Encrypted::start_as(identity, Options::default(), config);
    let config = server.identity.client(ring::default_provider(), &[&TLS13]);
    let mut client = server.connect(config).opened();
    for _ in 0..100 {
        client.round_trip();
    }
}
