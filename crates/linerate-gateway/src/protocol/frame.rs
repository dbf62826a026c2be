//! WebSocket frames of a server, appended around payloads (RFC 6455 §5.2).

use linerate_proto::frame::Header;
pub(super) use linerate_proto::frame::Opcode;

/// Kept free for a header. Longer and shorter ones move the payload, a few bytes or one that is rare.
const HEADER_BYTES: usize = 4;

/// Where a frame starts in the bytes that it is appended to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start(usize);

/// Starts a frame whose payload is appended next.
pub(super) fn open(out: &mut Vec<u8>) -> Start {
    let start = Start(out.len());
    out.extend_from_slice(&[0; HEADER_BYTES]);
    start
}

/// Writes the header in front of what was appended since [`open`].
pub(super) fn close(out: &mut Vec<u8>, start: Start, opcode: Opcode) {
    let Start(at) = start;
    let header = header(opcode, start.payload_bytes(out));
    let bytes = header.encoded_bytes();
    let payload_at = at + HEADER_BYTES;
    if bytes < HEADER_BYTES {
        out.drain(at..at + HEADER_BYTES - bytes);
    } else if bytes > HEADER_BYTES {
        let missing = std::iter::repeat_n(0, bytes - HEADER_BYTES);
        out.splice(payload_at..payload_at, missing);
    }
    header.encode(&mut out[at..]);
}

/// Appends a whole frame.
pub(super) fn append(out: &mut Vec<u8>, opcode: Opcode, payload: &[u8]) {
    let mut bytes = [0; Header::BYTES_MAX];
    let length = header(opcode, payload.len()).encode(&mut bytes);
    out.extend_from_slice(&bytes[..length]);
    out.extend_from_slice(payload);
}

impl Start {
    /// Returns how many bytes were appended since.
    pub(super) fn payload_bytes(self, out: &[u8]) -> usize {
        out.len() - self.0 - HEADER_BYTES
    }
}

fn header(opcode: Opcode, payload_bytes: usize) -> Header {
    Header::new(opcode, payload_bytes as u64, None)
}

#[cfg(test)]
mod tests {
    use super::{Opcode, append, close, open};

    fn both_ways(payload: &[u8]) -> Vec<u8> {
        let mut appended = b"before".to_vec();
        append(&mut appended, Opcode::Text, payload);
        let mut around = b"before".to_vec();
        let start = open(&mut around);
        around.extend_from_slice(payload);
        close(&mut around, start, Opcode::Text);
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
