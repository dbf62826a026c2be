//! Any bytes as commands from clients of the protocols of Centrifuge and Pusher.

use http::{HeaderMap, HeaderValue, header};

use crate::protocol::{
    centrifuge::{PROTOCOL, websocket},
    command::Request,
    decode::{DecodeError, Limits},
    dialect::{Commands, Dialect, SessionKind},
    pusher,
};

const LIMITS: Limits = Limits {
    commands_max: 16,
    depth_max: 8,
};

/// Decodes `data` in all formats and checks what comes out.
pub fn commands(data: &[u8]) {
    check(&websocket::JSON, "application/json", data);
    check(&websocket::PROTOBUF, "application/octet-stream", data);
    check_pusher(data);
}

fn check(dialect: &Dialect, content_type: &'static str, data: &[u8]) {
    let commands = commands_of(dialect);
    match commands.decode(data, &LIMITS) {
        Ok(commands) => {
            assert!((1..=LIMITS.commands_max).contains(&commands.len()));
            for command in commands {
                let has_reply = !matches!(command.request, Request::Pong | Request::Send { .. });
                assert!(command.id != 0 || !has_reply, "{command:?}");
            }
        }
        Err(error) => assert!(is_expected(dialect, error), "{error}"),
    }
    let emulation = PROTOCOL.emulation.as_ref().expect("Centrifuge has it");
    let content_type = HeaderValue::from_static(content_type);
    let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, content_type)]);
    if let Err(error) = (emulation.read)(&headers, data) {
        assert!(is_expected(dialect, error), "{error}");
    }
}

/// A message is one command, which has no ID.
fn check_pusher(data: &[u8]) {
    match commands_of(&pusher::EVENTS).decode(data, &LIMITS) {
        Ok(commands) => {
            let [command] = &commands[..] else {
                panic!("{commands:?}");
            };
            assert_eq!(command.id, 0);
            if let Request::Pusher(request) = &command.request {
                assert!(!request.name().is_empty());
            }
        }
        Err(DecodeError::Json { nth: 1, .. } | DecodeError::TooDeep { nth: 1, .. }) => {}
        Err(error) => panic!("{error}"),
    }
}

fn commands_of(dialect: &Dialect) -> &Commands {
    match &dialect.session {
        SessionKind::Commands(commands) => commands,
        SessionKind::Fixed(_) => panic!("{:?} has no commands", dialect.name),
    }
}

/// Each format has its own errors; those of the other format are findings.
fn is_expected(dialect: &Dialect, error: DecodeError) -> bool {
    let is_json = dialect.name == websocket::JSON.name;
    match error {
        DecodeError::Empty
        | DecodeError::MissingId { .. }
        | DecodeError::TooManyCommands { .. } => true,
        DecodeError::Json { .. } | DecodeError::TooDeep { .. } => is_json,
        DecodeError::Packet { .. } | DecodeError::TooLong { .. } => false,
        DecodeError::Protobuf { .. } => !is_json,
    }
}
