//! Messages to Phoenix clients, except for broadcasts.

use linerate_hub::Unencodable;
use linerate_proto::{Opcode, frame::OpenFrame};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{binary, presence};
use crate::protocol::{
    command::{PhoenixPlace, PhoenixRef},
    reply::{PhoenixError, PhoenixMessage, Push, ServerMessage},
};

/// A response or another payload without fields.
#[derive(Clone, Copy, Debug, Serialize)]
struct Empty {}

/// The payload of an answer.
#[derive(Debug, Serialize)]
pub(super) struct Answer<'a, T> {
    pub(super) status: &'a str,
    pub(super) response: T,
}

/// The response to a message that failed.
#[derive(Debug, Serialize)]
struct Failure<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u32>,
    reason: &'a str,
}

/// Appends messages, each in its own frame. Phoenix has none for what other protocols tell clients.
pub(super) fn write(messages: &[ServerMessage], out: &mut Vec<u8>) -> Result<(), Unencodable> {
    for message in messages {
        match message {
            ServerMessage::Phoenix(message) => append(message, out)?,
            ServerMessage::Push(Push::Join { channel, info }) => {
                let diff = presence::Diff::joined(info);
                frame(&(NONE, NONE, channel.as_str(), "presence_diff", diff), out);
            }
            ServerMessage::Push(Push::Leave { channel, info }) => {
                let diff = presence::Diff::left(info);
                frame(&(NONE, NONE, channel.as_str(), "presence_diff", diff), out);
            }
            _ => {}
        }
    }
    Ok(())
}

/// The reference of a message that belongs to no other.
const NONE: Option<PhoenixRef> = None;

fn append(message: &PhoenixMessage, out: &mut Vec<u8>) -> Result<(), Unencodable> {
    match message {
        PhoenixMessage::Ended {
            topic,
            join_ref,
            is_error,
        } => {
            let event = if *is_error { "phx_error" } else { "phx_close" };
            frame(&(join_ref, join_ref, topic.as_str(), event, Empty {}), out);
        }
        PhoenixMessage::Presence {
            topic,
            join_ref,
            clients,
        } => {
            let state = presence::State::of(clients);
            frame(
                &(join_ref, NONE, topic.as_str(), "presence_state", state),
                out,
            );
        }
        PhoenixMessage::Reply { place, result } => match result {
            Ok(response) if response.is_empty() => reply(place, "ok", Empty {}, out),
            Ok(response) => match serde_json::from_slice::<&RawValue>(response) {
                Ok(response) => reply(place, "ok", response, out),
                Err(_) => return binary::append_reply(place, response, out),
            },
            Err(PhoenixError { code, reason }) => {
                let failure = Failure {
                    code: *code,
                    reason,
                };
                reply(place, "error", failure, out);
            }
        },
    }
    Ok(())
}

fn reply(place: &PhoenixPlace, status: &'static str, response: impl Serialize, out: &mut Vec<u8>) {
    let PhoenixPlace {
        join_ref,
        reference,
        topic,
    } = place;
    let answer = Answer { status, response };
    frame(&(join_ref, reference, topic, "phx_reply", answer), out);
}

/// Appends the text frame of a message.
fn frame(message: &impl Serialize, out: &mut Vec<u8>) {
    let frame = OpenFrame::start(out);
    serde_json::to_writer(&mut *out, message).expect("serializing to a Vec cannot fail");
    frame.finish(out, Opcode::Text);
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use linerate_hub::{ChannelName, ClientInfo};
    use linerate_proto::{Opcode, frame};

    use super::write;
    use crate::protocol::{
        command::{PhoenixPlace, PhoenixRef},
        reply::{PhoenixError, PhoenixMessage, Push, ServerMessage},
    };

    fn written(message: ServerMessage) -> Vec<u8> {
        let mut out = Vec::new();
        write(&[message], &mut out).unwrap();
        out
    }

    fn text(json: &str) -> Vec<u8> {
        let mut out = Vec::new();
        frame::append(&mut out, Opcode::Text, json.as_bytes());
        out
    }

    fn reference(text: &str) -> Option<PhoenixRef> {
        Some(PhoenixRef::Text(text.into()))
    }

    fn reply(result: Result<&'static [u8], (Option<u32>, &'static str)>) -> ServerMessage {
        let place = PhoenixPlace {
            join_ref: reference("12"),
            reference: reference("123"),
            topic: "topic".into(),
        };
        let result = result.map(Bytes::from_static);
        let result = result.map_err(|(code, reason)| PhoenixError {
            code,
            reason: reason.into(),
        });
        ServerMessage::Phoenix(PhoenixMessage::Reply { place, result })
    }

    // As in Phoenix's test/phoenix/socket/v2_json_serializer_test.exs.
    #[test]
    fn answers_have_the_form_of_phoenix() {
        for (result, json) in [
            (Ok(&b""[..]), r#"{"status":"ok","response":{}}"#),
            (Ok(b"{\"m\": 1}"), r#"{"status":"ok","response":{"m": 1}}"#),
            (
                Err((None, "unmatched topic")),
                r#"{"status":"error","response":{"reason":"unmatched topic"}}"#,
            ),
            (
                Err((Some(103), "permission denied")),
                r#"{"status":"error","response":{"code":103,"reason":"permission denied"}}"#,
            ),
        ] {
            let expected = format!(r#"["12","123","topic","phx_reply",{json}]"#);
            assert_eq!(written(reply(result)), text(&expected));
        }
        let binary = written(reply(Ok(b"\xff")));
        assert_eq!(binary, b"\x82\x12\x01\x02\x03\x05\x0212123topicok\xff");
    }

    #[test]
    fn the_end_of_a_join_names_the_join() {
        for (is_error, event) in [(false, "phx_close"), (true, "phx_error")] {
            let ended = ServerMessage::Phoenix(PhoenixMessage::Ended {
                topic: ChannelName::new("topic").unwrap(),
                join_ref: Some(PhoenixRef::Number(1)),
                is_error,
            });
            let expected = format!(r#"[1,1,"topic","{event}",{{}}]"#);
            assert_eq!(written(ended), text(&expected));
        }
    }

    #[test]
    fn presence_has_the_form_of_phoenix() {
        let channel = ChannelName::new("topic").unwrap();
        let info = ClientInfo {
            user: "ann".into(),
            client: "c1".into(),
            channel: Some(br#"{"typing":true}"#[..].into()),
            ..ClientInfo::default()
        };
        let state = ServerMessage::Phoenix(PhoenixMessage::Presence {
            topic: channel.clone(),
            join_ref: reference("12"),
            clients: vec![info.clone()],
        });
        let ann = r#"{"ann":{"metas":[{"typing":true,"phx_ref":"c1"}]}}"#;
        let expected = format!(r#"["12",null,"topic","presence_state",{ann}]"#);
        assert_eq!(written(state), text(&expected));
        let joined = ServerMessage::Push(Push::Join {
            channel: channel.clone(),
            info: info.clone(),
        });
        let diff =
            format!(r#"[null,null,"topic","presence_diff",{{"joins":{ann},"leaves":{{}}}}]"#);
        assert_eq!(written(joined), text(&diff));
        let left = ServerMessage::Push(Push::Leave { channel, info });
        let diff =
            format!(r#"[null,null,"topic","presence_diff",{{"joins":{{}},"leaves":{ann}}}]"#);
        assert_eq!(written(left), text(&diff));
    }

    #[test]
    fn what_phoenix_has_no_message_for_is_left_out() {
        assert!(written(ServerMessage::Ping).is_empty());
    }
}
