//! Blocks of the native protocol, subprotocol `linerate.v1` (`docs/gateway/protocols.md`).

use linerate_hub::{Gap, GapCause};
use linerate_proto::{Opcode, frame::OpenFrame};

/// The WebSocket subprotocol.
pub(crate) const SUBPROTOCOL: &str = "linerate.v1";

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

/// Appends the frame of a block without publications that reports a gap at its place in the stream.
pub(crate) fn append_gap(channel_id: u32, gap: Gap, out: &mut Vec<u8>) {
    let frame = OpenFrame::start(out);
    append_varint(channel_id.into(), out);
    out.push(Flags::GAP);
    append_varint(gap.missed.map_or(0, |missed| missed.saturating_add(1)), out);
    append_varint(cause_number(gap.cause), out);
    append_varint(0, out);
    frame.finish(out, Opcode::Binary);
}

/// Returns the number of a cause in a block; 0 for a cause without a number.
fn cause_number(cause: GapCause) -> u64 {
    let place = GapCause::ALL.iter().position(|known| *known == cause);
    place.map_or(0, |place| place as u64 + 1)
}

/// Appends seven bits per byte, lowest first; all bytes but the last have the highest bit set.
pub(super) fn append_varint(number: u64, out: &mut Vec<u8>) {
    prost::encoding::encode_varint(number, out);
}
