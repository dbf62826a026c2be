//! Any bytes as packets of a Socket.IO client, with attachments, and as the body of a request.

mod polling;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    protocol::{
        command::{Command, Request, SocketIoRequest},
        decode::{DecodeError, Limits},
        dialect::{Commands, SessionKind},
        event_offset::EventOffset,
        private_id::PrivateId,
        socketio::{EVENTS, binary, describe, namespace},
    },
    session,
};

const LIMITS: Limits = Limits {
    commands_max: 16,
    depth_max: 8,
};

/// An event as applications see it.
#[derive(Deserialize)]
struct Described<'a> {
    event: String,
    #[serde(borrow)]
    args: &'a RawValue,
}

/// What a client presents to return to its session.
#[derive(Deserialize)]
struct Presented {
    pid: String,
    offset: Option<String>,
}

/// Reads `data` as a body. Then reads its first line as a packet, and each other line as an
/// attachment of it.
pub fn socketio(data: &[u8]) {
    polling::body(data);
    let mut lines = data.split(|&byte| byte == b'\n');
    let SessionKind::Commands(commands) = &EVENTS.session else {
        panic!("clients send commands");
    };
    let packet = lines.next().unwrap_or_default();
    let request = match commands.decode(packet, &LIMITS) {
        Ok(decoded) => only(decoded),
        Err(error) => return assert!(is_expected(error), "{error}"),
    };
    let Request::SocketIo(request) = request else {
        return assert!(matches!(request, Request::Pong) && packet == b"3");
    };
    assert!(request.memory_bytes() <= size_of::<SocketIoRequest>() + 2 * packet.len() + 2);
    if let SocketIoRequest::Connect {
        auth: Some(auth), ..
    } = &*request
    {
        returning(auth);
    }
    if let SocketIoRequest::Event(event) = *request {
        let description = describe(&event);
        let described: Described<'_> = serde_json::from_slice(&description).expect("it is JSON");
        assert_eq!(described.event, event.name);
        assert_eq!(described.args.get().as_bytes(), event.arguments);
        let method = namespace::qualified(&event.namespace, &event.name);
        assert!(method.ends_with(&*event.name));
        let attachments = lines.map(|line| attachment(commands, line));
        fill(&event.arguments, &attachments.collect::<Vec<_>>());
    }
}

/// What a client presents to return to its session is what a server can have told it.
fn returning(auth: &[u8]) {
    if !session::fuzzing::returns(auth) {
        return;
    }
    let presented: Presented = serde_json::from_slice(auth).expect("it is JSON");
    let pid = PrivateId::parse(&presented.pid).expect("it is a private ID");
    assert_eq!(pid.to_string(), presented.pid);
    if let Some(offset) = presented.offset {
        assert!(EventOffset::parse(&offset).is_some() && offset.len() <= 32);
    }
}

/// A binary message is an attachment, whatever it contains.
fn attachment(commands: &Commands, line: &[u8]) -> Bytes {
    let read = commands
        .read_binary
        .expect("binary messages have a decoder");
    match read(line).request {
        Request::SocketIo(request) => match *request {
            SocketIoRequest::Attachment(bytes) => bytes,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

/// Attachments take the place of their placeholders, each at most once, and come out again as they
/// were.
fn fill(json: &[u8], attachments: &[Bytes]) {
    let Ok(filled) = binary::fill(json, attachments) else {
        return;
    };
    serde_json::from_slice::<Vec<&RawValue>>(&filled).expect("it is an array");
    let bytes: usize = attachments.iter().map(Bytes::len).sum();
    // A number can take more digits than before.
    assert!(filled.len() <= 20 * json.len() + 2 * bytes + 64 * attachments.len());
    let Some((out, found)) = binary::take_out(&filled) else {
        return;
    };
    assert!((1..=10).contains(&found.len()));
    let again = binary::fill(&out, &found).expect("placeholders name what was found");
    let (_, found_again) = binary::take_out(&again).expect("as many as before");
    assert_eq!(found_again, found);
}

fn only(commands: Vec<Command>) -> Request {
    let [command] = <[Command; 1]>::try_from(commands).expect("a packet is one command");
    assert_eq!(command.id, 0);
    command.request
}

const fn is_expected(error: DecodeError) -> bool {
    matches!(
        error,
        DecodeError::Json { nth: 1, .. }
            | DecodeError::Packet { .. }
            | DecodeError::TooDeep { nth: 1, .. }
    )
}
