//! Long polling: messages in the bodies of requests, one in a line, and in JSON responses
//! (`Phoenix.Transports.LongPoll`).
//!
//! The parameter `token` names the session. When it opens a session, the same parameter can be the
//! connection token of the client.

use std::{borrow::Cow, time::Duration};

use base64::Engine;
use bytes::{Buf, Bytes};
use http::Method;
use linerate_proto::Opcode;
use serde::Serialize;

use super::{opening, text};
use crate::protocol::{
    codes::Refusal,
    decode::DecodeError,
    dialect::{Opening, PollingEndpoint},
    polling::{
        BodyLimit, ClientMessage, FirstMessage, PollEnd, Polled, PolledName, PollingOutcome,
        PollingRefusal, PollingRequest, PollingResponse, messages,
    },
};

/// How long a poll waits for a message, as in Phoenix. The npm package waits twice as long, and a
/// client that polls may be silent for one and a half times as long.
const HOLD: Duration = Duration::from_secs(10);

/// The session has ended, or is new: "Gone".
const GONE: u16 = 410;
/// The client may not connect.
const FORBIDDEN: u16 = 403;
/// The server cannot serve the request now.
const FAILED: u16 = 500;

/// What separates the messages in a body.
const SEPARATOR: u8 = b'\n';

pub(crate) static ENDPOINT: PollingEndpoint = PollingEndpoint {
    path: "/socket/longpoll",
    name: ("phoenix", "longpoll"),
    dialect: &super::CHANNELS,
    // Polls are signs of life.
    hold: Some(|config| HOLD.min(config.phoenix.heartbeat_timeout / 2)),
    limit: BodyLimit::Message {
        separator: SEPARATOR,
    },
    read,
    split,
    respond,
    probe: |_| None,
};

/// A response. Its status is what clients read; that of HTTP is nearly always 200.
#[derive(Debug, Serialize)]
struct Body<'a> {
    status: u16,
    /// The session for the next poll. Without one, the client has to open a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<Vec<Cow<'a, str>>>,
    /// Why a request is refused, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// Returns what a request is for. What is not the name of a session is a token of the client, as
/// in Phoenix.
fn read(method: &Method, opening: &Opening<'_>) -> Result<PollingRequest, PollingRefusal> {
    let parameters = url::form_urlencoded::parse(opening.query.as_bytes());
    let token = parameters.filter(|(name, _)| name == "token").last();
    let name = token.and_then(|(_, token)| PolledName::parse(&token));
    match (method, name) {
        (&Method::GET, Some(name)) => Ok(PollingRequest::Poll(name)),
        (&Method::GET, None) => Ok(PollingRequest::Open),
        (&Method::POST, Some(name)) => Ok(PollingRequest::Send(name)),
        (&Method::POST, None) => Err(PollingRefusal::UnknownSession),
        _ => Err(PollingRefusal::BadHandshakeMethod),
    }
}

/// Takes the first line that is not empty. A body without one is an empty message.
fn split(mut body: Bytes) -> FirstMessage {
    skip_breaks(&mut body);
    let end = body.iter().position(|&byte| byte == SEPARATOR);
    let rest = end.map(|at| body.split_off(at)).and_then(|mut rest| {
        skip_breaks(&mut rest);
        (!rest.is_empty()).then_some(rest)
    });
    if body.last() == Some(&b'\r') {
        body.truncate(body.len() - 1);
    }
    (message(body), rest)
}

fn skip_breaks(body: &mut Bytes) {
    let is_break = |byte: &&u8| matches!(**byte, b'\r' | SEPARATOR);
    let breaks = body.iter().take_while(is_break).count();
    body.advance(breaks);
}

/// A text message is a JSON array, which begins like no Base64.
fn message(line: Bytes) -> Result<ClientMessage, DecodeError> {
    match line.first() {
        Some(b'[') | None => Ok(ClientMessage::Text(line)),
        Some(_) => {
            let what = "Base64 of a binary message";
            let bytes = opening::BASE64.decode(&line);
            let bytes = bytes.map_err(|_| DecodeError::Packet { what })?;
            Ok(ClientMessage::Binary(bytes.into()))
        }
    }
}

fn respond(outcome: PollingOutcome<'_>) -> PollingResponse {
    match outcome {
        // A client that has no session takes this status for the start of one.
        PollingOutcome::Opened(name, _) => Body::with_messages(GONE, name, Vec::new()).respond(),
        PollingOutcome::Polled(name, polled) => fetched(name, polled).respond(),
        PollingOutcome::Sent => Body::of(200).respond(),
        PollingOutcome::Denied(refusal) => denied(refusal).respond(),
        PollingOutcome::Refused(refusal) => refuse(refusal),
    }
}

