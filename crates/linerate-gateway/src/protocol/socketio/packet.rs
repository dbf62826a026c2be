//! The packets of clients: `42/chat,7["name",1]` is a message of Engine.IO (`4`) with an event of
//! Socket.IO (`2`) in the namespace `/chat`, to be acknowledged with the ID 7.

use bytes::Bytes;
use serde_json::value::RawValue;

use super::namespace::MAIN;
use crate::protocol::{
    centrifuge::json::depth_of,
    command::{Command, Request, SocketIoEvent, SocketIoRequest},
    decode::{DecodeError, Limits},
};

/// The names of events that clients and servers have for themselves.
const RESERVED: [&str; 6] = [
    "connect",
    "connect_error",
    "disconnect",
    "disconnecting",
    "newListener",
    "removeListener",
];

/// Returns whether no event can have this name.
pub(super) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// Decodes the packet in a text message.
pub(super) fn decode(frame: &[u8], limits: &Limits) -> Result<Vec<Command>, DecodeError> {
    let text = std::str::from_utf8(frame).map_err(|_| malformed("text is not UTF-8"))?;
    let request = match text.as_bytes() {
        [b'1'] => socketio(SocketIoRequest::Close),
        [b'3'] => Request::Pong,
        [b'4', ..] => socketio(message(&text[1..], limits)?),
        _ => return Err(malformed("type of the Engine.IO packet")),
    };
    Ok(vec![command(request)])
}

/// Returns the command of a binary message: it is an attachment.
pub(super) fn attachment(message: &[u8]) -> Command {
    let bytes = Bytes::copy_from_slice(message);
    command(socketio(SocketIoRequest::Attachment(bytes)))
}

const fn command(request: Request) -> Command {
    Command { id: 0, request }
}

fn socketio(request: SocketIoRequest) -> Request {
    Request::SocketIo(Box::new(request))
}

const fn malformed(what: &'static str) -> DecodeError {
    DecodeError::Packet { what }
}

/// Decodes a packet of Socket.IO.
fn message(text: &str, limits: &Limits) -> Result<SocketIoRequest, DecodeError> {
    let kind = text.bytes().next().ok_or(malformed("no type"))?;
    if !kind.is_ascii_digit() {
        return Err(malformed("type of the Socket.IO packet"));
    }
    let rest = &text[1..];
    let (attachments, rest) = match kind {
        b'5' | b'6' => attachments(rest)?,
        _ => (0, rest),
    };
    let (namespace, rest) = namespace(rest);
    let (id, json) = id(rest)?;
    let namespace = namespace.to_owned();
    let depth_max = limits.depth_max;
    if depth_of(json.as_bytes()) > depth_max {
        return Err(DecodeError::TooDeep { nth: 1, depth_max });
    }
    match kind {
        b'0' => Ok(SocketIoRequest::Connect {
            namespace,
            auth: auth(json)?,
        }),
        b'1' if json.is_empty() => Ok(SocketIoRequest::Disconnect { namespace }),
        b'2' | b'5' => {
            let (name, arguments) = arguments(json)?;
            Ok(SocketIoRequest::Event(SocketIoEvent {
                namespace,
                id,
                name,
                arguments,
                announced: attachments,
            }))
        }
        b'3' | b'6' => {
            parse::<Vec<&RawValue>>(json)?;
            id.ok_or(malformed("acknowledgement without an ID"))?;
            Ok(SocketIoRequest::Ack {
                namespace,
                announced: attachments,
            })
        }
        _ => Err(malformed("type of the Socket.IO packet")),
    }
}

/// Splits the number of attachments off, which a hyphen ends.
fn attachments(text: &str) -> Result<(usize, &str), DecodeError> {
    let illegal = malformed("number of attachments");
    let (digits, rest) = text.split_once('-').ok_or(illegal)?;
    let count: u32 = number(digits).ok_or(illegal)?;
    Ok((usize::try_from(count).map_err(|_| illegal)?, rest))
}

