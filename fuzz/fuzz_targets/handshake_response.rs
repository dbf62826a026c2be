//! Any bytes as a server's answer to a request to upgrade.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_proto::{
    deflate::Deflate,
    handshake::{ClientHandshake, HandshakeError},
};
use linerate_testkit::Cuts;

/// The client's result for an answer: the agreement, and the length of the answer.
#[derive(Debug, PartialEq)]
struct Outcome {
    error: Option<HandshakeError>,
    head_bytes: usize,
    agreed: String,
    refusal: String,
}

// The first byte chooses whether subprotocols and compression are offered. The result does not
// depend on how the bytes are split, and an answer that accepts what was not offered is refused.
fuzz_target!(|data: &[u8]| {
    let Some((choice, wire)) = data.split_first() else {
        return;
    };
    let whole = judge(*choice, wire, Cuts::Whole);
    for cuts in [Cuts::Every(1), Cuts::Random(u64::from(*choice))] {
        assert_eq!(judge(*choice, wire, cuts), whole, "{cuts:?}");
    }
    if let Some(error) = whole.and_then(|outcome| outcome.error) {
        assert!(is_expected(&error), "{error}");
    }
});

/// Feeds `wire` up to the end of the answer; `None` if it is incomplete.
fn judge(choice: u8, wire: &[u8], cuts: Cuts) -> Option<Outcome> {
    let (has_subprotocols, has_deflate) = (choice & 1 != 0, choice & 2 != 0);
    let mut handshake =
        ClientHandshake::new("a", "/", *b"the sample nonce").expect("host and target are valid");
    if has_subprotocols {
        for subprotocol in ["chat", "superchat"] {
            handshake = handshake.with_subprotocol(subprotocol).expect("a token");
        }
    }
    if has_deflate {
        handshake = handshake.with_deflate(Deflate::default());
    }
    let mut outcome = None;
    let mut fed = 0;
    cuts.for_each_piece(wire, |piece| {
        if outcome.is_some() {
            return;
        }
        let judged = handshake.handle_input(piece);
        let (error, head_bytes, agreed) = match judged {
            Ok(None) => {
                fed += piece.len();
                return;
            }
            Ok(Some((negotiated, bytes))) => {
                let subprotocol = negotiated.subprotocol();
                assert!(subprotocol.is_none() || has_subprotocols);
                assert!(negotiated.deflate().is_none() || has_deflate);
                let agreed = format!("{subprotocol:?} {:?}", negotiated.deflate());
                (None, fed + bytes, agreed)
            }
            Err(error) => {
                assert_eq!(
                    handshake.handle_input(b"").err(),
                    Some(error),
                    "it stays so"
                );
                (Some(error), 0, String::new())
            }
        };
        outcome = Some(Outcome {
            error,
            head_bytes,
            agreed,
            refusal: format!("{:?}", handshake.refusal_headers()),
        });
    });
    outcome
}

/// The errors that an answer can cause; those of a request, of time and of policy are findings.
fn is_expected(error: &HandshakeError) -> bool {
    matches!(
        error,
        HandshakeError::AcceptMismatch
            | HandshakeError::BodyUnexpected
            | HandshakeError::ConnectionNotUpgrade
            | HandshakeError::ContentLengthInvalid
            | HandshakeError::ExtensionParameterInvalid { .. }
            | HandshakeError::ExtensionParametersTooMany { .. }
            | HandshakeError::ExtensionUnoffered
            | HandshakeError::ExtensionsMalformed { .. }
            | HandshakeError::ExtensionsTooMany { .. }
            | HandshakeError::HeadByteInvalid { .. }
            | HandshakeError::HeadTooLarge { .. }
            | HandshakeError::HeaderDuplicate { .. }
            | HandshakeError::HeaderMissing { .. }
            | HandshakeError::HeaderNameInvalid
            | HandshakeError::HeaderValueInvalid
            | HandshakeError::HeadersTooMany { .. }
            | HandshakeError::HttpVersionUnsupported
            | HandshakeError::StartLineInvalid
            | HandshakeError::StatusUnexpected { .. }
            | HandshakeError::SubprotocolUnoffered
            | HandshakeError::TransferEncodingInvalid
            | HandshakeError::UpgradeNotWebSocket
    )
}
