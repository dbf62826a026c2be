//! Tests of the opening handshake on the wire: one for each row of the project's table of bad
//! inputs, named after the row. Each input is fed whole, byte by byte and split at every position.

mod bounds;
mod client;
mod framing;
mod injection;
mod negotiation;
mod origin;
mod properties;
mod pseudo;
mod syntax;
mod target;
mod tunnel;
mod upgrade;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::*;

/// A request that opens a WebSocket, with the key of RFC 6455 §1.3.
const VALID: &str = "GET /chat HTTP/1.1\r\n\
    Host: example.com\r\n\
    Upgrade: websocket\r\n\
    Connection: Upgrade\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
    Sec-WebSocket-Version: 13\r\n\
    \r\n";

/// The response to [`VALID`].
const ACCEPTED: &str = "HTTP/1.1 101 Switching Protocols\r\n\
    Upgrade: websocket\r\n\
    Connection: Upgrade\r\n\
    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\
    \r\n";

/// What a server does with the bytes of one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    /// The server sends `wire` and takes `rest` as frames.
    Accepted { wire: String, rest: Vec<u8> },
    /// The server sends `wire` and closes.
    Refused { wire: String },
    /// The server waits for more bytes.
    Waiting,
}

/// Runs a server for plain HTTP that supports the subprotocol `chat` and accepts only its own
/// pages.
fn serve<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limits: HandshakeLimits) -> Outcome {
    let mut reader = RequestReader::new(limits);
    let mut pieces = pieces.into_iter();
    while let Some(piece) = pieces.next() {
        let (request, head_bytes) = match reader.handle_input(piece) {
            Ok(None) => continue,
            Ok(Some(found)) => found,
            Err(error) => {
                assert_eq!(
                    reader.handle_input(b"GET / HTTP/1.1\r\n").unwrap_err(),
                    error
                );
                return refused(error.into());
            }
        };
        return match judge(&request) {
            Ok(wire) => {
                let mut rest = piece[head_bytes..].to_vec();
                pieces.for_each(|piece| rest.extend_from_slice(piece));
                Outcome::Accepted { wire, rest }
            }
            Err(error) if request.method() == "HEAD" => {
                refused(Refusal::from(error).without_body())
            }
            Err(error) => refused(error.into()),
        };
    }
    Outcome::Waiting
}

fn judge(request: &Request) -> Result<String, HandshakeError> {
    let upgrade = request.websocket()?;
    OriginPolicy::default().check(request, Scheme::Http)?;
    let mut acceptance = upgrade.accept();
    if let Some(subprotocol) = upgrade.choose_subprotocol(&["chat"]) {
        acceptance = acceptance
            .with_subprotocol(subprotocol)
            .expect("the client offers it");
    }
    let mut wire = Vec::new();
    acceptance.encode(&mut wire);
    Ok(text(wire))
}

fn refused(refusal: Refusal) -> Outcome {
    let mut wire = Vec::new();
    refusal.encode(&mut wire);
    Outcome::Refused { wire: text(wire) }
}

fn text(wire: Vec<u8>) -> String {
    String::from_utf8(wire).expect("we write ASCII")
}

/// Feeds `input` whole, byte by byte and split at every position, which must all have the same
/// outcome. Inputs of more than a kilobyte are split at 256 positions and near their end.
fn outcome_within(input: &[u8], limits: HandshakeLimits) -> Outcome {
    let whole = serve([input], limits);
    assert_eq!(
        serve(input.chunks(1), limits),
        whole,
        "byte by byte: {}",
        input.escape_ascii()
    );
    let stride = if input.len() <= 1_024 {
        1
    } else {
        input.len() / 256
    };
    let last = input.len().saturating_sub(8)..input.len();
    for at in (0..input.len()).step_by(stride).chain(last) {
        let (head, tail) = input.split_at(at);
        assert_eq!(
            serve([head, tail], limits),
            whole,
            "at {at}: {}",
            input.escape_ascii()
        );
    }
    whole
}

fn outcome(input: &[u8]) -> Outcome {
    outcome_within(input, HandshakeLimits::default())
}

/// Asserts that `input` is answered like [`VALID`].
fn accepts(input: impl AsRef<[u8]>) {
    let input = input.as_ref();
    let expected = Outcome::Accepted {
        wire: ACCEPTED.into(),
        rest: Vec::new(),
    };
    assert_eq!(outcome(input), expected, "{}", input.escape_ascii());
}

/// Asserts that `input` is refused with exactly this status line, its headers and this text.
fn refuses(input: impl AsRef<[u8]>, status: &str, message: &str) {
    refuses_within(input, HandshakeLimits::default(), status, message);
}

fn refuses_within(input: impl AsRef<[u8]>, limits: HandshakeLimits, status: &str, message: &str) {
    let input = input.as_ref();
    let headers = match &status[..3] {
        "405" => "Connection: close\r\nAllow: GET\r\n",
        "426" => {
            "Upgrade: websocket\r\nConnection: Upgrade, close\r\nSec-WebSocket-Version: 13\r\n"
        }
        _ => "Connection: close\r\n",
    };
    let wire = format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Type: text/plain; charset=utf-8\r\n\
         Content-Length: {}\r\n\r\n{message}\n",
        message.len() + 1
    );
    assert_eq!(
        outcome_within(input, limits),
        Outcome::Refused { wire },
        "{}",
        input.escape_ascii()
    );
}

/// Returns [`VALID`] with one part of it replaced.
fn edited(from: &str, to: &str) -> String {
    assert!(VALID.contains(from), "{from:?} is not in the request");
    VALID.replacen(from, to, 1)
}

/// Returns [`VALID`] with a header line added.
fn with_line(line: impl AsRef<[u8]>) -> Vec<u8> {
    let mut head = VALID.as_bytes()[..VALID.len() - 2].to_vec();
    head.extend_from_slice(line.as_ref());
    head.extend_from_slice(b"\r\n\r\n");
    head
}

/// Reads one request, which must be complete and well-formed.
fn request(head: impl AsRef<[u8]>) -> Request {
    let mut reader = RequestReader::new(HandshakeLimits::default());
    let found = reader
        .handle_input(head.as_ref())
        .expect("the head is well-formed");
    found.expect("the head is complete").0
}
