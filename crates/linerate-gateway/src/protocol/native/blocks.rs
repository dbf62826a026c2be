//! Blocks of the native protocol (`docs/gateway/protocols.md`).

use linerate_hub::{Batch, Gap, GapCause, Publication, Unencodable};
use linerate_proto::{Opcode, frame::OpenFrame};

use crate::protocol::{centrifuge::json, pieces::FRAME_BYTES_MAX};

/// The optional fields of a block. Each flag adds a field, in this order.
#[derive(Debug)]
pub(crate) struct Flags;

impl Flags {
    /// The offset of the first publication; each further one has the next offset.
    pub(crate) const OFFSETS: u8 = 0x01;
    /// The number of publications that were replaced by newer ones.
    pub(crate) const CONFLATED: u8 = 0x02;
    /// The number of missed publications plus one (0 if unknown), then the number of the cause.
    pub(crate) const GAP: u8 = 0x04;
    /// Before each publication: the number of offsets skipped.
    pub(crate) const SPARSE: u8 = 0x08;
    /// Before each publication: the channel in which it was published.
    pub(crate) const SOURCES: u8 = 0x10;
    /// Before each publication: its publisher and tags, as JSON.
    pub(crate) const EXTRAS: u8 = 0x20;
}

/// Appends the publications as blocks, each in its own frame. Usually one block is enough.
pub(super) fn encode(batch: &Batch<'_>, out: &mut Vec<u8>) -> Result<(), Unencodable> {
    let mut rest = batch.publications;
    let mut conflated = batch.conflated;
    while !rest.is_empty() {
        let (run, behind) = rest.split_at(run_len(rest));
        let frame = OpenFrame::start(out);
        Block::of(run, conflated).append(batch.channel_id, out);
        frame.finish(out, Opcode::Binary);
        rest = behind;
        conflated = 0;
    }
    Ok(())
}

/// Appends the frame of a block without publications that reports a gap at its place in the stream.
pub(in crate::protocol) fn append_gap(channel_id: u32, gap: Gap, out: &mut Vec<u8>) {
    let frame = OpenFrame::start(out);
    append_varint(channel_id.into(), out);
    out.push(Flags::GAP);
    append_varint(gap.missed.map_or(0, |missed| missed.saturating_add(1)), out);
    append_varint(cause_number(gap.cause), out);
    append_varint(0, out);
    frame.finish(out, Opcode::Binary);
}

/// Returns how many publications go into the next block: as long as the offsets, if any, increase
/// and the payloads fit into a frame.
fn run_len(publications: &[Publication]) -> usize {
    let mut bytes = publications[0].payload().len();
    let mut fits = |pair: &[Publication]| {
        let [before, next] = pair else { return false };
        bytes += next.payload().len();
        let is_rising = match (before.position(), next.position()) {
            (Some(before), Some(next)) => before.offset < next.offset,
            (None, None) => true,
            _ => false,
        };
        is_rising && bytes <= FRAME_BYTES_MAX
    };
    1 + publications
        .windows(2)
        .map_while(|pair| fits(pair).then_some(()))
        .count()
}

struct Block<'a> {
    publications: &'a [Publication],
    conflated: u64,
    flags: u8,
}

impl<'a> Block<'a> {
    fn of(publications: &'a [Publication], conflated: u64) -> Self {
        let has_offsets = publications[0].position().is_some();
        let mut pairs = publications.windows(2);
        let is_sparse = pairs.any(|pair| pair[0].offset() + 1 != pair[1].offset());
        let has_source = publications.iter().any(|one| one.source().is_some());
        let has_extras = publications.iter().any(has_extras);
        let flags = [
            (has_offsets, Flags::OFFSETS),
            (has_offsets && is_sparse, Flags::SPARSE),
            (conflated > 0, Flags::CONFLATED),
            (has_source, Flags::SOURCES),
            (has_extras, Flags::EXTRAS),
        ];
        let set = flags.iter().filter(|(is_set, _)| *is_set);
        Self {
            publications,
            conflated,
            flags: set.fold(0, |flags, (_, flag)| flags | flag),
        }
    }

    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    fn append(&self, channel_id: u32, out: &mut Vec<u8>) {
        append_varint(channel_id.into(), out);
        out.push(self.flags);
        if self.has(Flags::OFFSETS) {
            append_varint(self.publications[0].offset(), out);
        }
        if self.has(Flags::CONFLATED) {
            append_varint(self.conflated, out);
        }
        append_varint(self.publications.len() as u64, out);
        let mut next_offset = self.publications[0].offset();
        for publication in self.publications {
            if self.has(Flags::SPARSE) {
                append_varint(publication.offset() - next_offset, out);
                next_offset = publication.offset() + 1;
            }
            self.append_publication(publication, out);
        }
    }

    fn append_publication(&self, publication: &Publication, out: &mut Vec<u8>) {
        if self.has(Flags::SOURCES) {
            let source = publication.source().map_or("", |source| source.as_str());
            append_bytes(source.as_bytes(), out);
        }
        if self.has(Flags::EXTRAS) {
            append_bytes(&json::extras(publication), out);
        }
        append_bytes(publication.payload(), out);
    }
}

fn append_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    append_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn has_extras(publication: &Publication) -> bool {
    publication.info().is_some() || !publication.tags().is_empty()
}

/// Returns the number of a cause in a block; 0 for a cause without a number.
fn cause_number(cause: GapCause) -> u64 {
    let place = GapCause::ALL.iter().position(|known| *known == cause);
    place.map_or(0, |place| place as u64 + 1)
}

/// Appends seven bits per byte, lowest first; all bytes but the last have the highest bit set.
fn append_varint(number: u64, out: &mut Vec<u8>) {
    prost::encoding::encode_varint(number, out);
}
