//! Frame headers (RFC 9113 §4.1, §6).

/// Length of a frame header in bytes.
pub(super) const HEAD_BYTES: usize = 9;

pub(super) const DATA: u8 = 0x0;
pub(super) const HEADERS: u8 = 0x1;
const PRIORITY: u8 = 0x2;
const RST_STREAM: u8 = 0x3;
pub(super) const SETTINGS: u8 = 0x4;
const PING: u8 = 0x6;
const GOAWAY: u8 = 0x7;
pub(super) const WINDOW_UPDATE: u8 = 0x8;
pub(super) const CONTINUATION: u8 = 0x9;

const ACK: u8 = 0x1;
const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const PRIORITIZED: u8 = 0x20;

/// The bits of a stream identifier. The bit before them is reserved: "MUST be ignored when
/// receiving".
pub(super) const STREAM_MASK: u32 = u32::MAX >> 1;

/// Length in bytes of the priority fields (§6.2, §6.3).
const PRIORITY_BYTES: u32 = 5;

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

    /// Returns whether the payload length is a `FRAME_SIZE_ERROR` for this kind of frame.
    pub(super) fn has_wrong_size(&self) -> bool {
        let bytes = self.payload_bytes;
        match self.kind {
            PRIORITY => bytes != PRIORITY_BYTES,
            RST_STREAM | WINDOW_UPDATE => bytes != 4,
            SETTINGS if self.is_answer() => bytes != 0,
            SETTINGS => !bytes.is_multiple_of(6),
            PING => bytes != 8,
            GOAWAY => bytes < 8,
            DATA | HEADERS => bytes < u32::from(self.is_padded()) + self.priority_bytes(),
            _ => false,
        }
    }

    /// Returns whether a SETTINGS or PING frame acknowledges ours.
    pub(super) const fn is_answer(&self) -> bool {
        self.flags & ACK != 0
    }

    /// Returns whether the client sends no more on the stream after this frame.
    pub(super) const fn ends_stream(&self) -> bool {
        matches!(self.kind, DATA | HEADERS) && self.flags & END_STREAM != 0
    }

    /// Returns whether the payload begins with a padding length.
    pub(super) const fn is_padded(&self) -> bool {
        matches!(self.kind, DATA | HEADERS) && self.flags & PADDED != 0
    }

    /// Returns the length in bytes of the priority fields in a HEADERS frame (§6.2).
    pub(super) const fn priority_bytes(&self) -> u32 {
        if self.kind == HEADERS && self.flags & PRIORITIZED != 0 {
            PRIORITY_BYTES
        } else {
            0
        }
    }

    /// Returns whether a field block continues after this frame.
    pub(super) const fn leaves_block_open(&self) -> bool {
        matches!(self.kind, HEADERS | CONTINUATION) && self.flags & END_HEADERS == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_wrong(kind: u8, flags: u8, payload_bytes: u32) -> bool {
        let head = Head {
            payload_bytes,
            kind,
            flags,
            stream: 0,
        };
        head.has_wrong_size()
    }

    #[test]
    fn a_head_is_read() {
        let head = Head::decode(*b"\x01\x02\x03\x09\x04\x80\x00\x01\x05");
        assert_eq!(head.payload_bytes, 0x1_0203);
        assert_eq!((head.kind, head.stream), (CONTINUATION, 0x105));
        assert!(!head.leaves_block_open());
    }

    #[test]
    fn s17_each_kind_has_its_lengths() {
        for (kind, right) in [
            (PRIORITY, 5),
            (RST_STREAM, 4),
            (SETTINGS, 6),
            (PING, 8),
            (WINDOW_UPDATE, 4),
        ] {
            assert!(!is_wrong(kind, 0, right));
            assert!(is_wrong(kind, 0, right - 1), "{kind}");
            assert!(is_wrong(kind, 0, right + 1), "{kind}");
        }
        assert!(!is_wrong(SETTINGS, 0, 0));
        assert!(!is_wrong(SETTINGS, ACK, 0));
        assert!(is_wrong(SETTINGS, ACK, 6));
        assert!(is_wrong(GOAWAY, 0, 7));
        assert!(!is_wrong(GOAWAY, 0, 100));
        assert!(!is_wrong(DATA, 0, 0));
        assert!(!is_wrong(0xb7, 0, 1));
        assert!(is_wrong(DATA, PADDED, 0));
        assert!(!is_wrong(DATA, PADDED, 1));
        assert!(is_wrong(HEADERS, PADDED | PRIORITIZED, 5));
        assert!(!is_wrong(HEADERS, PADDED | PRIORITIZED, 6));
    }
}
