//! Tests of what a peer may do to a session, with both ends in memory.
#![allow(clippy::unwrap_used, reason = "a failing test should panic")]

use rustls::{
    ClientConfig, ContentType, RootCertStore, ServerConfig, SupportedProtocolVersion,
    crypto::{CryptoProvider, ring},
    pki_types::{PrivateKeyDer, ServerName},
    version::{TLS12, TLS13},
};

use std::sync::Arc;

use super::{
    connection::{Peer, Tls, prepare_client, prepare_server},
    outcome::*,
};
use crate::memory::pool::Pool;

#[cfg(unix)]
mod moving;
#[cfg(unix)]
mod portable;

/// A client and a server that have completed the handshake.
struct Pair {
    client: Box<Tls>,
    server: Box<Tls>,
    pool: Pool,
}

impl Pair {
    fn new(version: &'static SupportedProtocolVersion) -> Self {
        Self::with(version, ring::default_provider())
    }

    fn with(version: &'static SupportedProtocolVersion, provider: CryptoProvider) -> Self {
        let (peer, config) = configs(version, provider);
        Self::of(&peer, &config)
    }

    fn of(peer: &Peer, config: &Arc<ServerConfig>) -> Self {
        let (mut pool, mut wire) = (Pool::default(), Sealed::new());
        let mut client = Tls::client(peer, &mut wire).unwrap();
        let mut server = Tls::server(config).unwrap();
        while !wire.is_empty() {
            let mut answer = Sealed::new();
            take_all(&mut server, &wire.concat(), &mut answer, &mut pool);
            wire.clear();
            take_all(&mut client, &answer.concat(), &mut wire, &mut pool);
        }
        assert!(client.is_open() && server.is_open());
        Self {
            client,
            server,
            pool,
        }
    }

    /// Sends `times` records with this content from the client; returns the server's outcome and
    /// its response.
    fn send(&mut self, kind: ContentType, content: &[u8], times: usize) -> (Outcome, Sealed) {
        let mut wire = Vec::new();
        for _ in 0..times {
            wire.extend(self.client.seal_as(kind, content));
        }
        let mut answer = Sealed::new();
        let (_, outcome) = take_all(&mut self.server, &wire, &mut answer, &mut self.pool);
        (outcome, answer)
    }
}

fn configs(
    version: &'static SupportedProtocolVersion,
    provider: CryptoProvider,
) -> (Peer, Arc<ServerConfig>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let provider = Arc::new(provider);
    let server = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[version])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let peer = Peer {
        config: prepare_client(&client),
        name: ServerName::try_from("localhost").unwrap(),
    };
    (peer, prepare_server(&server))
}

/// Passes all of `wire`, or everything before the end, to `tls`; returns the plaintext.
fn take_all(
    tls: &mut Tls,
    wire: &[u8],
    sealed: &mut Sealed,
    pool: &mut Pool,
) -> (Vec<u8>, Outcome) {
    let (mut wire, mut all, mut at) = (wire.to_vec(), Vec::new(), 0);
    while at < wire.len() {
        let taken = tls.handle_input(&mut wire[at..], sealed, pool);
        match taken.plaintext {
            Plaintext::InPlace(bytes) => all.extend_from_slice(&wire[at..at + bytes]),
            Plaintext::Joined(record, bytes) => all.extend_from_slice(&record[..bytes]),
        }
        at += taken.bytes;
        if !matches!(taken.outcome, Outcome::Continues) {
            return (all, taken.outcome);
        }
    }
    (all, Outcome::Continues)
}

/// Returns the alert that reports a failure.
fn alert(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Failed(failed) => failed.alert.expect("the failure has an alert").0,
        Outcome::Continues | Outcome::Ended => panic!("the session did not fail"),
    }
}

const UNEXPECTED_MESSAGE: u8 = 10;
const HANDSHAKE_FAILURE: u8 = 40;
const ILLEGAL_PARAMETER: u8 = 47;
const DECODE_ERROR: u8 = 50;

#[test]
fn plaintext_comes_through_however_the_wire_is_cut() {
    for version in [&TLS12, &TLS13] {
        let mut pair = Pair::new(version);
        let text = b"many words ".repeat(5_000);
        let mut sealed = Sealed::new();
        let slices = [&text[..7], &text[7..20_000], &text[20_000..]];
        pair.client.seal(slices.into_iter(), &mut sealed).unwrap();
        let full = 1 << 14;
        assert_eq!(sealed.len(), text.len().div_ceil(full));
        let wire = sealed.concat();
        let mut all = Vec::new();
        for piece in wire.chunks(4_999) {
            let mut answer = Sealed::new();
            all.extend(take_all(&mut pair.server, piece, &mut answer, &mut pair.pool).0);
            assert!(answer.is_empty());
        }
        assert!(all == text);
    }
}