/// Returns the response to a poll.
fn fetched<'a>(name: &PolledName, polled: &'a Polled) -> Body<'a> {
    let status = match polled.end {
        PollEnd::Ready => 200,
        PollEnd::Idle | PollEnd::Upgrading => 204,
        PollEnd::Closed => {
            return Body {
                reason: polled.reason.clone(),
                ..Body::of(GONE)
            };
        }
    };
    let frames = polled.frames.iter().flat_map(|piece| messages(piece));
    let texts = frames.filter_map(|(opcode, payload)| match opcode {
        Opcode::Binary => text::of(payload).map(Cow::Owned),
        _ => Some(String::from_utf8_lossy(payload)),
    });
    Body::with_messages(status, name, texts.collect())
}

/// Returns the response to a client that may not connect. Those that can be tried again at once
/// are like a server that fails.
fn denied(refusal: &Refusal) -> Body<'static> {
    match refusal {
        Refusal::Error(error) if error.is_temporary => Body::refusing(FAILED, error.to_string()),
        Refusal::Error(error) => Body::refusing(FORBIDDEN, error.to_string()),
        Refusal::Disconnect(disconnect) => Body::refusing(FORBIDDEN, disconnect.to_string()),
    }
}

/// Returns the response to a request that is refused. The npm package handles no other statuses in
/// the response to a poll than those of Phoenix.
fn refuse(refusal: PollingRefusal) -> PollingResponse {
    let (http, status) = match refusal {
        PollingRefusal::BadRequest | PollingRefusal::UnknownSession => (200, GONE),
        PollingRefusal::Forbidden => (200, FORBIDDEN),
        PollingRefusal::TooLarge { .. } | PollingRefusal::TooLong { .. } => (413, 413),
        PollingRefusal::Unavailable => (503, FAILED),
        PollingRefusal::BadHandshakeMethod
        | PollingRefusal::UnknownTransport
        | PollingRefusal::UnsupportedVersion => (400, 400),
    };
    PollingResponse {
        status: http,
        ..Body::refusing(status, refusal.to_string()).respond()
    }
}

impl<'a> Body<'a> {
    const fn of(status: u16) -> Self {
        Self {
            status,
            token: None,
            messages: None,
            reason: None,
        }
    }

    fn with_messages(status: u16, session: &PolledName, messages: Vec<Cow<'a, str>>) -> Self {
        Self {
            token: Some(session.to_string()),
            messages: Some(messages),
            ..Self::of(status)
        }
    }

    fn refusing(status: u16, reason: String) -> Self {
        Self {
            reason: Some(reason),
            ..Self::of(status)
        }
    }

