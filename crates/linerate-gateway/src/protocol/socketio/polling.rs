//! Long polling (Engine.IO, "HTTP long-polling" and "Upgrade"): packets in the bodies of requests
//! and responses.

use std::borrow::Cow;

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http::Method;
use linerate_proto::Opcode;
use serde::Serialize;

use crate::protocol::{
    decode::DecodeError,
    dialect::{Opening, PollingEndpoint, WEBSOCKET},
    polling::{
        BodyLimit, ClientMessage, FirstMessage, PollEnd, Polled, PolledName, PollingOutcome,
        PollingRefusal, PollingRequest, PollingResponse, ProbeStep, messages,
    },
};

/// The name of the transport.
const POLLING: &str = "polling";

/// What separates the packets in a body.
const SEPARATOR: u8 = 0x1e;

/// What begins an attachment in a body, before its Base64.
const ATTACHMENT: u8 = b'b';

pub(crate) static ENDPOINT: PollingEndpoint = PollingEndpoint {
    path: super::PATH,
    name: ("socketio", POLLING),
    dialect: &super::EVENTS,
    hold: None,
    limit: BodyLimit::Body,
    read,
    split,
    respond,
    probe,
};

/// An error as the server of Engine.IO describes it.
#[derive(Serialize)]
struct ErrorBody {
    code: u8,
    message: &'static str,
}

/// Checks a request in the order in which the server of Engine.IO does.
fn read(method: &Method, opening: &Opening<'_>) -> Result<PollingRequest, PollingRefusal> {
    let transport = parameter(opening, "transport");
    let is_polling = transport.as_deref() == Some(POLLING);
    if !is_polling && transport.as_deref() != Some(WEBSOCKET) {
        return Err(PollingRefusal::UnknownTransport);
    }
    let Some(sid) = parameter(opening, "sid").filter(|sid| !sid.is_empty()) else {
        if !is_polling {
            // The method is that of an opening handshake, which is checked with the rest of it.
            check_version(opening)?;
            return Ok(PollingRequest::WebSocket(None));
        }
        if *method != Method::GET {
            return Err(PollingRefusal::BadHandshakeMethod);
        }
        check_version(opening)?;
        return Ok(PollingRequest::Open);
    };
    let name = PolledName::parse(&sid).ok_or(PollingRefusal::UnknownSession)?;
    match *method {
        _ if !is_polling => Ok(PollingRequest::WebSocket(Some(name))),
        Method::GET => Ok(PollingRequest::Poll(name)),
        Method::POST => Ok(PollingRequest::Send(name)),
        _ => Err(PollingRefusal::BadRequest),
    }
}

fn check_version(opening: &Opening<'_>) -> Result<(), PollingRefusal> {
    match parameter(opening, "EIO").as_deref() {
        Some("4") => Ok(()),
        _ => Err(PollingRefusal::UnsupportedVersion),
    }
}

/// Returns a parameter in the query of a request.
pub(super) fn parameter<'a>(opening: &Opening<'a>, name: &str) -> Option<Cow<'a, str>> {
    let mut pairs = url::form_urlencoded::parse(opening.query.as_bytes());
    pairs.find(|(key, _)| key == name).map(|(_, value)| value)
}

fn split(mut body: Bytes) -> FirstMessage {
    let rest = body.iter().position(|&byte| byte == SEPARATOR);
    let rest = rest.map(|at| {
        let mut rest = body.split_off(at);
        bytes::Buf::advance(&mut rest, 1);
        rest
    });
    (message(body), rest)
}

fn message(packet: Bytes) -> Result<ClientMessage, DecodeError> {
    match packet.split_first() {
        Some((&ATTACHMENT, base64)) => {
            let what = "Base64 of an attachment";
            let bytes = BASE64_STANDARD.decode(&*without_line_breaks(base64));
            let bytes = bytes.map_err(|_| DecodeError::Packet { what })?;
            Ok(ClientMessage::Binary(bytes.into()))
        }
        _ => Ok(ClientMessage::Text(packet)),
    }
}

/// Removes the line breaks of Base64 (RFC 2045 §6.8), which the Java client sends.
fn without_line_breaks(base64: &[u8]) -> Cow<'_, [u8]> {
    let is_break = |byte: &u8| matches!(byte, b'\r' | b'\n');
    if !base64.iter().any(is_break) {
        return base64.into();
    }
    base64
        .iter()
        .copied()
        .filter(|byte| !is_break(byte))
        .collect()
}