#[test]
fn t04_renegotiation_is_refused() {
    let mut pair = Pair::new(&TLS12);
    // The start of a ClientHello.
    let hello = b"\x01\x00\x00\x02\x03\x03";
    let (outcome, _) = pair.send(ContentType::Handshake, hello, 1);
    assert_eq!(alert(outcome), HANDSHAKE_FAILURE);
}

#[test]
fn t04_few_warnings_are_overlooked() {
    // no_certificate, as a warning.
    let warning = [1, 41];
    let mut pair = Pair::new(&TLS12);
    let (outcome, _) = pair.send(ContentType::Alert, &warning, 4);
    assert!(matches!(outcome, Outcome::Continues));
    let (outcome, _) = pair.send(ContentType::Alert, &warning, 1);
    assert!(matches!(outcome, Outcome::Failed(_)));
    // RFC 8446 §6: all but close_notify and user_canceled are errors, whatever their level.
    let (outcome, _) = Pair::new(&TLS13).send(ContentType::Alert, &warning, 1);
    assert!(matches!(outcome, Outcome::Failed(_)));
    let (outcome, _) = Pair::new(&TLS13).send(ContentType::Alert, &[1, 90], 1);
    assert!(matches!(outcome, Outcome::Continues));
}

#[test]
fn t04_records_without_data_are_not_taken_for_ever() {
    for version in [&TLS12, &TLS13] {
        let mut pair = Pair::new(version);
        let (outcome, _) = pair.send(ContentType::ApplicationData, b"", 32);
        assert!(matches!(outcome, Outcome::Continues));
        let (outcome, _) = pair.send(ContentType::ApplicationData, b"x", 1);
        assert!(matches!(outcome, Outcome::Continues));
        let (outcome, _) = pair.send(ContentType::ApplicationData, b"", 33);
        assert_eq!(alert(outcome), UNEXPECTED_MESSAGE);
    }
}

#[test]
fn t04_what_is_no_key_update_ends_the_session() {
    let kind = ContentType::Handshake;
    for (message, expected) in [
        // The request is neither 0 nor 1.
        (&b"\x18\x00\x00\x01\x02"[..], ILLEGAL_PARAMETER),
        // Two in one record, although the first changes the keys.
        (
            b"\x18\x00\x00\x01\x00\x18\x00\x00\x01\x00",
            UNEXPECTED_MESSAGE,
        ),
        // An empty record, an incomplete message, a Finished, and a ticket from a client.
        (b"", UNEXPECTED_MESSAGE),
        (b"\x18\x00\x00\x01", UNEXPECTED_MESSAGE),
        (b"\x14\x00\x00\x00", UNEXPECTED_MESSAGE),
        (b"\x04\x00\x00\x00", UNEXPECTED_MESSAGE),
    ] {
        let (outcome, answer) = Pair::new(&TLS13).send(kind, message, 1);
        assert_eq!(alert(outcome), expected, "{message:?}");
        assert!(answer.is_empty());
    }
}

#[test]
fn t13_an_alert_that_is_none_ends_the_session() {
    for version in [&TLS12, &TLS13] {
        for (content, expected) in [(&b"\x02"[..], DECODE_ERROR), (b"", UNEXPECTED_MESSAGE)] {
            let (outcome, _) = Pair::new(version).send(ContentType::Alert, content, 1);
            assert_eq!(alert(outcome), expected, "{content:?}");
        }
    }
}

#[test]
fn plaintext_behind_the_handshake_is_refused() {
    for record in [
        &b"\x14\x03\x03\x00\x01\x01"[..],
        b"\x15\x03\x03\x00\x02\x01\x00",
        b"\x16\x03\x03\x00\x04\x18\x00\x00\x00",
        b"GET / HTTP/1.1\r\n",
        b"\x17\x03\x03\xFF\xFF",
    ] {
        let mut pair = Pair::new(&TLS13);
        let mut answer = Sealed::new();
        let taken = take_all(&mut pair.server, record, &mut answer, &mut pair.pool);
        alert(taken.1);
    }
}

#[test]
fn an_unfinished_record_takes_no_more_memory_than_has_arrived() {
    let mut pair = Pair::new(&TLS13);
    let mut answer = Sealed::new();
    // The header of a 16 KiB record and its first three bytes.
    take_all(
        &mut pair.server,
        b"\x17\x03\x03\x40\x00abc",
        &mut answer,
        &mut pair.pool,
    );
    assert!(pair.server.unfinished_capacity() <= 256);
}
