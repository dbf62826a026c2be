//! Messages to Socket.IO clients, except for publications.

use bytes::Bytes;
use linerate_hub::Unencodable;
use linerate_proto::{
    Opcode,
    frame::{self, OpenFrame},
};
use serde::{Serialize, de::IgnoredAny};
use uuid::Uuid;

use super::{
    binary,
    wire::{Kind, Packet},
};
use crate::{
    config::ClientOptions,
    protocol::{
        codes::ClientError,
        dialect::WEBSOCKET,
        polling::PolledName,
        reply::{ServerMessage, SocketIoMessage},
    },
};

/// Returns the packet that opens a connection. Its ID is not that of the client, which others may
/// know.
pub(super) fn open(options: &ClientOptions, polled: Option<&PolledName>) -> ServerMessage {
    let sid = match polled {
        Some(name) => name.to_string(),
        None => Uuid::new_v4().to_string(),
    };
    ServerMessage::SocketIo(SocketIoMessage::Open {
        sid,
        upgrades: if polled.is_some() { &[WEBSOCKET] } else { &[] },
        ping_interval: options.ping_interval,
        ping_timeout: options.pong_timeout,
        payload_bytes_max: options.message_bytes_max,
    })
}

/// Appends messages, each in its own frames.
pub(super) fn write(messages: &[ServerMessage], out: &mut Vec<u8>) -> Result<(), Unencodable> {
    for message in messages {
        match message {
            ServerMessage::Ping => frame::append(out, Opcode::Text, b"2"),
            ServerMessage::SocketIo(message) => append(message, out),
            // Clients do not know of subscriptions, and no other command has a reply.
            _ => {}
        }
    }
    Ok(())
}

fn append(message: &SocketIoMessage, out: &mut Vec<u8>) {
    match message {
        SocketIoMessage::Ack {
            namespace,
            id,
            data,
        } => append_ack(namespace, *id, data, out),
        SocketIoMessage::AckError {
            namespace,
            id,
            error,
        } => {
            let json = json(&[ErrorArgument {
                error: ErrorData::of(error),
            }]);
            append_packet(Kind::Ack, namespace, Some(*id), &json, out);
        }
        SocketIoMessage::ConnectError { namespace, error } => {
            let json = json(&ConnectError {
                message: &error.message,
                data: ErrorCode { code: error.code },
            });
            append_packet(Kind::ConnectError, namespace, None, &json, out);
        }
        SocketIoMessage::Connected {
            namespace,
            sid,
            pid,
        } => {
            let pid = pid.map(|pid| pid.to_string());
            let json = json(&Connected { sid, pid });
            append_packet(Kind::Connect, namespace, None, &json, out);
        }
        SocketIoMessage::Disconnected { namespace } => {
            append_packet(Kind::Disconnect, namespace, None, b"", out);
        }
        SocketIoMessage::Error {
            namespace,
            event,
            error,
        } => {
            let error = ErrorData {
                event: Some(event),
                ..ErrorData::of(error)
            };
            let json = json(&("linerate:error", error));
            append_packet(Kind::Event, namespace, None, &json, out);
        }
        SocketIoMessage::Open {
            sid,
            upgrades,
            ping_interval,
            ping_timeout,
            payload_bytes_max,
        } => {
            let frame = OpenFrame::start(out);
            out.push(b'0');
            out.extend_from_slice(&json(&Open {
                sid,
                upgrades,
                ping_interval: ping_interval.as_millis(),
                ping_timeout: ping_timeout.as_millis(),
                max_payload: *payload_bytes_max,
            }));
            frame.finish(out, Opcode::Text);
        }
    }
}

/// Appends an acknowledgement: JSON that is an array has its arguments, other JSON is the only
/// argument, and bytes that are not JSON are an attachment.
fn append_ack(namespace: &str, id: u64, data: &Bytes, out: &mut Vec<u8>) {
    let text = std::str::from_utf8(data).ok().map(str::trim);
    let is_json = |text: &&str| serde_json::from_str::<IgnoredAny>(text).is_ok();
    let (arguments, attachments) = match text {
        Some("") => (b"[]".to_vec(), Vec::new()),
        Some(text) if is_json(&text) => {
            let arguments = match text.starts_with('[') {
                true => text.as_bytes().to_vec(),
                false => format!("[{text}]").into_bytes(),
            };
            let taken = binary::take_out(&arguments);
            taken.unwrap_or((arguments, Vec::new()))
        }
        _ => ([b"[", binary::FIRST, b"]"].concat(), vec![data.clone()]),
    };
    let packet = Packet {
        kind: Kind::Ack,
        namespace,
        id: Some(id),
        json: &arguments,
        attachments: &attachments,
    };
    packet.append(out);
}

fn append_packet(kind: Kind, namespace: &str, id: Option<u64>, json: &[u8], out: &mut Vec<u8>) {
    let packet = Packet {
        kind,
        namespace,
        id,
        json,
        attachments: &[],
    };
    packet.append(out);
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("serializing structs to memory cannot fail")
}

