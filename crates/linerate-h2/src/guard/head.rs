//! Frame headers (RFC 9113 §4.1).

/// Length of a frame header in bytes.
pub(super) const HEAD_BYTES: usize = 9;

pub(super) const SETTINGS: u8 = 0x4;
pub(super) const WINDOW_UPDATE: u8 = 0x8;

const ACK: u8 = 0x1;

/// The bits of a stream identifier. The bit before them is reserved: "MUST be ignored when
/// receiving".
pub(super) const STREAM_MASK: u32 = u32::MAX >> 1;

/// A frame header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) payload_bytes: u32,
    pub(super) kind: u8,
    flags: u8,
    pub(super) stream: u32,
}

impl Head {
    pub(super) fn decode(bytes: [u8; HEAD_BYTES]) -> Self {
        let [a, b, c, kind, flags, stream @ ..] = bytes;
        Self {
            payload_bytes: u32::from_be_bytes([0, a, b, c]),
            kind,
            flags,
            stream: u32::from_be_bytes(stream) & STREAM_MASK,
        }
    }

    /// Returns whether a SETTINGS frame acknowledges ours.
    pub(super) const fn is_answer(&self) -> bool {
        self.flags & ACK != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read() {
        let head = Head::decode(*b"\x01\x02\x03\x04\x05\x80\x00\x01\x05");
        assert_eq!(head.payload_bytes, 0x1_0203);
        assert_eq!((head.kind, head.stream), (SETTINGS, 0x105));
        assert!(head.is_answer());
    }
}
