//! The messages of clients: `[join_ref,ref,topic,event,payload]`, or their binary form.

use std::borrow::Cow;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::binary;
use crate::protocol::{
    centrifuge::json::depth_of,
    command::{Command, PhoenixAction, PhoenixPlace, PhoenixRef, PhoenixRequest, Request},
    decode::{DecodeError, Limits},
};

/// The topic of messages to the server itself.
const SERVER: &str = "phoenix";

/// The maximum length of a reference or of the name of an event, in bytes: binary messages have no
/// room for more.
const TEXT_BYTES_MAX: usize = 255;

type Wire<'a> = (
    Option<PhoenixRef>,
    Option<PhoenixRef>,
    Cow<'a, str>,
    Cow<'a, str>,
    &'a RawValue,
);

/// Decodes the message in a frame. The first byte tells its form, since JSON has no zero bytes.
pub(super) fn decode(frame: &[u8], limits: &Limits) -> Result<Vec<Command>, DecodeError> {
    let request = match frame.first() {
        Some(&binary::PUSH) => decode_binary(frame),
        _ => decode_json(frame, limits),
    }?;
    let request = Request::Phoenix(Box::new(request));
    Ok(vec![Command { id: 0, request }])
}

fn decode_json(frame: &[u8], limits: &Limits) -> Result<PhoenixRequest, DecodeError> {
    let depth_max = limits.depth_max;
    if depth_of(frame) > depth_max {
        return Err(DecodeError::TooDeep { nth: 1, depth_max });
    }
    let wire: Result<Wire<'_>, _> = serde_json::from_slice(frame);
    let (join_ref, reference, topic, event, payload) = wire.map_err(|error| DecodeError::Json {
        nth: 1,
        at: error.column(),
    })?;
    check_length("reference of the join", &text(&join_ref))?;
    check_length("reference", &text(&reference))?;
    check_length("name of the event", &event)?;
    let place = PhoenixPlace {
        join_ref,
        reference,
        topic: topic.into(),
    };
    let payload = Bytes::copy_from_slice(payload.get().as_bytes());
    Ok(request(place, &event, payload))
}

fn text(reference: &Option<PhoenixRef>) -> Cow<'_, str> {
    reference.as_ref().map(PhoenixRef::text).unwrap_or_default()
}

fn check_length(what: &'static str, text: &str) -> Result<(), DecodeError> {
    let (bytes, bytes_max) = (text.len(), TEXT_BYTES_MAX);
    match bytes <= bytes_max {
        true => Ok(()),
        false => Err(DecodeError::TooLong {
            what,
            bytes,
            bytes_max,
        }),
    }
}

fn decode_binary(frame: &[u8]) -> Result<PhoenixRequest, DecodeError> {
    let push = binary::decode(frame).ok_or(DecodeError::Packet {
        what: "the header of a binary message",
    })?;
    let reference = |text: &str| (!text.is_empty()).then(|| PhoenixRef::Text(text.into()));
    let place = PhoenixPlace {
        join_ref: reference(push.join_ref),
        reference: reference(push.reference),
        topic: push.topic.to_owned(),
    };
    let payload = Bytes::copy_from_slice(push.payload);
    Ok(request(place, push.event, payload))
}

fn request(place: PhoenixPlace, event: &str, payload: Bytes) -> PhoenixRequest {
    let action = match event {
        "heartbeat" if place.topic == SERVER => PhoenixAction::Heartbeat,
        "phx_join" => PhoenixAction::Join(payload),
        "phx_leave" => PhoenixAction::Leave,
        event => PhoenixAction::Push {
            event: event.to_owned(),
            payload,
        },
    };
    PhoenixRequest { place, action }
}

#[cfg(test)]
mod tests {
    use super::decode;
    use crate::protocol::{
        command::{PhoenixAction, PhoenixRef, PhoenixRequest, Request},
        decode::Limits,
    };

    fn request(frame: &[u8]) -> PhoenixRequest {
        let commands = decode(frame, &Limits::default()).unwrap();
        let [command] = commands.try_into().unwrap();
        match command.request {
            Request::Phoenix(request) => *request,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn messages_are_requests() {
        let join = request(br#"["1","2","room:1","phx_join",{"a":1}]"#);
        let text = |text: &str| Some(PhoenixRef::Text(text.into()));
        let references = (join.place.join_ref, join.place.reference);
        assert_eq!(references, (text("1"), text("2")));
        assert_eq!(join.action, PhoenixAction::Join("{\"a\":1}".into()));
        let leave = request(br#"[1,2,"room:1","phx_leave",{}]"#);
        assert_eq!(leave.place.reference, Some(PhoenixRef::Number(2)));
        assert_eq!(leave.action, PhoenixAction::Leave);
        let heartbeat = request(br#"[null,"3","phoenix","heartbeat",{}]"#);
        assert_eq!(heartbeat.action, PhoenixAction::Heartbeat);
        let push = request(b"\x00\x02\x03\x05\x0512123topiceventefg");
        let (event, payload) = ("event".into(), "efg".into());
        assert_eq!(push.action, PhoenixAction::Push { event, payload });
    }

    #[test]
    fn malformed_messages_are_refused() {
        let deep = format!(r#"["1","1","t","e",{}]"#, "[".repeat(65));
        for frame in [
            "",
            "{}",
            "[]",
            r#"["1","1","t","e"]"#,
            r#"["1","1","t","e",{},1]"#,
            r#"[{},"1","t","e",{}]"#,
            r#"["1","1",7,"e",{}]"#,
            "\0",
            &deep,
        ] {
            assert!(
                decode(frame.as_bytes(), &Limits::default()).is_err(),
                "{frame}"
            );
        }
    }

    #[test]
    fn long_texts_are_refused_with_their_length() {
        let long = "1".repeat(256);
        for (frame, what) in [
            (
                format!(r#"["{long}","1","t","e",{{}}]"#),
                "reference of the join",
            ),
            (format!(r#"["1","{long}","t","e",{{}}]"#), "reference"),
            (
                format!(r#"["1","1","t","{long}",{{}}]"#),
                "name of the event",
            ),
        ] {
            let error = decode(frame.as_bytes(), &Limits::default()).unwrap_err();
            let expected = format!("{what} has 256 bytes; at most 255 are allowed");
            assert_eq!(error.to_string(), expected);
        }
    }
}
