//! Any bytes as the first message of a TLS client, compared with rustls.
#![no_main]

use std::sync::{
    Arc, LazyLock,
    atomic::{AtomicBool, Ordering},
};

use libfuzzer_sys::fuzz_target;
use linerate_testkit::Cuts;
use linerate_tls::{HelloError, HelloReader};
use rustls::{
    Error, PeerIncompatible, ServerConfig,
    server::{Acceptor, ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

// The first byte chooses whether the rest is sent unchanged or, as a message, in records of a given
// size. However it is split, our parser gives the same verdict at the same byte. rustls does not
// accept what our parser refuses, except for what `is_permitted`.
fuzz_target!(|data: &[u8]| {
    let Some((choice, data)) = data.split_first() else {
        return;
    };
    let wire = match usize::from(choice & 0x7f) {
        record_bytes if choice & 0x80 != 0 => in_records(data, 1 + record_bytes),
        _ => data.to_vec(),
    };
    let (verdict, told_at) = judge(&wire);
    for cuts in [Cuts::Whole, Cuts::Random(u64::from(*choice))] {
        same(&wire, cuts, verdict, told_at);
    }
    if let Err(error) = verdict {
        assert_record(error);
    }
    match (verdict, ask_rustls(&wire)) {
        (Err(error), Opinion::Taken) => assert!(is_permitted(error, &wire), "{error}"),
        (Ok(is_over), Opinion::Taken) => assert!(is_over, "rustls has seen all of it"),
        (verdict, Opinion::Outdated) => match verdict {
            Err(HelloError::Version { .. }) => {}
            Err(error) => assert!(is_permitted(error, &wire), "{error}"),
            Ok(_) => panic!("an old version was accepted"),
        },
        (_, Opinion::Refused) => {}
    }
});

/// Returns whether rustls may accept what our parser refuses: data after a warning alert. By RFC
/// 8446 §6.2 the connection ends there, and no client sends such an alert before it has an answer.
fn is_permitted(error: HelloError, wire: &[u8]) -> bool {
    let warning = wire
        .windows(7)
        .any(|bytes| bytes[0] == 21 && bytes[3..6] == [0, 2, 1]);
    error == HelloError::Alerted && warning
}

fn in_records(message: &[u8], record_bytes: usize) -> Vec<u8> {
    let records = message.chunks(record_bytes).flat_map(|part| {
        let head = [22, 3, 1, 0, part.len() as u8];
        [&head[..], part].concat()
    });
    records.collect()
}

type Verdict = Result<bool, HelloError>;

/// Feeds byte by byte; returns the verdict, and how many bytes it needed.
fn judge(wire: &[u8]) -> (Verdict, usize) {
    let mut reader = HelloReader::new();
    for (place, byte) in wire.iter().enumerate() {
        let verdict = reader.handle_input(&[*byte]);
        // Never more than has arrived, rounded up to the capacity of a growing vector.
        assert!(reader.kept_bytes() <= 16 + 2 * place);
        if verdict != Ok(false) {
            return (verdict, place + 1);
        }
    }
    (Ok(false), wire.len())
}

/// Feeds pieces: the verdict comes with the piece that contains the deciding byte.
fn same(wire: &[u8], cuts: Cuts, verdict: Verdict, told_at: usize) {
    let mut reader = HelloReader::new();
    let (mut fed, mut is_told) = (0, false);
    cuts.for_each_piece(wire, |piece| {
        if is_told {
            return;
        }
        fed += piece.len();
        let found = reader.handle_input(piece);
        let is_there = fed >= told_at;
        assert_eq!(
            found,
            if is_there { verdict } else { Ok(false) },
            "{cuts:?}"
        );
        is_told = is_there;
    });
}

/// The alert is fatal, and one that the standard defines for this (RFC 8446 §6.2).
fn assert_record(error: HelloError) {
    match error.record() {
        Some([21, 3, 3, 0, 2, 2, 10 | 50 | 70]) => {}
        None => assert_eq!(error, HelloError::Alerted),
        other => panic!("{other:?}"),
    }
}

/// The opinion of rustls about a hello.
enum Opinion {
    /// It would choose a certificate: the version is agreed on.
    Taken,
    /// The hello is complete and offers only old versions.
    Outdated,
    /// It is invalid or incomplete.
    Refused,
}

/// Has no certificate, and records that one was requested.
#[derive(Debug, Default)]
struct Asked(AtomicBool);

impl ResolvesServerCert for Asked {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.store(true, Ordering::Relaxed);
        None
    }
}

fn ask_rustls(mut wire: &[u8]) -> Opinion {
    static ASKED: LazyLock<Arc<Asked>> = LazyLock::new(Arc::default);
    static CONFIG: LazyLock<Arc<ServerConfig>> = LazyLock::new(|| {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring has suites for both");
        Arc::new(
            builder
                .with_no_client_auth()
                .with_cert_resolver(ASKED.clone()),
        )
    });
    let mut acceptor = Acceptor::default();
    while !wire.is_empty() {
        if acceptor.read_tls(&mut wire).is_err() {
            return Opinion::Refused;
        }
        match acceptor.accept() {
            Ok(None) => {}
            Ok(Some(accepted)) => {
                ASKED.0.store(false, Ordering::Relaxed);
                let begun = accepted.into_connection(CONFIG.clone());
                let (error, _) = begun.err().expect("there is no certificate");
                return match error {
                    _ if ASKED.0.load(Ordering::Relaxed) => Opinion::Taken,
                    Error::PeerIncompatible(PeerIncompatible::Tls12NotOffered) => Opinion::Outdated,
                    _ => Opinion::Refused,
                };
            }
            Err(_) => return Opinion::Refused,
        }
    }
    Opinion::Refused
}
