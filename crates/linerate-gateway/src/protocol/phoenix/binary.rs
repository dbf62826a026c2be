//! Messages in binary frames, whose payloads are bytes. The kinds and the lengths of the texts are
//! single bytes.

use linerate_hub::Unencodable;
use linerate_proto::{Opcode, frame::OpenFrame};

use crate::protocol::command::{PhoenixPlace, PhoenixRef};

/// The kinds of messages.
pub(super) const PUSH: u8 = 0;
pub(super) const REPLY: u8 = 1;
pub(super) const BROADCAST: u8 = 2;

/// A message of a client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Push<'a> {
    pub(super) join_ref: &'a str,
    pub(super) reference: &'a str,
    pub(super) topic: &'a str,
    pub(super) event: &'a str,
    pub(super) payload: &'a [u8],
}

/// Decodes a message of a client; `None` if it is malformed.
pub(super) fn decode(frame: &[u8]) -> Option<Push<'_>> {
    let (&PUSH, rest) = frame.split_first()? else {
        return None;
    };
    let ([join_ref, reference, topic, event], payload) = texts(rest)?;
    Some(Push {
        join_ref,
        reference,
        topic,
        event,
        payload,
    })
}

/// Splits a message after its texts, whose lengths come first.
pub(super) fn texts<const N: usize>(bytes: &[u8]) -> Option<([&str; N], &[u8])> {
    let (lengths, mut rest) = bytes.split_first_chunk::<N>()?;
    let mut texts = [""; N];
    for (text, &length) in texts.iter_mut().zip(lengths) {
        let (bytes, after) = rest.split_at_checked(length.into())?;
        *text = std::str::from_utf8(bytes).ok()?;
        rest = after;
    }
    Some((texts, rest))
}

/// Appends the frame of a broadcast.
pub(super) fn append_broadcast(
    topic: &str,
    event: &str,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), Unencodable> {
    append(BROADCAST, &[topic, event], payload, out)
}

/// Appends the frame of a successful reply.
pub(super) fn append_reply(
    place: &PhoenixPlace,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), Unencodable> {
    let text = |reference: &Option<PhoenixRef>| {
        let reference = reference.as_ref();
        reference.map_or_else(String::new, |one| one.text().into_owned())
    };
    let (join_ref, reference) = (text(&place.join_ref), text(&place.reference));
    append(
        REPLY,
        &[&join_ref, &reference, &place.topic, "ok"],
        payload,
        out,
    )
}

fn append(kind: u8, texts: &[&str], payload: &[u8], out: &mut Vec<u8>) -> Result<(), Unencodable> {
    let frame = OpenFrame::start(out);
    out.push(kind);
    for text in texts {
        out.push(u8::try_from(text.len()).map_err(|_| Unencodable)?);
    }
    for text in texts {
        out.extend_from_slice(text.as_bytes());
    }
    out.extend_from_slice(payload);
    frame.finish(out, Opcode::Binary);
    Ok(())
}

// The bytes are those of Phoenix's test/phoenix/socket/v2_json_serializer_test.exs.
#[cfg(test)]
mod tests {
    use super::{Push, append_broadcast, append_reply, decode};
    use crate::protocol::command::{PhoenixPlace, PhoenixRef};

    #[test]
    fn a_push_is_decoded_as_phoenix_does() {
        let push = decode(b"\x00\x02\x03\x05\x0512123topiceventefg").unwrap();
        let expected = Push {
            join_ref: "12",
            reference: "123",
            topic: "topic",
            event: "event",
            payload: b"efg",
        };
        assert_eq!(push, expected);
    }

    #[test]
    fn replies_and_broadcasts_are_encoded_as_phoenix_does() {
        let mut out = Vec::new();
        let place = PhoenixPlace {
            join_ref: Some(PhoenixRef::Number(12)),
            reference: Some(PhoenixRef::Text("123".into())),
            topic: "topic".into(),
        };
        append_reply(&place, b"efg", &mut out).unwrap();
        assert_eq!(out, b"\x82\x14\x01\x02\x03\x05\x0212123topicokefg");
        out.clear();
        append_broadcast("topic", "event", b"efg", &mut out).unwrap();
        assert_eq!(out, b"\x82\x10\x02\x05\x05topiceventefg");
        assert!(append_broadcast(&"t".repeat(256), "event", b"", &mut out).is_err());
    }

    #[test]
    fn malformed_frames_are_refused() {
        for frame in [
            &b""[..],
            b"\x00",
            b"\x00\x00\x00\x01\x00",
            b"\x01\x00\x00\x00\x00",
            b"\x00\x00\x00\x01\x00\xff",
        ] {
            assert_eq!(decode(frame), None, "{frame:?}");
        }
    }
}