fn respond(outcome: PollingOutcome<'_>) -> PollingResponse {
    let (status, content_type, body) = match outcome {
        PollingOutcome::Opened(_, polled) | PollingOutcome::Polled(_, polled) => {
            (200, "text/plain; charset=UTF-8", payload(polled))
        }
        PollingOutcome::Sent => (200, "text/html", b"ok".to_vec()),
        // Clients are authenticated by packets, so that only their requests are refused.
        PollingOutcome::Denied(_) => return refuse(PollingRefusal::Forbidden),
        PollingOutcome::Refused(refusal) => return refuse(refusal),
    };
    PollingResponse {
        status,
        content_type,
        body,
    }
}

/// Returns the body that has the packets of these frames. A body has at least one packet.
fn payload(polled: &Polled) -> Vec<u8> {
    let mut out = Vec::with_capacity(polled.frames.iter().map(Bytes::len).sum());
    let mut is_first = true;
    let mut begin = |out: &mut Vec<u8>| {
        if !std::mem::take(&mut is_first) {
            out.push(SEPARATOR);
        }
    };
    for (opcode, payload) in polled.frames.iter().flat_map(|piece| messages(piece)) {
        begin(&mut out);
        match opcode {
            Opcode::Binary => {
                out.push(ATTACHMENT);
                out.extend_from_slice(BASE64_STANDARD.encode(payload).as_bytes());
            }
            _ => out.extend_from_slice(payload),
        }
    }
    let last = match polled.end {
        PollEnd::Closed => b'1',
        PollEnd::Idle | PollEnd::Upgrading => b'6',
        PollEnd::Ready => return out,
    };
    begin(&mut out);
    out.push(last);
    out
}

/// Returns the response to a request that is refused, with the codes of the server of Engine.IO
/// where it has one.
fn refuse(refusal: PollingRefusal) -> PollingResponse {
    let (status, code, message) = match refusal {
        PollingRefusal::UnknownTransport => (400, 0, "Transport unknown"),
        PollingRefusal::UnknownSession => (400, 1, "Session ID unknown"),
        PollingRefusal::BadHandshakeMethod => (400, 2, "Bad handshake method"),
        PollingRefusal::BadRequest => (400, 3, "Bad request"),
        PollingRefusal::Forbidden => (403, 4, "Forbidden"),
        PollingRefusal::UnsupportedVersion => (400, 5, "Unsupported protocol version"),
        PollingRefusal::TooLarge { .. }
        | PollingRefusal::TooLong { .. }
        | PollingRefusal::Unavailable => {
            let is_large = refusal != PollingRefusal::Unavailable;
            return PollingResponse {
                status: if is_large { 413 } else { 503 },
                content_type: "text/plain; charset=UTF-8",
                body: format!("{refusal}\n").into_bytes(),
            };
        }
    };
    let body = serde_json::to_vec(&ErrorBody { code, message });
    PollingResponse {
        status,
        content_type: "application/json",
        body: body.expect("serializing a struct to memory cannot fail"),
    }
}