    fn respond(&self) -> PollingResponse {
        let body = serde_json::to_vec(self);
        PollingResponse {
            status: 200,
            content_type: "application/json; charset=utf-8",
            body: body.expect("serializing a struct to memory cannot fail"),
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{HeaderMap, Method};
    use linerate_proto::{Opcode, frame};

    use super::{ENDPOINT, read, respond, split};
    use crate::{
        config::Config,
        protocol::{
            codes::{ClientError, Disconnect, Refusal},
            dialect::Opening,
            polling::{
                ClientMessage, PollEnd, Polled, PolledName, PollingOutcome, PollingRefusal,
                PollingRequest,
            },
        },
    };

    const TOKEN: &str = "00000000-0000-0000-0000-000000000007.node";

    fn name() -> PolledName {
        PolledName::parse(TOKEN).unwrap()
    }

    fn asked(method: &Method, query: &str) -> Result<PollingRequest, PollingRefusal> {
        let opening = Opening {
            path: ENDPOINT.path,
            query,
            headers: &HeaderMap::new(),
            subprotocol: None,
        };
        read(method, &opening)
    }

    /// Returns the messages in a body, up to the first that is malformed.
    fn found(body: &'static [u8]) -> Vec<Result<ClientMessage, String>> {
        let mut rest = Some(Bytes::from_static(body));
        let mut found = Vec::new();
        while let Some(body) = rest.take() {
            let (message, behind) = split(body);
            found.push(message.map_err(|error| error.to_string()));
            rest = behind;
        }
        found
    }

    fn answer(outcome: PollingOutcome<'_>) -> (u16, String) {
        let response = respond(outcome);
        assert_eq!(response.content_type, "application/json; charset=utf-8");
        (response.status, String::from_utf8(response.body).unwrap())
    }

    #[test]
    fn the_last_token_names_the_session_unless_it_is_one_of_the_client() {
        let session = format!("vsn=2.0.0&token={TOKEN}");
        let with_params = format!("token=a.b.c&{session}");
        for query in [session, with_params] {
            let poll = PollingRequest::Poll(name());
            assert_eq!(asked(&Method::GET, &query), Ok(poll));
            let send = PollingRequest::Send(name());
            assert_eq!(asked(&Method::POST, &query), Ok(send));
            let refused = Err(PollingRefusal::BadHandshakeMethod);
            assert_eq!(asked(&Method::PUT, &query), refused);
        }
        // The npm package ends the query like this when it has no session.
        for query in [
            "",
            "vsn=2.0.0&",
            "token=a.b.c&vsn=2.0.0&",
            "token=undefined",
        ] {
            assert_eq!(asked(&Method::GET, query), Ok(PollingRequest::Open));
            let unknown = Err(PollingRefusal::UnknownSession);
            assert_eq!(asked(&Method::POST, query), unknown);
        }
    }

    #[test]
    fn each_line_is_a_json_array_or_base64() {
        let text =
            |text: &'static str| Ok(ClientMessage::Text(Bytes::from_static(text.as_bytes())));
        let binary = |bytes: &'static [u8]| Ok(ClientMessage::Binary(Bytes::from_static(bytes)));
        assert_eq!(found(b""), [text("")]);
        assert_eq!(found(b"\r\n\n"), [text("")]);
        assert_eq!(found(b"[1]"), [text("[1]")]);
        let expected = [text("[1]"), binary(b"\xff\0"), text("[2]")];
        assert_eq!(found(b"[1]\n/wA=\n[2]"), expected);
        assert_eq!(found(b"\n[1]\r\n\r\n/wA\r\n\n[2]\n"), expected);
        let malformed = "malformed packet: Base64 of a binary message";
        for body in [&b"{}\n[1]"[..], b"%%%", b"/wA=!", b" [1]", b"/wA=[1]"] {
            assert_eq!(found(body)[0], Err(malformed.to_owned()), "{body:?}");
        }
    }

    #[test]
    fn frames_become_texts_and_bytes_become_base64() {
        let mut piece = Vec::new();
        frame::append(&mut piece, Opcode::Text, br#"[null,null,"t","e",{"a":1}]"#);
        frame::append(&mut piece, Opcode::Binary, b"\x02\x01\x01te\xff\0");
        frame::append(&mut piece, Opcode::Binary, b"\x07unknown");
        let polled = |end| Polled::new(vec![Bytes::from(piece.clone())], end);
        let messages =
            r#"["[null,null,\"t\",\"e\",{\"a\":1}]","[null,null,\"t\",\"e\",\"/wA=\"]"]"#;
        let expected = format!(r#"{{"status":200,"token":"{TOKEN}","messages":{messages}}}"#);
        let ready = polled(PollEnd::Ready);
        let found = answer(PollingOutcome::Polled(&name(), &ready));
        assert_eq!(found, (200, expected));
        let mut closed = polled(PollEnd::Closed);
        closed.reason = Some("shutdown (1012)".to_owned());
        let found = answer(PollingOutcome::Polled(&name(), &closed));
        let expected = r#"{"status":410,"reason":"shutdown (1012)"}"#;
        assert_eq!(found, (200, expected.to_owned()));
    }

    #[test]
    fn responses_have_the_statuses_that_clients_know() {
        let idle = Polled::new(Vec::new(), PollEnd::Idle);
        let session = format!(r#""token":"{TOKEN}","messages":[]"#);
        let opened = answer(PollingOutcome::Opened(&name(), &idle));
        assert_eq!(opened, (200, format!(r#"{{"status":410,{session}}}"#)));
        let polled = answer(PollingOutcome::Polled(&name(), &idle));
        assert_eq!(polled, (200, format!(r#"{{"status":204,{session}}}"#)));
        let sent = answer(PollingOutcome::Sent);
        assert_eq!(sent, (200, r#"{"status":200}"#.to_owned()));
        for (refusal, http, status) in [
            (PollingRefusal::BadHandshakeMethod, 400, 400),
            (PollingRefusal::BadRequest, 200, 410),
            (PollingRefusal::Forbidden, 200, 403),
            (PollingRefusal::TooLarge { bytes_max: 7 }, 413, 413),
            (PollingRefusal::TooLong { bytes_max: 7 }, 413, 413),
            (PollingRefusal::Unavailable, 503, 500),
            (PollingRefusal::UnknownSession, 200, 410),
        ] {
            let expected = format!(r#"{{"status":{status},"reason":"{refusal}"}}"#);
            let found = answer(PollingOutcome::Refused(refusal));
            assert_eq!(found, (http, expected));
        }
    }

    #[test]
    fn a_client_that_may_not_connect_is_told_why() {
        for (refusal, status) in [
            (ClientError::TOKEN_EXPIRED.into(), 403),
            (ClientError::INTERNAL.into(), 500),
            (Refusal::Disconnect(Disconnect::PERMISSION_DENIED), 403),
        ] {
            let (http, text) = answer(PollingOutcome::Denied(&refusal));
            assert_eq!(http, 200);
            let start = format!(r#"{{"status":{status},"reason":""#);
            assert!(text.starts_with(&start), "{text}");
        }
    }

    #[test]
    fn a_poll_is_held_for_less_time_than_a_client_may_be_silent() {
        let mut config = Config::default();
        let held = |config: &Config| ENDPOINT.hold.unwrap()(config).as_secs();
        assert_eq!(held(&config), 10);
        config.phoenix.heartbeat_timeout = std::time::Duration::from_secs(2);
        assert_eq!(held(&config), 1);
    }
}
