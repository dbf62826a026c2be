//! Sessions of servers that move to another process.

use linerate_proto::portable::{ImportError, Reader, Version, Writer};
use linerate_testkit::Rng;
use rustls::{KeyLog, SupportedCipherSuite};

use super::*;

/// A KeyUpdate that requests one in return.
const REQUEST: &[u8] = b"\x18\x00\x00\x01\x01";

fn export(tls: &Tls) -> Result<Vec<u8>, SecretsUnavailable> {
    let mut state = Writer::new(Version::NEWEST);
    tls.export(&mut state)?;
    Ok(state.finish())
}

fn import(state: &[u8]) -> Result<Box<Tls>, ImportError> {
    let (mut state, _) = Reader::new(state)?;
    let tls = Tls::import(&mut state, &ring::default_provider())?;
    state.finish()?;
    Ok(tls)
}

impl Pair {
    fn move_server(&mut self) {
        let state = export(&self.server).unwrap();
        self.server = import(&state).unwrap();
        assert!(export(&self.server).unwrap() == state);
    }

    /// Returns a record of the client.
    fn record(&mut self, text: &[u8]) -> Vec<u8> {
        let mut sealed = Sealed::new();
        self.client.seal([text].into_iter(), &mut sealed).unwrap();
        sealed.concat()
    }
}

/// Returns a pair for each cipher suite.
fn pairs() -> impl Iterator<Item = (SupportedCipherSuite, Pair)> {
    let suites = ring::default_provider().cipher_suites;
    suites.into_iter().filter_map(|suite| {
        let version = match suite {
            SupportedCipherSuite::Tls12(_) => &TLS12,
            SupportedCipherSuite::Tls13(_) => &TLS13,
        };
        let mut provider = ring::default_provider();
        provider.cipher_suites = vec![suite];
        // The key of the certificate is ECDSA.
        let is_rsa = format!("{suite:?}").contains("RSA");
        (!is_rsa).then(|| (suite, Pair::with(version, provider)))
    })
}

#[test]
fn a_session_moves_at_every_byte_in_both_directions() {
    let mut count = 0;
    for (suite, mut pair) in pairs() {
        count += 1;
        let texts = [&b"Spam"[..], &[7; 100], b"Eggs"];
        let wire: Vec<u8> = texts.iter().flat_map(|text| pair.record(text)).collect();
        let (mut received, mut answers) = (Vec::new(), Sealed::new());
        for byte in wire.chunks(1) {
            pair.move_server();
            let Pair { server, pool, .. } = &mut pair;
            received.extend(take_all(server, byte, &mut answers, pool).0);
            let text = received.len().to_string();
            let sealed = server.seal([text.as_bytes()].into_iter(), &mut answers);
            sealed.unwrap();
        }
        assert!(received == texts.concat(), "{suite:?}");
        let Pair { client, pool, .. } = &mut pair;
        let (text, outcome) = take_all(client, &answers.concat(), &mut Sealed::new(), pool);
        assert!(matches!(outcome, Outcome::Continues), "{suite:?}");
        assert!(text.ends_with(received.len().to_string().as_bytes()));
    }
    assert_eq!(count, 3 + 3);
}

/// rustls is on the client's side, so that both derive the same keys.
#[test]
fn keys_are_updated_before_and_after_a_move() {
    for (suite, mut pair) in pairs() {
        if let SupportedCipherSuite::Tls12(_) = suite {
            continue;
        }
        for round in 0..6 {
            let (outcome, answer) = pair.send(ContentType::Handshake, REQUEST, 1);
            assert!(matches!(outcome, Outcome::Continues));
            // Our KeyUpdate, to which the client does not respond.
            assert_eq!(answer.len(), 1);
            let Pair { client, pool, .. } = &mut pair;
            let mut sealed = Sealed::new();
            take_all(client, &answer.concat(), &mut sealed, pool);
            assert!(sealed.is_empty());
            pair.client.update_sending();
            if round % 2 == 1 {
                pair.move_server();
            }
            let wire = pair.record(b"Spam");
            let Pair { server, pool, .. } = &mut pair;
            let (text, _) = take_all(server, &wire, &mut sealed, pool);
            assert_eq!(text, b"Spam", "{suite:?} {round}");
            server
                .seal([&b"Eggs"[..]].into_iter(), &mut sealed)
                .unwrap();
            let Pair { client, pool, .. } = &mut pair;
            let (text, _) = take_all(client, &sealed.concat(), &mut Sealed::new(), pool);
            assert_eq!(text, b"Eggs", "{suite:?} {round}");
        }
    }
}