fn probe(packet: &[u8]) -> Option<ProbeStep> {
    match packet {
        b"2probe" => Some(ProbeStep::Answer("3probe")),
        b"5" => Some(ProbeStep::Upgrade),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{HeaderMap, Method};
    use linerate_proto::{Opcode, frame};
    use uuid::Uuid;

    use super::{payload, probe, read, refuse, split};
    use crate::protocol::{
        decode::DecodeError,
        dialect::Opening,
        polling::{
            ClientMessage, PollEnd, Polled, PolledName, PollingRefusal, PollingRequest, ProbeStep,
        },
    };

    fn asked(method: &Method, query: &str) -> Result<PollingRequest, PollingRefusal> {
        let headers = HeaderMap::new();
        let opening = Opening {
            path: "/socket.io/",
            query,
            headers: &headers,
            subprotocol: None,
        };
        read(method, &opening)
    }

    /// Returns the messages in a body, up to the first that is malformed.
    fn found(body: &'static [u8]) -> Result<Vec<ClientMessage>, DecodeError> {
        let mut rest = Some(Bytes::from_static(body));
        let mut found = Vec::new();
        while let Some(body) = rest.take() {
            let (message, behind) = split(body);
            found.push(message?);
            rest = behind;
        }
        Ok(found)
    }

    #[test]
    fn requests_are_checked_in_the_order_of_the_server_of_engine_io() {
        let name = PolledName {
            node: "node".to_owned(),
            session: Uuid::from_u128(7),
        };
        let sid = format!("sid={name}");
        let polling = format!("EIO=4&transport=polling&{sid}");
        assert_eq!(
            asked(&Method::GET, "EIO=4&transport=polling&t=abc"),
            Ok(PollingRequest::Open)
        );
        assert_eq!(
            asked(&Method::GET, &polling),
            Ok(PollingRequest::Poll(name.clone()))
        );
        assert_eq!(
            asked(&Method::POST, &polling),
            Ok(PollingRequest::Send(name.clone()))
        );
        assert_eq!(
            asked(&Method::GET, "EIO=4&transport=websocket"),
            Ok(PollingRequest::WebSocket(None))
        );
        let upgrade = format!("EIO=4&transport=websocket&{sid}");
        assert_eq!(
            asked(&Method::GET, &upgrade),
            Ok(PollingRequest::WebSocket(Some(name)))
        );
        for (method, query, refusal) in [
            (Method::GET, "", PollingRefusal::UnknownTransport),
            (
                Method::GET,
                "EIO=4&transport=webtransport",
                PollingRefusal::UnknownTransport,
            ),
            (
                Method::GET,
                "EIO=4&transport=polling&sid=a",
                PollingRefusal::UnknownSession,
            ),
            (
                Method::POST,
                "EIO=4&transport=polling",
                PollingRefusal::BadHandshakeMethod,
            ),
            (
                Method::GET,
                "EIO=3&transport=polling",
                PollingRefusal::UnsupportedVersion,
            ),
            (
                Method::GET,
                "transport=websocket",
                PollingRefusal::UnsupportedVersion,
            ),
            (Method::PUT, &polling, PollingRefusal::BadRequest),
        ] {
            assert_eq!(asked(&method, query), Err(refusal), "{method} {query}");
        }
    }

    #[test]
    fn a_body_has_one_or_more_packets() {
        let text = |text: &'static str| ClientMessage::Text(Bytes::from_static(text.as_bytes()));
        let binary = |bytes: &'static [u8]| ClientMessage::Binary(Bytes::from_static(bytes));
        assert_eq!(found(b""), Ok(vec![text("")]));
        assert_eq!(found(b"3"), Ok(vec![text("3")]));
        let body = b"451-[\"a\"]\x1eb/wA=\x1e3\x1e";
        let expected = vec![text("451-[\"a\"]"), binary(b"\xff\0"), text("3"), text("")];
        assert_eq!(found(body), Ok(expected));
        assert_eq!(found(b"b"), Ok(vec![binary(b"")]));
        for body in [&b"b/w\nA=\n"[..], b"b\r\n/wA=\r\n"] {
            assert_eq!(found(body), Ok(vec![binary(b"\xff\0")]));
        }
        for body in [&b"b%"[..], b"3\x1eb/w", b"b/wA=\t", b"b/w A="] {
            let error = found(body).unwrap_err();
            assert_eq!(
                error.to_string(),
                "malformed packet: Base64 of an attachment"
            );
        }
    }

    #[test]
    fn frames_become_packets() {
        let mut piece = Vec::new();
        frame::append(&mut piece, Opcode::Text, b"451-[\"a\"]");
        frame::append(&mut piece, Opcode::Binary, b"\xff\0");
        let mut ping = Vec::new();
        frame::append(&mut ping, Opcode::Text, b"2");
        let frames = vec![Bytes::from(piece), ping.into()];
        let body = |frames: &[Bytes], end| {
            let frames = frames.to_vec();
            String::from_utf8(payload(&Polled::new(frames, end))).unwrap()
        };
        assert_eq!(
            body(&frames, PollEnd::Ready),
            "451-[\"a\"]\u{1e}b/wA=\u{1e}2"
        );
        assert_eq!(body(&frames[1..], PollEnd::Closed), "2\u{1e}1");
        assert_eq!(body(&[], PollEnd::Closed), "1");
        assert_eq!(body(&[], PollEnd::Upgrading), "6");
    }

    #[test]
    fn errors_are_those_of_engine_io() {
        let refused = refuse(PollingRefusal::UnknownSession);
        assert_eq!(
            (refused.status, refused.content_type),
            (400, "application/json")
        );
        let expected = br#"{"code":1,"message":"Session ID unknown"}"#;
        assert_eq!(refused.body, expected);
        assert_eq!(refuse(PollingRefusal::Forbidden).status, 403);
        let refused = refuse(PollingRefusal::TooLarge { bytes_max: 7 });
        assert_eq!(refused.status, 413);
        assert_eq!(refused.body, b"body exceeds the limit of 7 bytes\n");
    }

    #[test]
    fn a_websocket_is_probed_before_it_continues_a_session() {
        assert_eq!(probe(b"2probe"), Some(ProbeStep::Answer("3probe")));
        assert_eq!(probe(b"5"), Some(ProbeStep::Upgrade));
        for packet in ["", "2", "40", "3probe"] {
            assert_eq!(probe(packet.as_bytes()), None, "{packet}");
        }
    }
}
