//! Unmasked frames, appended around payloads that are written in place (RFC 6455 §5.2).

use alloc::vec::Vec;

use linerate_simd::append;

use super::Header;
use crate::opcode::Opcode;

/// The room that is left for a header, which fits a payload of 126 to 65,535 bytes. Shorter and
/// longer payloads are moved by a few bytes.
const HEADER_BYTES: usize = 4;

/// A frame whose payload is being appended to a buffer.
///
/// ```
/// use linerate_proto::{Opcode, frame::OpenFrame};
///
/// let mut out = Vec::new();
/// let frame = OpenFrame::start(&mut out);
/// out.extend_from_slice(b"Sp");
/// out.extend_from_slice(b"am");
/// frame.finish(&mut out, Opcode::Text);
/// assert_eq!(out, b"\x81\x04Spam");
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "without `finish`, the frame has no header"]
pub struct OpenFrame {
    /// Where the room for the header starts.
    at: usize,
}

impl OpenFrame {
    /// Starts a frame at the end of `out`. Its payload is appended next.
    pub fn start(out: &mut Vec<u8>) -> Self {
        let at = out.len();
        out.extend_from_slice(&[0; HEADER_BYTES]);
        Self { at }
    }

    /// Writes the header in front of everything that was appended since [`start`](Self::start).
    ///
    /// # Panics
    /// `out` is shorter than it was after `start`.
    pub fn finish(self, out: &mut Vec<u8>, opcode: Opcode) {
        let header = Header::new(opcode, self.payload_bytes(out) as u64, None);
        let mut bytes = [0; Header::BYTES_MAX];
        let length = header.encode(&mut bytes);
        if length == HEADER_BYTES {
            out[self.at..self.at + HEADER_BYTES].copy_from_slice(&bytes[..HEADER_BYTES]);
        } else {
            let room = self.at..self.at + HEADER_BYTES;
            out.splice(room, bytes[..length].iter().copied());
        }
    }

    /// Returns how many bytes of payload were appended to `out` so far.
    pub fn payload_bytes(self, out: &[u8]) -> usize {
        out.len() - self.at - HEADER_BYTES
    }
}

/// Appends a whole frame.
#[inline]
pub fn append(out: &mut Vec<u8>, opcode: Opcode, payload: &[u8]) {
    append_frame(out, true, opcode, payload);
}

/// Appends a frame. The short forms of the header, which most messages use, are arrays of a
/// constant length, so that each is written with a single store.
#[inline(always)]
pub(crate) fn append_frame(out: &mut Vec<u8>, fin: bool, opcode: Opcode, payload: &[u8]) {
    let first = u8::from(fin) << 7 | opcode as u8;
    match payload.len() {
        bytes @ 0..=125 => append::prefixed(out, [first, bytes as u8], payload),
        bytes @ 126..=0xFFFF => {
            let [high, low] = (bytes as u16).to_be_bytes();
            append::prefixed(out, [first, 126, high, low], payload);
        }
        bytes => append_long(out, fin, opcode, payload, bytes as u64),
    }
}

#[cold]
fn append_long(out: &mut Vec<u8>, fin: bool, opcode: Opcode, payload: &[u8], bytes: u64) {
    let header = Header {
        fin,
        ..Header::new(opcode, bytes, None)
    };
    let mut prefix = [0; Header::BYTES_MAX];
    let length = header.encode(&mut prefix);
    out.reserve(length + payload.len());
    out.extend_from_slice(&prefix[..length]);
    out.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use alloc::{vec, vec::Vec};

    use super::{OpenFrame, append};
    use crate::opcode::Opcode;

    fn both_ways(payload: &[u8]) -> Vec<u8> {
        let mut appended = b"before".to_vec();
        append(&mut appended, Opcode::Text, payload);
        let mut around = b"before".to_vec();
        let frame = OpenFrame::start(&mut around);
        around.extend_from_slice(payload);
        assert_eq!(frame.payload_bytes(&around), payload.len());
        frame.finish(&mut around, Opcode::Text);
        assert_eq!(appended, around);
        around.split_off(b"before".len())
    }

    #[test]
    fn headers_have_the_shortest_form() {
        assert_eq!(both_ways(b""), b"\x81\x00");
        assert_eq!(both_ways(b"Spam"), b"\x81\x04Spam");
        for (length, header) in [
            (125, &b"\x81\x7d"[..]),
            (126, b"\x81\x7e\x00\x7e"),
            (0xFFFF, b"\x81\x7e\xff\xff"),
            (0x1_0000, b"\x81\x7f\x00\x00\x00\x00\x00\x01\x00\x00"),
        ] {
            let payload = vec![b'x'; length];
            let expected = [header, &payload].concat();
            assert_eq!(both_ways(&payload), expected);
        }
    }
}