#[test]
fn a_side_that_was_closed_stays_closed() {
    let mut pair = Pair::new(&TLS13);
    let mut sealed = Sealed::new();
    pair.server.close(Alert::CLOSE_NOTIFY, &mut sealed);
    pair.move_server();
    assert!(!pair.server.is_open());
    let wire = pair.record(b"ignored");
    let Pair { server, pool, .. } = &mut pair;
    let (text, outcome) = take_all(server, &wire, &mut sealed, pool);
    assert!(text.is_empty() && matches!(outcome, Outcome::Continues));
    server
        .seal([&b"ignored"[..]].into_iter(), &mut sealed)
        .unwrap();
    assert_eq!(sealed.len(), 1);
}

#[test]
fn what_rustls_keeps_cannot_be_exported() {
    let pair = Pair::new(&TLS13);
    assert_eq!(export(&pair.client), Err(SecretsUnavailable));
    let (_, config) = configs(&TLS13, ring::default_provider());
    let handshake = Tls::server(&config).unwrap();
    assert_eq!(export(&handshake), Err(SecretsUnavailable));
}

#[test]
fn limits_on_records_without_data_continue() {
    for version in [&TLS12, &TLS13] {
        let mut pair = Pair::new(version);
        pair.send(ContentType::ApplicationData, b"", 32);
        pair.move_server();
        let (outcome, _) = pair.send(ContentType::ApplicationData, b"", 1);
        assert_eq!(alert(outcome), UNEXPECTED_MESSAGE);
    }
    let mut pair = Pair::new(&TLS12);
    pair.send(ContentType::Alert, &[1, 41], 4);
    pair.move_server();
    let (outcome, _) = pair.send(ContentType::Alert, &[1, 41], 1);
    assert!(matches!(outcome, Outcome::Failed(_)));
}

#[test]
fn a_provider_without_the_cipher_suite_is_an_error() {
    for (suite, pair) in pairs() {
        let state = export(&pair.server).unwrap();
        let (mut reader, _) = Reader::new(&state).unwrap();
        let mut provider = ring::default_provider();
        provider.cipher_suites.retain(|other| *other != suite);
        let refused = Tls::import(&mut reader, &provider).err();
        let (field, value) = ("cipher suite", u16::from(suite.suite()).into());
        assert_eq!(refused, Some(ImportError::Invalid { field, value }));
    }
}

#[test]
fn damaged_states_are_refused_or_those_of_another_session() {
    let mut rng = Rng::new(23);
    for (_, mut pair) in pairs() {
        let record = pair.record(&[5; 200]);
        let (first, rest) = record.split_at(60);
        let Pair { server, pool, .. } = &mut pair;
        take_all(server, first, &mut Sealed::new(), pool);
        let state = export(&pair.server).unwrap();
        for end in 0..state.len() {
            assert!(import(&state[..end]).is_err());
        }
        for at in 0..state.len() {
            let mut changed = state.clone();
            changed[at] = *rng.pick(&[0, 1, 2, 0x7f, 0x80, 0xff]);
            if let Ok(mut tls) = import(&changed) {
                let mut sealed = Sealed::new();
                take_all(&mut tls, rest, &mut sealed, &mut pair.pool);
                _ = tls.seal([&b"Spam"[..]].into_iter(), &mut sealed);
                _ = export(&tls);
            }
        }
    }
}

/// A program's own key log still receives everything that it asks for.
#[test]
fn the_key_log_of_the_configuration_is_kept() {
    use std::sync::Mutex;

    #[derive(Debug, Default)]
    struct Log(Mutex<Vec<String>>);

    impl KeyLog for Log {
        fn log(&self, label: &str, _: &[u8], _: &[u8]) {
            self.0.lock().unwrap().push(label.to_owned());
        }

        fn will_log(&self, label: &str) -> bool {
            label != "SERVER_TRAFFIC_SECRET_0"
        }
    }

    let log = Arc::new(Log::default());
    let (peer, config) = configs(&TLS13, ring::default_provider());
    let mut config = ServerConfig::clone(&config);
    config.key_log = log.clone();
    let config = prepare_server(&config);
    let pair = Pair::of(&peer, &config);
    assert!(export(&pair.server).is_ok());
    let labels = log.0.lock().unwrap();
    assert!(
        labels
            .iter()
            .any(|label| label == "CLIENT_TRAFFIC_SECRET_0")
    );
    assert!(
        labels
            .iter()
            .all(|label| label != "SERVER_TRAFFIC_SECRET_0")
    );
}
