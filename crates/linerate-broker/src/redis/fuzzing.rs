//! Entry points for fuzzers of the Redis protocol. Compiled only for fuzzing.

use bytes::Bytes;
use linerate_hub::{Epoch, Publication};

use super::{
    envelope,
    input::{Input, Item},
};

/// Parses bytes that arrive in these pieces. Returns the items as text, and the error that ends the
/// input, if there is one.
pub fn replies<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
    element_bytes_max: usize,
) -> (Vec<String>, Option<String>) {
    let mut input = Input::new(element_bytes_max);
    let mut said = Vec::new();
    for mut piece in pieces {
        while !piece.is_empty() {
            let space = input.space();
            let bytes = space.len().min(piece.len());
            space[..bytes].copy_from_slice(&piece[..bytes]);
            piece = &piece[bytes..];
            input.filled(bytes);
            loop {
                match input.next() {
                    Ok(None) => break,
                    Ok(Some(Item::Oversized { bytes, .. })) => {
                        assert!(bytes > element_bytes_max);
                        said.push(format!("{bytes} bytes are too many"));
                    }
                    Ok(Some(item)) => said.push(format!("{item:?}")),
                    Err(error) => return (said, Some(error.to_string())),
                }
            }
        }
    }
    (said, None)
}

/// Opens an envelope of either kind and checks that its lengths fit the input.
pub fn envelope(bytes: &[u8]) -> Option<Publication> {
    let (meta, payload) = envelope::open_plain(bytes);
    assert!(bytes.ends_with(payload) && meta.len() + payload.len() <= bytes.len());
    let opened = envelope::open(bytes)?;
    assert!(opened.payload.len() + opened.meta.len() < bytes.len());
    assert!(bytes.ends_with(opened.payload));
    assert_eq!(
        opened.position.epoch,
        Epoch::new(opened.position.epoch.as_str())
    );
    let publication = Publication::build(Bytes::copy_from_slice(opened.payload));
    let publication = publication.with_position(opened.position);
    Some(envelope::with_meta(publication, opened.meta).finish())
}

/// Encodes the publisher and the tags of a publication, and decodes them again.
pub fn meta_again(publication: &Publication) -> Publication {
    let meta = envelope::meta(publication.info(), publication.tags());
    let again = Publication::build(publication.payload().clone());
    envelope::with_meta(again, &meta).finish()
}
