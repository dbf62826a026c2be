//! Publications that some subscribers do not receive.
//!
//! A block is the same for all subscribers. It therefore knows which of its frames which clients
//! must not receive, and such a client gets a copy without them. A publication names them in one of
//! two ways: with the tag `except`, which is the ID of a client that usually knows the publication
//! because it caused it, or with an [`Exclusion`], which excludes the subscribers of other
//! channels.

use std::ops::Range;

use linerate_hub::{Batch, ChannelName, Exclusion, Publication};
use linerate_proto::{Opcode, frame::Header};

/// The tag with the ID of the client that does not receive a publication.
pub(crate) const TAG: &str = "except";

/// Returns the tags of a publication that are not an instruction to the gateway.
pub(crate) fn without_tag(tags: &[(String, String)]) -> impl Iterator<Item = &(String, String)> {
    tags.iter().filter(|(name, _)| name != TAG)
}

/// Frames of a publication that some clients do not receive.
#[derive(Clone, Debug)]
pub(crate) struct Exception {
    /// The ID of a client that does not receive them.
    client: Option<Box<str>>,
    /// The channels whose subscribers do not receive them.
    exclusion: Option<Exclusion>,
    /// Where the frames are in the block.
    pub(crate) frames: Range<usize>,
}

impl Exception {
    /// Returns whether it concerns the client with this ID, which subscribes to these channels.
    pub(crate) fn concerns<'a>(
        &self,
        client: &str,
        channels: impl IntoIterator<Item = &'a ChannelName>,
    ) -> bool {
        let is_named = self.client.as_deref().is_some_and(|one| one == client);
        let exclusion = self.exclusion.as_ref();
        is_named || exclusion.is_some_and(|exclusion| exclusion.has_any(channels))
    }
}

/// Returns the exceptions of a batch whose frames are `wire`: one for each publication, or a text
/// frame with the binary frames that belong to it.
pub(super) fn of(batch: &Batch<'_>, wire: &[u8]) -> Box<[Exception]> {
    let has_exceptions = |one: &Publication| one.exclusion().is_some() || except(one).is_some();
    if !batch.publications.iter().any(has_exceptions) {
        return Box::default();
    }
    let frames = groups(wire, batch.publications.len());
    let all = batch.publications.iter().zip(frames);
    let some = all.filter(|(publication, _)| has_exceptions(publication));
    some.map(|(publication, frames)| Exception {
        client: except(publication).map(Box::from),
        exclusion: publication.exclusion().cloned(),
        frames,
    })
    .collect()
}

/// Returns the client that does not receive a publication.
fn except(publication: &Publication) -> Option<&str> {
    let mut tags = publication.tags().iter();
    tags.find(|(key, _)| key == TAG)
        .map(|(_, client)| client.as_str())
}

/// Returns where the frames of each publication are. If there are more frames than publications,
/// those of a publication are a text frame and the binary frames after it.
fn groups(wire: &[u8], publications: usize) -> Vec<Range<usize>> {
    let frames: Vec<_> = frames(wire).collect();
    let has_attachments = frames.len() > publications;
    let mut groups: Vec<Range<usize>> = Vec::with_capacity(publications);
    for (opcode, frame) in frames {
        match groups.last_mut() {
            Some(group) if has_attachments && opcode != Opcode::Text => group.end = frame.end,
            _ => groups.push(frame),
        }
    }
    groups
}

/// Returns where the frames of a server are.
fn frames(wire: &[u8]) -> impl Iterator<Item = (Opcode, Range<usize>)> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let (header, header_bytes) = Header::decode(&wire[start..]).ok()??;
        let end = start + header_bytes + usize::try_from(header.payload_bytes).ok()?;
        let frame = start..end.min(wire.len());
        start = frame.end;
        Some((header.opcode, frame))
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use linerate_hub::{Batch, ChannelName, Exclusion, Payloads, Publication};
    use linerate_proto::{Opcode, frame};

    use super::{Exception, TAG, of};

    fn publication(except: Option<&str>, exclusion: Option<Exclusion>) -> Publication {
        let tags = except.map(|client| (TAG.to_owned(), client.to_owned()));
        let build = Publication::build(Bytes::new()).with_tags(tags.into_iter().collect());
        match exclusion {
            Some(exclusion) => build.with_exclusion(exclusion).finish(),
            None => build.finish(),
        }
    }

    fn exceptions(publications: &[Publication], wire: &[u8]) -> Box<[Exception]> {
        let batch = Batch {
            channel: &channel("c"),
            channel_id: 0,
            publications,
            conflated: 0,
            payloads: Payloads::Full,
            with_channel_id: false,
            with_positions: false,
        };
        of(&batch, wire)
    }

    fn channel(name: &str) -> ChannelName {
        ChannelName::new(name).unwrap()
    }

    #[test]
    fn frames_without_exceptions_have_none() {
        let publications = [publication(None, None), publication(None, None)];
        assert!(exceptions(&publications, b"\x81\x01a\x81\x01b").is_empty());
    }

    #[test]
    fn a_client_or_the_subscribers_of_channels_are_excepted() {
        let exclusion = Exclusion::new(&[channel("a")]);
        let publications = [
            publication(Some("1.2"), None),
            publication(None, None),
            publication(Some("3.4"), Some(exclusion)),
        ];
        let found = exceptions(&publications, b"\x81\x01a\x81\x01b\x81\x01c");
        let [client, both] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!((&client.frames, &both.frames), (&(0..3), &(6..9)));
        assert!(client.concerns("1.2", []));
        assert!(!client.concerns("3.4", &[channel("a")]));
        assert!(both.concerns("3.4", []));
        assert!(both.concerns("1.2", &[channel("b"), channel("a")]));
        assert!(!both.concerns("1.2", &[channel("b")]));
    }

    #[test]
    fn binary_frames_can_be_publications_of_their_own() {
        let both = [publication(None, None), publication(Some("2"), None)];
        let found = exceptions(&both, b"\x81\x01a\x82\x01b");
        assert_eq!(found[0].frames, 3..6);
    }

    #[test]
    fn attachments_belong_to_the_text_frame_before_them() {
        let long = vec![b'x'; 70_000];
        let mut wire = b"\x81\x01a\x82\x01b".to_vec();
        frame::append(&mut wire, Opcode::Binary, &long);
        let end = wire.len();
        wire.extend_from_slice(b"\x81\x01c\x82\x01d");
        let both = [publication(Some("1"), None), publication(Some("2"), None)];
        let found = exceptions(&both, &wire);
        let frames: Vec<_> = found.iter().map(|one| one.frames.clone()).collect();
        assert_eq!(frames, [0..end, end..end + 6]);
    }
}
