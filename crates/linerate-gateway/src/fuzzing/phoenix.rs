//! Any bytes as URLs and messages of Phoenix clients, and as answers to them. In `polling` are the
//! bodies of clients that poll.

mod polling;

use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::{
    config::Config,
    protocol::{
        codes::Disconnect,
        command::{PhoenixAction, PhoenixRequest, Request},
        decode::{DecodeError, Limits},
        dialect::{Commands, Opening, SessionKind},
        phoenix::CHANNELS,
        reply::{PhoenixMessage, ServerMessage},
    },
};

const LIMITS: Limits = Limits {
    commands_max: 16,
    depth_max: 8,
};

/// Reads `data` as a URL, as the body of a request or as a message; its first byte says which.
pub fn phoenix(data: &[u8]) {
    match data.split_first() {
        Some((b'/', url)) => opening(url),
        Some((b'\n', body)) => polling::body(body),
        _ => message(data),
    }
}

/// The first line is a query, and the rest is the list of offered subprotocols, or a token if a
/// colon comes first.
fn opening(data: &[u8]) {
    let mut parts = data.splitn(2, |&byte| byte == b'\n');
    let query = String::from_utf8_lossy(parts.next().unwrap_or_default());
    let token = HeaderName::from_static("x-phoenix-authtoken");
    let field = parts.next().and_then(|rest| match rest.split_first() {
        Some((b':', rest)) => Some((token, HeaderValue::from_bytes(rest).ok()?)),
        _ => {
            let offered = HeaderValue::from_bytes(rest).ok()?;
            Some((header::SEC_WEBSOCKET_PROTOCOL, offered))
        }
    });
    let opening = Opening {
        path: CHANNELS.path,
        query: &query,
        headers: &HeaderMap::from_iter(field),
        subprotocol: None,
    };
    polling::request(&opening);
    let connects = CHANNELS.connects().expect("requests connect clients");
    match (connects.read)(&opening, &Config::default()) {
        Ok(connect) => {
            let data = connect.data.expect("parameters are data");
            let data: serde_json::Value = serde_json::from_slice(&data).expect("it is JSON");
            assert_eq!(data["vsn"], "2.0.0");
        }
        Err(refused) => assert_eq!(refused.code, Disconnect::BAD_REQUEST.code),
    }
}

fn message(data: &[u8]) {
    let SessionKind::Commands(commands) = &CHANNELS.session else {
        panic!("clients send commands");
    };
    match commands.decode(data, &LIMITS) {
        Ok(decoded) => {
            let [command] = <[_; 1]>::try_from(decoded).expect("a message is one command");
            match command.request {
                Request::Phoenix(request) => check(commands, *request, data),
                other => panic!("{other:?}"),
            }
        }
        Err(error) => assert!(is_expected(error), "{error}"),
    }
}

/// The answer to a message, with its payload, is a message again, if the topic is not too long for
/// binary messages.
fn check(commands: &Commands, request: PhoenixRequest, data: &[u8]) {
    assert!(request.memory_bytes() <= size_of::<PhoenixRequest>() + 2 * data.len() + 32);
    let PhoenixRequest { place, action } = request;
    let response = match action {
        PhoenixAction::Join(payload) | PhoenixAction::Push { payload, .. } => payload,
        PhoenixAction::Heartbeat | PhoenixAction::Leave => return,
        PhoenixAction::Presence => panic!("clients cannot request it"),
    };
    let is_long = place.topic.len() > 255;
    let result = Ok(response);
    let reply = ServerMessage::Phoenix(PhoenixMessage::Reply { place, result });
    let written = commands.encode(&[reply], &mut Vec::new());
    assert!(written.is_ok() || is_long);
}

const fn is_expected(error: DecodeError) -> bool {
    matches!(
        error,
        DecodeError::Json { nth: 1, .. }
            | DecodeError::Packet { .. }
            | DecodeError::TooDeep { nth: 1, .. }
            | DecodeError::TooLong { .. }
    )
}
