//! Any bytes as a request to upgrade, or as a plain one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_proto::handshake::{
    HandshakeError, HandshakeLimits, HttpResponse, Refusal, Request, RequestBody, RequestReader,
};
use linerate_testkit::Cuts;

/// The server's result for a request: the answer, and the length of the request.
#[derive(Debug, PartialEq)]
struct Outcome {
    error: Option<HandshakeError>,
    head_bytes: usize,
    answer: Vec<u8>,
}

fuzz_target!(|data: &[u8]| {
    let Some((seed, wire)) = data.split_first_chunk() else {
        return;
    };
    let whole = answer(wire, Cuts::Whole);
    for cuts in [Cuts::Every(1), Cuts::Random(u64::from_le_bytes(*seed))] {
        assert_eq!(answer(wire, cuts), whole, "{cuts:?}");
    }
    if let Some(error) = whole.and_then(|outcome| outcome.error) {
        assert!(is_expected(&error), "{error}");
    }
});

/// Feeds `wire` up to the end of the first request; `None` if it is incomplete.
fn answer(wire: &[u8], cuts: Cuts) -> Option<Outcome> {
    let mut reader = RequestReader::new(HandshakeLimits::default());
    let mut outcome = None;
    let mut fed = 0;
    cuts.for_each_piece(wire, |piece| {
        if outcome.is_some() {
            return;
        }
        let mut answer = Vec::new();
        let (error, head_bytes) = match reader.handle_input(piece) {
            Ok(None) => {
                fed += piece.len();
                return;
            }
            Ok(Some((request, head_bytes))) => {
                check_plain(&request, &wire[..fed + head_bytes]);
                match request.websocket() {
                    Ok(upgrade) => {
                        upgrade.accept().encode(&mut answer);
                        (None, fed + head_bytes)
                    }
                    Err(error) => (Some(error), fed + head_bytes),
                }
            }
            Err(error) => (Some(error), 0),
        };
        if let Some(error) = error {
            Refusal::from(error).encode(&mut answer);
        }
        outcome = Some(Outcome {
            error,
            head_bytes,
            answer,
        });
    });
    outcome
}

/// Checks what a server that also answers plain requests relies on: a request for a WebSocket is
/// never taken for a plain one, a body is never overlooked, and nothing from the request can split
/// the response.
fn check_plain(request: &Request, head: &[u8]) {
    if request.websocket().is_ok() {
        assert!(request.asks_for_websocket());
        assert!(matches!(
            request.body(),
            RequestBody::None | RequestBody::Length(0)
        ));
    }
    let has_field = |name: &[u8]| {
        head.split(|byte| *byte == b'\n').skip(1).any(|line| {
            let field = line.split_at_checked(name.len());
            field.is_some_and(|(field, _)| field.eq_ignore_ascii_case(name))
        })
    };
    let is_framed = has_field(b"Content-Length:") || has_field(b"Transfer-Encoding:");
    assert_eq!(request.body() != RequestBody::None, is_framed);

    let (path, target) = (request.path().to_owned(), request.target());
    let response = HttpResponse::text(path.clone());
    let response = response
        .with_header("X-Target", target)
        .expect("a target is visible ASCII");
    let mut answer = Vec::new();
    response.encode(&mut answer);
    let body = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let body = body.map(|end| &answer[end + 4..]);
    assert_eq!(body, Some(path.as_bytes()));
}

/// The errors that a request can cause; those of a response, of time and of policy are findings.
fn is_expected(error: &HandshakeError) -> bool {
    matches!(
        error,
        HandshakeError::BodyUnexpected
            | HandshakeError::ConnectionNotUpgrade
            | HandshakeError::ContentLengthInvalid
            | HandshakeError::ExtensionParametersTooMany { .. }
            | HandshakeError::ExtensionsMalformed { .. }
            | HandshakeError::ExtensionsTooMany { .. }
            | HandshakeError::HeadByteInvalid { .. }
            | HandshakeError::HeadTooLarge { .. }
            | HandshakeError::HeaderDuplicate { .. }
            | HandshakeError::HeaderMissing { .. }
            | HandshakeError::HeaderNameInvalid
            | HandshakeError::HeaderValueInvalid
            | HandshakeError::HeadersTooMany { .. }
            | HandshakeError::HostInvalid
            | HandshakeError::Http2Preface
            | HandshakeError::HttpVersionUnsupported
            | HandshakeError::KeyInvalid { .. }
            | HandshakeError::MethodNotGet
            | HandshakeError::StartLineInvalid
            | HandshakeError::SubprotocolDuplicate { .. }
            | HandshakeError::SubprotocolsMalformed { .. }
            | HandshakeError::SubprotocolsTooMany { .. }
            | HandshakeError::TargetInvalid
            | HandshakeError::TlsClientHello
            | HandshakeError::TransferEncodingInvalid
            | HandshakeError::UpgradeNotWebSocket
            | HandshakeError::WebSocketVersionUnsupported
    )
}
