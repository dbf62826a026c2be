//! Publications as broadcasts: `[null,null,topic,event,payload]`. The tag `event` of a publication
//! is the name of its event.

use linerate_hub::{Batch, ChannelName, Publication, Unencodable};
use linerate_proto::{Opcode, frame::OpenFrame};

use super::binary;
use crate::protocol::event_name;

/// The maximum length of the name of an event, in bytes: binary messages have no room for more.
const EVENT_BYTES_MAX: usize = 255;

/// Returns whether only the server sends events with this name.
pub(crate) fn is_reserved(name: &str) -> bool {
    name.starts_with("phx_") || matches!(name, "presence_diff" | "presence_state")
}

/// Appends a broadcast for each publication, in its own frame.
pub(super) fn encode(batch: &Batch<'_>, out: &mut Vec<u8>) -> Result<(), Unencodable> {
    batch
        .publications
        .iter()
        .try_for_each(|publication| append(batch.channel, publication, out))
}

fn append(
    channel: &ChannelName,
    publication: &Publication,
    out: &mut Vec<u8>,
) -> Result<(), Unencodable> {
    let topic = channel.as_str();
    // Clients would take a reserved name for a message of the protocol.
    let event = event_name::of(publication)
        .filter(|name| !is_reserved(name) && name.len() <= EVENT_BYTES_MAX)
        .unwrap_or(event_name::MESSAGE);
    let Some(json) = publication.line() else {
        return binary::append_broadcast(topic, event, publication.payload(), out);
    };
    let frame = OpenFrame::start(out);
    out.extend_from_slice(b"[null,null,");
    append_string(topic, out);
    out.push(b',');
    append_string(event, out);
    out.push(b',');
    out.extend_from_slice(json);
    out.push(b']');
    frame.finish(out, Opcode::Text);
    Ok(())
}

/// Appends a string as JSON.
fn append_string(text: &str, out: &mut Vec<u8>) {
    serde_json::to_writer(out, text).expect("serializing a string to a Vec cannot fail");
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use linerate_hub::{Batch, ChannelName, Payloads, Publication};
    use linerate_proto::{Opcode, frame};

    use super::{encode, is_reserved};

    fn encoded(payload: &'static [u8], event: Option<&str>) -> Vec<u8> {
        let tags = event.map(|event| ("event".to_owned(), event.to_owned()));
        let publication = Publication::build(Bytes::from_static(payload))
            .with_tags(tags.into_iter().collect())
            .finish();
        let batch = Batch {
            channel: &ChannelName::new("t").unwrap(),
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

    #[test]
    fn json_is_a_text_frame_and_other_bytes_are_a_binary_frame() {
        let text = |json: &str| {
            let mut out = Vec::new();
            frame::append(&mut out, Opcode::Text, json.as_bytes());
            out
        };
        // As in Phoenix's test/phoenix/socket/v2_json_serializer_test.exs.
        let broadcast = encoded(br#"{"m":1}"#, Some("e"));
        assert_eq!(broadcast, text(r#"[null,null,"t","e",{"m":1}]"#));
        let unnamed = encoded(br#"{"m":1}"#, None);
        assert_eq!(unnamed, text(r#"[null,null,"t","message",{"m":1}]"#));
        assert_eq!(encoded(b"\xff", Some("e")), b"\x82\x06\x02\x01\x01te\xff");
    }

    #[test]
    fn names_that_clients_would_misunderstand_are_replaced() {
        let long = "e".repeat(256);
        for name in ["phx_close", "presence_state", &long] {
            assert_eq!(encoded(b"1", Some(name)), encoded(b"1", None));
        }
    }

    #[test]
    fn events_of_the_protocol_are_reserved() {
        for name in [
            "phx_close",
            "phx_error",
            "phx_reply",
            "presence_diff",
            "presence_state",
        ] {
            assert!(is_reserved(name), "{name}");
        }
        assert!(!is_reserved("phoenix"));
    }
}
