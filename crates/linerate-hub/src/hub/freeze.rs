//! Encoding of blocks.

use std::{sync::Arc, time::Instant};

use bytes::Bytes;
use linerate_budget::{Account, Share};

use crate::{
    Batch, Conflate, Encode, EncodingId, Place, Publication, Sequence,
    hub::{
        block::{Block, Encoded},
        class::Class,
        conflate::{self, Selection, Span, overflow::Overflow},
        group::Kind,
        stream::Stream,
    },
};

/// Maximum capacity of the buffer, in bytes, that is kept between two blocks.
const KEPT_BYTES_MAX: usize = 256 * 1024;
const KEPT_PUBLICATIONS_MAX: usize = 4_096;

/// Encodes blocks.
#[derive(Debug)]
pub(crate) struct Freezer<B> {
    encodings: Vec<Arc<dyn Encode<Block = B>>>,
    account: Account,
    buffer: Vec<u8>,
    publications: Vec<Publication>,
}

/// Memory whose first `length` bytes are those of a block. Short blocks are stored inline, so that
/// a block is a single allocation.
struct Counted<O> {
    bytes: O,
    length: usize,
    _share: Share,
}

impl<O: AsRef<[u8]>> AsRef<[u8]> for Counted<O> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes.as_ref()[..self.length]
    }
}

/// A range of publications to encode.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range<'a> {
    pub(crate) span: Span,
    pub(crate) conflate: Option<&'a Conflate>,
    /// Publications of the range that the ring has lost.
    pub(crate) overflow: Option<&'a Overflow>,
    /// The sequence that the block belongs to.
    pub(crate) sequence: Option<&'a Sequence>,
    /// The publication before the range, if it may begin with a delta.
    pub(crate) previous: Option<&'a Publication>,
}

impl<'a> Range<'a> {
    /// Returns the place of a block of the range that ends before the publication `to`.
    fn place(&self, to: u64) -> Option<Place<'a>> {
        let from = self.span.from;
        let sequence = self.sequence?;
        Some(Place { sequence, from, to })
    }
}

impl<B> Freezer<B> {
    pub(crate) fn new(encodings: Vec<Arc<dyn Encode<Block = B>>>, account: Account) -> Self {
        Self {
            encodings,
            account,
            buffer: Vec::new(),
            publications: Vec::new(),
        }
    }

    pub(crate) fn has(&self, encoding: EncodingId) -> bool {
        usize::from(encoding.0) < self.encodings.len()
    }

    /// Creates the state of a sequence of blocks.
    pub(crate) fn sequence(&self, encoding: EncodingId) -> Option<Sequence> {
        self.encodings.get(usize::from(encoding.0))?.sequence()
    }

    /// Encodes publications of a class, as many as fit into a block.
    pub(crate) fn freeze(
        &mut self,
        now: Instant,
        stream: &Stream,
        class: &Class,
        kind: &Kind,
        range: Range<'_>,
    ) -> Block<B> {
        let (ring, span) = (&stream.ring, range.span);
        let first = class.ring_number(span.from.max(class.base()), ring);
        let published = ring.published(first).unwrap_or(now);
        if let Some(conflate) = range.conflate {
            let lost = range.overflow.into_iter();
            let lost =
                lost.flat_map(|overflow| overflow.iter(span.from, class.base().min(span.limit)));
            let held = class.iter(ring, span.from, span.limit);
            let selection = conflate::select(lost.chain(held), span, conflate);
            return self.freeze_selection((stream, kind), (range, selection), published);
        }
        let to = class.fit(ring, span.from, span.limit, span.bytes_max);
        let place = range.place(to);
        let slice = class.is_all().then(|| ring.slice(span.from, to)).flatten();
        let encoded = match slice {
            Some(publications) => {
                let batch = kind.batch(stream, publications, range.previous);
                self.encode(kind.encoding, &batch, place)
            }
            None => {
                let scattered = class.iter(ring, span.from, to).map(|(_, found)| found);
                self.encode_scattered((stream, kind), scattered, (range, place))
            }
        };
        Block {
            from: span.from,
            to,
            published,
            has_previous: range.previous.is_some(),
            has_last: true,
            encoded,
            messages: (to - span.from) as u32,
            conflated: 0,
        }
    }

    /// Encodes all of a batch; returns `None` if a publication cannot be encoded.
    pub(crate) fn encode(
        &mut self,
        encoding: EncodingId,
        batch: &Batch<'_>,
        place: Option<Place<'_>>,
    ) -> Option<Encoded<B>> {
        self.buffer.clear();
        let encode = self.encodings.get(usize::from(encoding.0))?;
        let result = encode.encode(batch, &mut self.buffer);
        let encoded = result.ok().map(|()| Encoded {
            block: encode.seal(self.counted(), batch, place),
            bytes: self.buffer.len(),
        });
        if self.buffer.capacity() > KEPT_BYTES_MAX {
            self.buffer = Vec::new();
        }
        encoded
    }

    /// Returns a copy of the buffer whose memory is charged to the account until its last owner
    /// drops it. A slow client may keep a block long after the hub has dropped it.
    fn counted(&self) -> Bytes {
        match self.buffer.len() {
            0..=128 => self.in_place::<128>(),
            129..=256 => self.in_place::<256>(),
            257..=512 => self.in_place::<512>(),
            513..=1_024 => self.in_place::<1_024>(),
            _ => self.owned_by(Box::<[u8]>::from(self.buffer.as_slice()), self.buffer.len()),
        }
    }

    /// Returns a copy of the buffer, which is at most `N` bytes long.
    fn in_place<const N: usize>(&self) -> Bytes {
        let mut bytes = [0; N];
        bytes[..self.buffer.len()].copy_from_slice(&self.buffer);
        self.owned_by(bytes, 0)
    }

    /// Returns the first bytes of `owner`, as many as the buffer has. `elsewhere` is the size in
    /// bytes of the memory that is not in `O` itself.
    fn owned_by<O: AsRef<[u8]> + Send + 'static>(&self, owner: O, elsewhere: usize) -> Bytes {
        let footprint = size_of::<Counted<O>>() + elsewhere;
        Bytes::from_owner(Counted {
            bytes: owner,
            length: self.buffer.len(),
            _share: self.account.share(footprint as u64),
        })
    }

    fn freeze_selection(
        &mut self,
        (stream, kind): (&Stream, &Kind),
        (range, selection): (Range<'_>, Selection),
        published: Instant,
    ) -> Block<B> {
        let messages = selection.publications.len();
        let conflated = selection.to - range.span.from - messages as u64;
        let batch = Batch {
            conflated,
            ..kind.batch(stream, &selection.publications, range.previous)
        };
        let encoded = self.encode(kind.encoding, &batch, range.place(selection.to));
        Block {
            from: range.span.from,
            to: selection.to,
            published,
            has_previous: range.previous.is_some(),
            has_last: selection.last.is_some_and(|last| last + 1 == selection.to),
            encoded,
            messages: messages as u32,
            conflated,
        }
    }

    fn encode_scattered<'p>(
        &mut self,
        (stream, kind): (&Stream, &Kind),
        scattered: impl Iterator<Item = &'p Publication>,
        (range, place): (Range<'_>, Option<Place<'_>>),
    ) -> Option<Encoded<B>> {
        let mut publications = std::mem::take(&mut self.publications);
        publications.extend(scattered.cloned());
        let batch = kind.batch(stream, &publications, range.previous);
        let encoded = self.encode(kind.encoding, &batch, place);
        publications.clear();
        publications.shrink_to(KEPT_PUBLICATIONS_MAX);
        self.publications = publications;
        encoded
    }
}
