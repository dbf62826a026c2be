//! Publications as events. The name of an event is the tag `event` of the publication, or that in a
//! payload such as `{"event":"created","args":[1,2]}`; without either, it is `message`. The events
//! of clients have the same form for applications.

use std::borrow::Cow;

use bytes::Bytes;
use linerate_hub::{Batch, ChannelName, Gap, Publication, Unencodable};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    binary, namespace,
    packet::is_reserved,
    wire::{Kind, Packet, append_string},
};
use crate::protocol::{command::SocketIoEvent, event_name, event_offset::Offsets, gap};

/// A payload that names its event.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope<'a> {
    #[serde(borrow)]
    event: Cow<'a, str>,
    #[serde(borrow)]
    args: Vec<&'a RawValue>,
}

/// Returns the event of a client as JSON for the application, such as
/// `{"namespace":"/","event":"created","args":[1,2]}`.
pub(crate) fn describe(event: &SocketIoEvent) -> Bytes {
    let mut json = b"{\"namespace\":".to_vec();
    append_string(&event.namespace, &mut json);
    json.extend_from_slice(b",\"event\":");
    append_string(&event.name, &mut json);
    json.extend_from_slice(b",\"args\":");
    json.extend_from_slice(&event.arguments);
    json.push(b'}');
    json.into()
}

/// Appends an event for each publication.
pub(super) fn encode(batch: &Batch<'_>, out: &mut Vec<u8>) -> Result<(), Unencodable> {
    let mut offsets = batch.with_positions.then(|| Offsets::new(batch.channel));
    for publication in batch.publications {
        let offset = offsets.as_mut().and_then(|offsets| offsets.of(publication));
        append(batch.channel, publication, offset.as_deref(), out);
    }
    Ok(())
}

/// Appends an event that reports a gap.
pub(super) fn append_gap(channel: &ChannelName, gap: Gap, out: &mut Vec<u8>) {
    let (namespace, _) = namespace::split(channel.as_str());
    let mut json = b"[\"linerate:gap\",".to_vec();
    gap::append_json(channel, gap, &mut json);
    json.push(b']');
    append_event(namespace, &json, &[], out);
}

/// Appends the frames of an event. A client that can recover finds its offset after the arguments.
fn append(
    channel: &ChannelName,
    publication: &Publication,
    offset: Option<&str>,
    out: &mut Vec<u8>,
) {
    let (namespace, _) = namespace::split(channel.as_str());
    let line = publication
        .line()
        .and_then(|line| std::str::from_utf8(line).ok());
    let envelope = line.and_then(enveloped);
    let named = envelope.as_ref().map(|envelope| &*envelope.event);
    let name = named.or_else(|| event_name::of(publication));
    // A client would refuse a reserved name.
    let name = name.filter(|name| !is_reserved(name));
    let name = name.unwrap_or(event_name::MESSAGE);
    let mut json = vec![b'['];
    append_string(name, &mut json);
    let mut attachments = Vec::new();
    match (envelope, line, std::str::from_utf8(publication.payload())) {
        (Some(Envelope { args, .. }), ..) => {
            for arg in args {
                json.push(b',');
                json.extend_from_slice(arg.get().as_bytes());
            }
        }
        (None, Some(line), _) => {
            json.push(b',');
            json.extend_from_slice(line.as_bytes());
        }
        (None, None, Ok(text)) => {
            json.push(b',');
            append_string(text, &mut json);
        }
        (None, None, Err(_)) => {
            json.push(b',');
            json.extend_from_slice(binary::FIRST);
            attachments.push(publication.payload().clone());
        }
    }
    if let Some(offset) = offset {
        json.push(b',');
        append_string(offset, &mut json);
    }
    json.push(b']');
    let is_text = attachments.is_empty();
    if let Some((json, attachments)) = is_text.then(|| binary::take_out(&json)).flatten() {
        return append_event(namespace, &json, &attachments, out);
    }
    append_event(namespace, &json, &attachments, out);
}

fn append_event(namespace: &str, json: &[u8], attachments: &[Bytes], out: &mut Vec<u8>) {
    let packet = Packet {
        kind: Kind::Event,
        namespace,
        id: None,
        json,
        attachments,
    };
    packet.append(out);
}

/// Returns the event that a payload names.
fn enveloped(line: &str) -> Option<Envelope<'_>> {
    may_be_envelope(line)
        .then(|| serde_json::from_str(line).ok())
        .flatten()
}