/// Splits the namespace off, which begins with a slash and which a comma ends.
fn namespace(text: &str) -> (&str, &str) {
    match text.starts_with('/') {
        true => text.split_once(',').unwrap_or((text, "")),
        false => (MAIN, text),
    }
}

/// Splits the ID of an acknowledgement off.
fn id(text: &str) -> Result<(Option<u64>, &str), DecodeError> {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    if end == 0 {
        return Ok((None, text));
    }
    let id = number(&text[..end]).ok_or(malformed("ID of the acknowledgement"))?;
    Ok((Some(id), &text[end..]))
}

/// Parses digits; a sign, which Rust would accept, is not among them.
fn number<T: std::str::FromStr>(digits: &str) -> Option<T> {
    let is_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    is_digits.then(|| digits.parse().ok()).flatten()
}

/// Returns what a client sends to authenticate: an object, or nothing.
fn auth(json: &str) -> Result<Option<Bytes>, DecodeError> {
    if json.is_empty() {
        return Ok(None);
    }
    let raw: &RawValue = parse(json)?;
    match raw.get().starts_with('{') {
        true => Ok(Some(Bytes::copy_from_slice(raw.get().as_bytes()))),
        false => Err(malformed("what authenticates the client is not an object")),
    }
}

/// Returns the name of an event, and the array of its arguments.
fn arguments(json: &str) -> Result<(String, Bytes), DecodeError> {
    let elements: Vec<&RawValue> = parse(json)?;
    let (name, arguments) = elements
        .split_first()
        .ok_or(malformed("event without a name"))?;
    let name: String = match name.get().as_bytes()[0] {
        b'"' => parse(name.get())?,
        b'-' | b'0'..=b'9' => name.get().to_owned(),
        _ => return Err(malformed("name of the event")),
    };
    if is_reserved(&name) {
        return Err(malformed("name of the event is reserved"));
    }
    let mut array = Vec::with_capacity(json.len());
    array.push(b'[');
    for (index, argument) in arguments.iter().enumerate() {
        if index > 0 {
            array.push(b',');
        }
        array.extend_from_slice(argument.get().as_bytes());
    }
    array.push(b']');
    Ok((name, array.into()))
}

