//! Blocks of the native protocol, subprotocol `linerate.v1` (`docs/PROTOCOL.md`).

/// The WebSocket subprotocol.
pub const SUBPROTOCOL: &str = "linerate.v1";

/// What a block holds; each adds a field, in this order.
#[derive(Debug)]
pub struct Flags;

impl Flags {
    /// The offset of the first publication; those that follow count on.
    pub const OFFSETS: u8 = 0x01;
    /// How many publications were replaced by newer ones.
    pub const CONFLATED: u8 = 0x02;
    /// How many were missed, plus one, 0 if nobody knows, and the number of the cause.
    pub const GAP: u8 = 0x04;
    /// Before each publication: how many offsets were left out.
    pub const SPARSE: u8 = 0x08;
    /// Before each publication: the channel that it was published in.
    pub const SOURCES: u8 = 0x10;
    /// Before each publication: who published it and its tags, as JSON.
    pub const EXTRAS: u8 = 0x20;
}

/// Appends seven bits a byte, the lowest first; all but the last byte have the highest bit set.
pub(super) fn append_varint(number: u64, out: &mut Vec<u8>) {
    prost::encoding::encode_varint(number, out);
}