/// Returns whether a payload may name its event, so that it cannot be the only argument of another.
pub(crate) fn may_be_envelope(line: &str) -> bool {
    line.starts_with('{') && line.contains("\"event\"")
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use linerate_hub::{
        Batch, ChannelName, Epoch, Gap, GapCause, Payloads, Publication, StreamPosition,
    };
    use linerate_proto::{Opcode, frame};

    use super::{append_gap, encode};
    use crate::protocol::event_name::tags;

    fn encoded(channel: &str, publication: Publication) -> Vec<u8> {
        let batch = Batch {
            channel: &ChannelName::new(channel).unwrap(),
            channel_id: 0,
            publications: &[publication],
            conflated: 0,
            payloads: Payloads::Full,
            with_channel_id: false,
            with_positions: false,
        };
        let mut out = Vec::new();
        encode(&batch, &mut out).unwrap();
        out
    }

    fn frames(text: &str, attachments: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        frame::append(&mut out, Opcode::Text, text.as_bytes());
        for attachment in attachments {
            frame::append(&mut out, Opcode::Binary, attachment);
        }
        out
    }

    fn of(payload: &'static [u8]) -> Publication {
        Publication::new(Bytes::from_static(payload))
    }

    #[test]
    fn a_publication_is_the_event_message() {
        for (channel, payload, text) in [
            ("news", &br#"{"a":1}"#[..], r#"42["message",{"a":1}]"#),
            ("news", b"{\n\"a\":1}", r#"42["message",{ "a":1}]"#),
            ("news", b"[1,2]", r#"42["message",[1,2]]"#),
            ("news", b"hi \"you\"", r#"42["message","hi \"you\""]"#),
            ("/chat:a:b", b"1", r#"42/chat,["message",1]"#),
        ] {
            assert_eq!(encoded(channel, of(payload)), frames(text, &[]), "{text}");
        }
    }

    #[test]
    fn a_publication_can_name_its_event() {
        let tagged = Publication::build(Bytes::from_static(b"1"));
        let tagged = tagged.with_tags(tags("created", None)).finish();
        assert_eq!(encoded("news", tagged), frames(r#"42["created",1]"#, &[]));
        for (payload, text) in [
            (
                &br#"{"event":"created","args":[1,"a"]}"#[..],
                r#"42["created",1,"a"]"#,
            ),
            (br#"{"event":"created","args":[]}"#, r#"42["created"]"#),
            (
                br#"{"event":"created"}"#,
                r#"42["message",{"event":"created"}]"#,
            ),
            (br#"{"event":"disconnect","args":[]}"#, r#"42["message"]"#),
            (
                br#"{"event":"a","args":[],"id":1}"#,
                r#"42["message",{"event":"a","args":[],"id":1}]"#,
            ),
            (br#"{"event":1}"#, r#"42["message",{"event":1}]"#),
        ] {
            assert_eq!(encoded("news", of(payload)), frames(text, &[]), "{text}");
        }
    }

    #[test]
    fn bytes_are_attachments() {
        let text = r#"451-["message",{"_placeholder":true,"num":0}]"#;
        assert_eq!(encoded("news", of(b"\xff")), frames(text, &[b"\xff"]));
        let payload = br#"{"event":"e","args":[{"_placeholder":true,"base64":"AQI="},{"b":{"_placeholder":true,"base64":"Aw=="}}]}"#;
        let text =
            r#"452-/chat,["e",{"_placeholder":true,"num":0},{"b":{"_placeholder":true,"num":1}}]"#;
        assert_eq!(
            encoded("/chat:a", of(payload)),
            frames(text, &[b"\x01\x02", b"\x03"])
        );
    }

    #[test]
    fn an_event_with_a_position_ends_with_its_offset() {
        let at = |payload: &'static [u8], offset| {
            let epoch = Epoch::new("e");
            let publication = Publication::build(Bytes::from_static(payload));
            let position = StreamPosition { epoch, offset };
            publication.with_position(position).finish()
        };
        let publications = [
            at(b"1", 7),
            at(br#"{"event":"e","args":[]}"#, 8),
            at(b"\xff", 9),
        ];
        let batch = Batch {
            channel: &ChannelName::new("news").unwrap(),
            channel_id: 0,
            publications: &publications,
            conflated: 0,
            payloads: Payloads::Full,
            with_channel_id: false,
            with_positions: true,
        };
        let mut out = Vec::new();
        encode(&batch, &mut out).unwrap();
        let mut expected = frames(r#"42["message",1,"DBGgirMKZkI.7"]"#, &[]);
        expected.extend(frames(r#"42["e","DBGgirMKZkI.8"]"#, &[]));
        let text = r#"451-["message",{"_placeholder":true,"num":0},"DBGgirMKZkI.9"]"#;
        expected.extend(frames(text, &[b"\xff"]));
        assert_eq!(
            String::from_utf8_lossy(&out),
            String::from_utf8_lossy(&expected)
        );
    }

    #[test]
    fn a_gap_is_an_event() {
        let (mut out, channel) = (Vec::new(), ChannelName::new("/chat:a").unwrap());
        let gap = Gap {
            missed: Some(3),
            cause: GapCause::RingEvicted,
        };
        append_gap(&channel, gap, &mut out);
        let text =
            r#"42/chat,["linerate:gap",{"channel":"/chat:a","missed":3,"cause":"ring_evicted"}]"#;
        assert_eq!(out, frames(text, &[]));
    }
}
