//! Publications as events of Pusher: the payload is the data of the event, and the tag `event` is
//! its name.

use linerate_hub::{Batch, ChannelName, Gap, Publication, Unencodable};
use linerate_proto::{Opcode, frame::OpenFrame};

use super::wire::{append_event, append_string};
use crate::{
    config::{PusherAccess, PusherKind},
    protocol::{event_name, gap},
};

/// The maximum length of the name of an event, in bytes.
pub(crate) const EVENT_BYTES_MAX: usize = 200;

/// Returns whether only the server sends events with this name.
pub(crate) fn is_reserved(name: &str) -> bool {
    name.starts_with("pusher:") || name.starts_with("pusher_internal:")
}

/// Appends an event for each publication, in its own frame.
pub(super) fn encode(batch: &Batch<'_>, out: &mut Vec<u8>) -> Result<(), Unencodable> {
    batch
        .publications
        .iter()
        .try_for_each(|publication| append(batch.channel, publication, out))
}

/// Appends the frame of an event.
pub(super) fn append(
    channel: &ChannelName,
    publication: &Publication,
    out: &mut Vec<u8>,
) -> Result<(), Unencodable> {
    let data = std::str::from_utf8(publication.payload()).map_err(|_| Unencodable)?;
    let frame = OpenFrame::start(out);
    append_event(name(publication), Some(channel.as_str()), data, out);
    if let Some(user) = sender(channel, publication) {
        // The object is closed again after another member.
        out.pop();
        out.extend_from_slice(b",\"user_id\":");
        append_string(user, out);
        out.push(b'}');
    }
    frame.finish(out, Opcode::Text);
    Ok(())
}

/// Appends the frame of an event that reports a gap. Pusher has no message for this, but SDKs pass
/// on events with any name.
pub(super) fn append_gap(channel: &ChannelName, gap: Gap, out: &mut Vec<u8>) {
    let mut data = Vec::new();
    gap::append_json(channel, gap, &mut data);
    let data = String::from_utf8_lossy(&data);
    let frame = OpenFrame::start(out);
    append_event("linerate:gap", Some(channel.as_str()), &data, out);
    frame.finish(out, Opcode::Text);
}

fn name(publication: &Publication) -> &str {
    event_name::of(publication).unwrap_or(event_name::MESSAGE)
}

/// Returns the user who sent a client event to a presence channel.
fn sender<'a>(channel: &ChannelName, publication: &'a Publication) -> Option<&'a str> {
    let is_presence = PusherKind::of(channel.as_str()).access == PusherAccess::Presence;
    let user = &*publication.info()?.user;
    let is_of_client = is_presence && name(publication).starts_with("client-");
    (is_of_client && !user.is_empty()).then_some(user)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use linerate_hub::{
        Batch, ChannelName, ClientInfo, Gap, GapCause, Payloads, Publication, Unencodable,
    };
    use linerate_proto::{Opcode, frame};

    use super::{append_gap, encode};
    use crate::protocol::event_name::tags;

    fn encoded(channel: &str, publications: &[Publication]) -> Result<Vec<u8>, Unencodable> {
        let batch = Batch {
            channel: &ChannelName::new(channel).unwrap(),
            channel_id: 0,
            publications,
            conflated: 0,
            payloads: Payloads::Full,
            with_channel_id: false,
            with_positions: false,
        };
        let mut out = Vec::new();
        encode(&batch, &mut out)?;
        Ok(out)
    }

    fn event(name: &str, data: &'static str, user: &str) -> Publication {
        let info = ClientInfo {
            user: user.into(),
            ..ClientInfo::default()
        };
        Publication::build(Bytes::from_static(data.as_bytes()))
            .with_tags(tags(name, None))
            .with_info(Some(info))
            .finish()
    }

    #[test]
    fn publications_are_events_in_frames_of_their_own() {
        let plain = Publication::new(Bytes::from_static(b"hi"));
        let publications = [plain, event("e\"", "{\"a\":\"\n\"}", "u")];
        let mut expected = Vec::new();
        for event in [
            r#"{"event":"message","channel":"c","data":"hi"}"#,
            r#"{"event":"e\"","channel":"c","data":"{\"a\":\"\n\"}"}"#,
        ] {
            frame::append(&mut expected, Opcode::Text, event.as_bytes());
        }
        assert_eq!(encoded("c", &publications).unwrap(), expected);
    }

    #[test]
    fn the_sender_is_named_in_presence_channels() {
        let named = encoded("presence-c", &[event("client-e", "1", "u")]).unwrap();
        assert!(named.ends_with(br#""data":"1","user_id":"u"}"#));
        for (channel, publication) in [
            ("private-c", event("client-e", "1", "u")),
            ("presence-c", event("e", "1", "u")),
            ("presence-c", event("client-e", "1", "")),
        ] {
            let unnamed = encoded(channel, &[publication]).unwrap();
            assert!(unnamed.ends_with(br#""data":"1"}"#), "{channel}");
        }
    }

    #[test]
    fn binary_payloads_cannot_be_encoded() {
        let binary = Publication::new(Bytes::from_static(b"\xff"));
        assert_eq!(encoded("c", &[binary]), Err(Unencodable));
    }

    #[test]
    fn a_gap_is_an_event() {
        let (mut out, channel) = (Vec::new(), ChannelName::new("c").unwrap());
        let gap = Gap {
            missed: Some(3),
            cause: GapCause::RingEvicted,
        };
        append_gap(&channel, gap, &mut out);
        let text = String::from_utf8_lossy(&out);
        let expected = r#"{"event":"linerate:gap","channel":"c","data":"{\"channel\":\"c\",\"missed\":3,\"cause\":\"ring_evicted\"}"}"#;
        assert!(text.ends_with(expected), "{text}");
    }
}