#[derive(Serialize)]
struct ConnectError<'a> {
    message: &'a str,
    data: ErrorCode,
}

#[derive(Serialize)]
struct Connected<'a> {
    sid: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<String>,
}

#[derive(Serialize)]
struct ErrorArgument<'a> {
    error: ErrorData<'a>,
}

#[derive(Serialize)]
struct ErrorCode {
    code: u32,
}

#[derive(Serialize)]
struct ErrorData<'a> {
    code: u32,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<&'a str>,
}

impl<'a> ErrorData<'a> {
    fn of(error: &'a ClientError) -> Self {
        Self {
            code: error.code,
            message: &error.message,
            event: None,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Open<'a> {
    sid: &'a str,
    upgrades: &'a [&'a str],
    ping_interval: u128,
    ping_timeout: u128,
    max_payload: usize,
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use linerate_proto::{Opcode, frame};

    use super::{open, write};
    use crate::{
        config::Config,
        protocol::{
            codes::ClientError,
            private_id::PrivateId,
            reply::{Push, ServerMessage, SocketIoMessage},
        },
    };

    fn written(message: ServerMessage) -> Vec<u8> {
        let mut out = Vec::new();
        write(&[message], &mut out).unwrap();
        out
    }

    fn text(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        frame::append(&mut out, Opcode::Text, text.as_bytes());
        out
    }

    #[test]
    fn messages_are_packets() {
        let main = || "/".to_owned();
        let chat = || "/chat".to_owned();
        let error = ClientError::PERMISSION_DENIED;
        for (message, expected) in [
            (
                SocketIoMessage::Connected {
                    namespace: main(),
                    sid: "a".into(),
                    pid: None,
                },
                r#"40{"sid":"a"}"#,
            ),
            (
                SocketIoMessage::Connected {
                    namespace: chat(),
                    sid: "a".into(),
                    pid: PrivateId::parse("AAAAAAAAAAAAAAAAAAAAAA"),
                },
                r#"40/chat,{"sid":"a","pid":"AAAAAAAAAAAAAAAAAAAAAA"}"#,
            ),
            (
                SocketIoMessage::ConnectError {
                    namespace: chat(),
                    error: error.clone(),
                },
                r#"44/chat,{"message":"permission denied","data":{"code":103}}"#,
            ),
            (SocketIoMessage::Disconnected { namespace: main() }, "41"),
            (
                SocketIoMessage::Disconnected { namespace: chat() },
                "41/chat,",
            ),
            (
                SocketIoMessage::AckError {
                    namespace: main(),
                    id: 0,
                    error: error.clone(),
                },
                r#"430[{"error":{"code":103,"message":"permission denied"}}]"#,
            ),
            (
                SocketIoMessage::Error {
                    namespace: main(),
                    event: "e".into(),
                    error,
                },
                r#"42["linerate:error",{"code":103,"message":"permission denied","event":"e"}]"#,
            ),
        ] {
            assert_eq!(written(ServerMessage::SocketIo(message)), text(expected));
        }
        assert_eq!(written(ServerMessage::Ping), text("2"));
        let disconnect = crate::protocol::codes::Disconnect::SHUTDOWN;
        let push = ServerMessage::Push(Push::Disconnect(disconnect));
        assert_eq!(written(push), b"");
    }

    #[test]
    fn the_first_packet_has_the_settings() {
        let mut message = open(&Config::default().client, None);
        if let ServerMessage::SocketIo(SocketIoMessage::Open { sid, .. }) = &mut message {
            "s".clone_into(sid);
        }
        let expected = r#"0{"sid":"s","upgrades":[],"pingInterval":25000,"pingTimeout":8000,"maxPayload":65536}"#;
        assert_eq!(written(message), text(expected));
    }

    #[test]
    fn answers_are_the_arguments_of_acknowledgements() {
        for (data, expected) in [
            (&b""[..], "43/chat,7[]"),
            (b"[1, 2]", "43/chat,7[1, 2]"),
            (b"{\"a\":1}", r#"43/chat,7[{"a":1}]"#),
            (b"null", "43/chat,7[null]"),
        ] {
            let message = SocketIoMessage::Ack {
                namespace: "/chat".into(),
                id: 7,
                data: Bytes::from_static(data),
            };
            assert_eq!(written(ServerMessage::SocketIo(message)), text(expected));
        }
        let message = SocketIoMessage::Ack {
            namespace: "/".into(),
            id: 7,
            data: Bytes::from_static(b"\xff"),
        };
        let mut expected = text(r#"461-7[{"_placeholder":true,"num":0}]"#);
        frame::append(&mut expected, Opcode::Binary, b"\xff");
        assert_eq!(written(ServerMessage::SocketIo(message)), expected);
    }
}
