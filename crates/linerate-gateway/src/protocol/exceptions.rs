//! Publications that one client does not receive: usually its own, because it knows them.
//!
//! A block is the same for all subscribers. It therefore knows which of its frames which client
//! must not receive, and that client gets a copy without them. Between [`encode`] and [`split`],
//! this knowledge is at the end of the bytes, since encoders of the hub return nothing else.

use std::ops::Range;

use bytes::Bytes;
use linerate_hub::{Batch, Publication, Unencodable};
use linerate_proto::frame::Header;

/// The tag with the ID of the client that does not receive a publication.
pub(crate) const TAG: &str = "except";

/// What ends the bytes if there are exceptions, and if there are none.
const SOME: u8 = 1;
const NONE: u8 = 0;

/// The size of a number in bytes.
const NUMBER_BYTES: usize = 4;

/// A frame that one client does not receive.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Exception {
    /// The ID of the client.
    pub(crate) client: Box<str>,
    /// Where the frame is in the block.
    pub(crate) frame: Range<usize>,
}

/// Appends frames with `append`, one for each publication, and their exceptions.
///
/// # Errors
/// Those of `append`.
pub(super) fn encode(
    batch: &Batch<'_>,
    out: &mut Vec<u8>,
    append: impl FnOnce(&Batch<'_>, &mut Vec<u8>) -> Result<(), Unencodable>,
) -> Result<(), Unencodable> {
    let start = out.len();
    append(batch, out)?;
    let end = out.len();
    if batch.publications.iter().any(|one| except(one).is_some()) {
        let frames: Vec<_> = frames(&out[start..end]).collect();
        for (publication, frame) in batch.publications.iter().zip(frames) {
            if let Some(client) = except(publication) {
                append_exception(client, &frame, out);
            }
        }
    }
    let bytes = out.len() - end;
    if bytes == 0 {
        out.push(NONE);
    } else {
        append_number(bytes, out);
        out.push(SOME);
    }
    Ok(())
}

/// Splits the bytes that [`encode`] has appended into the frames and their exceptions.
pub(super) fn split(mut bytes: Bytes) -> (Bytes, Box<[Exception]>) {
    let Some((&marker, rest)) = bytes.split_last() else {
        return (bytes, Box::default());
    };
    let mut end = rest.len();
    let mut exceptions = Vec::new();
    if marker == SOME
        && let Some((list, length)) = rest.split_last_chunk()
        && let Some(at) = list.len().checked_sub(number(*length))
    {
        let mut list = &list[at..];
        exceptions.extend(std::iter::from_fn(|| take_exception(&mut list)));
        end = at;
    }
    bytes.truncate(end);
    (bytes, exceptions.into())
}

/// Returns the client that does not receive a publication.
fn except(publication: &Publication) -> Option<&str> {
    let mut tags = publication.tags().iter();
    let (_, client) = tags.find(|(key, _)| key == TAG)?;
    // Longer texts are not the ID of a client.
    (client.len() <= usize::from(u8::MAX)).then_some(client)
}

/// Returns where the frames of a server are.
fn frames(wire: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let (header, header_bytes) = Header::decode(&wire[start..]).ok()??;
        let end = start + header_bytes + usize::try_from(header.payload_bytes).ok()?;
        let frame = start..end.min(wire.len());
        start = frame.end;
        Some(frame)
    })
}

fn append_exception(client: &str, frame: &Range<usize>, out: &mut Vec<u8>) {
    append_number(frame.start, out);
    append_number(frame.end, out);
    out.push(u8::try_from(client.len()).unwrap_or_default());
    out.extend_from_slice(client.as_bytes());
}

fn take_exception(list: &mut &[u8]) -> Option<Exception> {
    let (start, rest) = list.split_first_chunk()?;
    let (end, rest) = rest.split_first_chunk()?;
    let (length, rest) = rest.split_first()?;
    let (client, rest) = rest.split_at_checked(usize::from(*length))?;
    *list = rest;
    Some(Exception {
        client: std::str::from_utf8(client).ok()?.into(),
        frame: number(*start)..number(*end),
    })
}

fn append_number(number: usize, out: &mut Vec<u8>) {
    let number = u32::try_from(number).expect("a block has less than 4 GiB");
    out.extend_from_slice(&number.to_le_bytes());
}

fn number(bytes: [u8; NUMBER_BYTES]) -> usize {
    u32::from_le_bytes(bytes) as usize
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use linerate_hub::{Batch, ChannelName, Payloads, Publication, Unencodable};
    use linerate_proto::{Opcode, frame};

    use super::{Exception, TAG, encode, split};

    fn publication(payload: &str, except: Option<&str>) -> Publication {
        let tags = except.map(|client| (TAG.to_owned(), client.to_owned()));
        Publication::build(Bytes::copy_from_slice(payload.as_bytes()))
            .with_tags(tags.into_iter().collect())
            .finish()
    }

    fn sealed(publications: &[Publication]) -> (Bytes, Box<[Exception]>) {
        let batch = Batch {
            channel: &ChannelName::new("c").unwrap(),
            channel_id: 0,
            publications,
            conflated: 0,
            payloads: Payloads::Full,
            with_channel_id: false,
        };
        let mut out = Vec::new();
        let append = |batch: &Batch<'_>, out: &mut Vec<u8>| {
            for publication in batch.publications {
                frame::append(out, Opcode::Text, publication.payload());
            }
            Ok::<(), Unencodable>(())
        };
        encode(&batch, &mut out, append).unwrap();
        split(out.into())
    }

    #[test]
    fn frames_without_exceptions_stay_as_they_are() {
        let (bytes, exceptions) = sealed(&[publication("a", None), publication("b", None)]);
        assert_eq!(&bytes[..], b"\x81\x01a\x81\x01b");
        assert!(exceptions.is_empty());
        assert_eq!(split(Bytes::new()).0, Bytes::new());
    }

    #[test]
    fn exceptions_are_split_from_the_frames() {
        let long = "x".repeat(70_000);
        let publications = [
            publication("a", Some("1.2")),
            publication(&long, Some("3.4")),
            publication("b", None),
            publication("c", Some("")),
            publication("d", Some(&"y".repeat(256))),
        ];
        let (bytes, exceptions) = sealed(&publications);
        let of = |client: &str, frame| Exception {
            client: client.into(),
            frame,
        };
        let end = 3 + 10 + 70_000;
        let expected = [of("1.2", 0..3), of("3.4", 3..end), of("", end + 3..end + 6)];
        assert_eq!(*exceptions, expected);
        assert_eq!(bytes.len(), end + 9);
    }
}
