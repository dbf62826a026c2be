//! The positions of events, as clients of Socket.IO know them: the string after the arguments.
//!
//! All subscribers of a channel get the same bytes. A client returns the string of the last event
//! that it has received, unchanged, and the server finds the event among those that it has handed
//! to the client. The string is therefore short: it has a digest of the channel and its epoch, in
//! place of both.

use std::fmt::Write;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use linerate_hub::{Batch, ChannelName, Epoch, Publication, StreamPosition};
use ring::digest::{Context, SHA256};

/// The number of characters of a digest.
const STREAM_CHARS: usize = 11;

/// The longest offset: a digest, a dot and a number.
const CHARS_MAX: usize = STREAM_CHARS + 1 + 20;

/// A digest of a channel and its epoch. It is the same on all nodes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct StreamDigest([u8; 8]);

/// The position of an event in the stream of its channel.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct EventOffset {
    pub(crate) stream: StreamDigest,
    /// The offset of the publication.
    pub(crate) offset: u64,
}

impl StreamDigest {
    /// Returns the digest of a channel in an epoch.
    pub(crate) fn of(channel: &ChannelName, epoch: &Epoch) -> Self {
        let mut context = Context::new(&SHA256);
        context.update(channel.as_str().as_bytes());
        // No name of a channel has this byte.
        context.update(&[0]);
        context.update(epoch.as_str().as_bytes());
        let digest = context.finish();
        Self(*digest.as_ref().first_chunk().expect("it has 32 bytes"))
    }
}

impl EventOffset {
    /// Reads what a client has presented; returns `None` if no event had this offset.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.len() > CHARS_MAX {
            return None;
        }
        let (stream, offset) = text.split_once('.')?;
        let stream = BASE64_URL_SAFE_NO_PAD.decode(stream).ok()?;
        let is_number = offset.bytes().all(|byte| byte.is_ascii_digit());
        Some(Self {
            stream: StreamDigest(stream.try_into().ok()?),
            offset: offset.parse().ok().filter(|_| is_number)?,
        })
    }
}

/// Returns the offset of the last event of a batch that has one.
pub(super) fn end_of(batch: &Batch<'_>) -> Option<EventOffset> {
    let mut newest_first = batch.publications.iter().rev();
    let position = newest_first.find_map(Publication::position)?;
    Some(EventOffset {
        stream: StreamDigest::of(batch.channel, &position.epoch),
        offset: position.offset,
    })
}

/// Writes the offsets of the publications of a channel. Consecutive publications mostly have the
/// same epoch.
#[derive(Debug)]
pub(super) struct Offsets<'a> {
    channel: &'a ChannelName,
    newest: Option<(&'a Epoch, String)>,
}

impl<'a> Offsets<'a> {
    pub(super) const fn new(channel: &'a ChannelName) -> Self {
        Self {
            channel,
            newest: None,
        }
    }

    /// Returns the offset of a publication, if it has a position.
    pub(super) fn of(&mut self, publication: &'a Publication) -> Option<String> {
        let StreamPosition { epoch, offset } = publication.position()?;
        let stream = match &self.newest {
            Some((known, stream)) if *known == epoch => stream,
            _ => {
                let digest = StreamDigest::of(self.channel, epoch);
                let stream = BASE64_URL_SAFE_NO_PAD.encode(digest.0);
                &self.newest.insert((epoch, stream)).1
            }
        };
        let mut text = String::with_capacity(CHARS_MAX);
        text.push_str(stream);
        write!(text, ".{offset}").expect("writing to a String cannot fail");
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_returns_names_the_event() {
        let (channel, epoch) = (ChannelName::new("news").unwrap(), Epoch::new("e"));
        for offset in [0, 1, u64::MAX] {
            let position = StreamPosition {
                epoch: epoch.clone(),
                offset,
            };
            let publication = Publication::build("1".into()).with_position(position);
            let publication = publication.finish();
            let text = Offsets::new(&channel).of(&publication).unwrap();
            assert!(text.len() <= CHARS_MAX);
            let expected = EventOffset {
                stream: StreamDigest::of(&channel, &epoch),
                offset,
            };
            assert_eq!(EventOffset::parse(&text), Some(expected));
        }
    }

    #[test]
    fn channels_and_epochs_have_different_digests() {
        let digest = |channel, epoch| {
            StreamDigest::of(&ChannelName::new(channel).unwrap(), &Epoch::new(epoch))
        };
        assert_ne!(digest("a", "e"), digest("b", "e"));
        assert_ne!(digest("a", "e"), digest("a", "f"));
        assert_ne!(digest("a", "be"), digest("ab", "e"));
    }

    #[test]
    fn other_texts_are_no_offsets() {
        for text in [
            "",
            ".",
            "AAAAAAAAAAA",
            "AAAAAAAAAAA.",
            "AAAAAAAAAAA.-1",
            "AAAAAAAAAAA.+1",
            "AAAAAAAAAAA.18446744073709551616",
            "AAAAAAAAAAA.1.1",
            "AAAAAAAAAA.1",
            "AAAAAAAAAAAA.1",
            "AAAAAAAAAA=.1",
            "hello",
            &"A".repeat(1 << 20),
        ] {
            assert_eq!(EventOffset::parse(text), None, "{text:.40}");
        }
        assert!(EventOffset::parse("AAAAAAAAAAA.1").is_some());
    }
}