fn parse<'a, T: serde::Deserialize<'a>>(json: &'a str) -> Result<T, DecodeError> {
    serde_json::from_str(json).map_err(|error| DecodeError::Json {
        nth: 1,
        at: error.column(),
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::{attachment, decode};
    use crate::protocol::{
        command::{Request, SocketIoEvent, SocketIoRequest},
        decode::{DecodeError, Limits},
    };

    fn request(frame: &str) -> Request {
        let commands = decode(frame.as_bytes(), &Limits::default()).unwrap();
        let [command] = commands.try_into().unwrap();
        assert_eq!(command.id, 0);
        command.request
    }

    fn socketio(frame: &str) -> SocketIoRequest {
        match request(frame) {
            Request::SocketIo(request) => *request,
            other => panic!("{other:?}"),
        }
    }

    fn event(
        namespace: &str,
        id: Option<u64>,
        name: &str,
        arguments: &'static str,
    ) -> SocketIoRequest {
        SocketIoRequest::Event(SocketIoEvent {
            namespace: namespace.into(),
            id,
            name: name.into(),
            arguments: Bytes::from_static(arguments.as_bytes()),
            announced: 0,
        })
    }

    #[test]
    fn packets_of_engine_io_are_requests() {
        assert_eq!(request("3"), Request::Pong);
        assert_eq!(socketio("1"), SocketIoRequest::Close);
        let bytes = SocketIoRequest::Attachment(Bytes::from_static(b"\x04"));
        assert_eq!(
            attachment(b"\x04").request,
            Request::SocketIo(Box::new(bytes))
        );
    }

    #[test]
    fn clients_connect_to_namespaces_with_an_object() {
        let connect = |namespace: &str, auth: Option<&'static str>| SocketIoRequest::Connect {
            namespace: namespace.into(),
            auth: auth.map(|auth| Bytes::from_static(auth.as_bytes())),
        };
        assert_eq!(socketio("40"), connect("/", None));
        assert_eq!(socketio("40{}"), connect("/", Some("{}")));
        assert_eq!(socketio("40/chat"), connect("/chat", None));
        assert_eq!(socketio("40/chat,"), connect("/chat", None));
        let token = r#"40/chat,{"token":"a"}"#;
        assert_eq!(socketio(token), connect("/chat", Some(r#"{"token":"a"}"#)));
        let disconnect = |namespace: &str| SocketIoRequest::Disconnect {
            namespace: namespace.into(),
        };
        assert_eq!(socketio("41"), disconnect("/"));
        assert_eq!(socketio("41/chat,"), disconnect("/chat"));
    }

    #[test]
    fn events_have_names_and_arguments() {
        assert_eq!(socketio(r#"42["a"]"#), event("/", None, "a", "[]"));
        assert_eq!(
            socketio(r#"42["a", 1.0,{"b": [2]}]"#),
            event("/", None, "a", r#"[1.0,{"b": [2]}]"#)
        );
        assert_eq!(socketio("42[7,1]"), event("/", None, "7", "[1]"));
        assert_eq!(
            socketio(r#"42/chat,12["a"]"#),
            event("/chat", Some(12), "a", "[]")
        );
        assert_eq!(socketio(r#"420["a"]"#), event("/", Some(0), "a", "[]"));
    }

    #[test]
    fn attachments_are_announced() {
        let binary = r#"452-/chat,7["a",{"_placeholder":true,"num":0}]"#;
        match socketio(binary) {
            SocketIoRequest::Event(event) => {
                assert_eq!((&*event.namespace, event.id), ("/chat", Some(7)));
                assert_eq!(event.announced, 2);
            }
            other => panic!("{other:?}"),
        }
        let ack = |announced| SocketIoRequest::Ack {
            namespace: "/".into(),
            announced,
        };
        assert_eq!(socketio("437[1]"), ack(0));
        assert_eq!(socketio("461-7[1]"), ack(1));
    }

    #[test]
    fn malformed_packets_are_refused() {
        for frame in [
            "",
            "0",
            "2",
            "2probe",
            "5",
            "6",
            "7",
            "10",
            "3probe",
            "4",
            "4x",
            "47",
            "49",
            "40[]",
            "40\"a\"",
            "40{",
            "41[]",
            "42",
            "42{}",
            "42[]",
            "42[null]",
            "42[{}]",
            r#"42["connect"]"#,
            r#"42["newListener",1]"#,
            r#"42["a""#,
            r#"42["a"]x"#,
            "43[1]",
            "43",
            "437",
            "437{}",
            "44{}",
            r#"45["a"]"#,
            r#"45-["a"]"#,
            r#"45+1-["a"]"#,
            r#"451.5-["a"]"#,
            r#"4599999999999-["a"]"#,
            r#"42999999999999999999999["a"]"#,
        ] {
            let error = decode(frame.as_bytes(), &Limits::default()).unwrap_err();
            let is_expected = matches!(
                error,
                DecodeError::Json { nth: 1, .. } | DecodeError::Packet { .. }
            );
            assert!(is_expected, "{frame}: {error}");
        }
        assert!(decode(b"42[\"\xff\"]", &Limits::default()).is_err());
        let deep = format!(r#"42["a",{}]"#, "[".repeat(64));
        let error = decode(deep.as_bytes(), &Limits::default()).unwrap_err();
        assert_eq!(
            error,
            DecodeError::TooDeep {
                nth: 1,
                depth_max: 64
            }
        );
    }
}
