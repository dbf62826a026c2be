//! Single-frame messages as bytes on the wire.

use linerate_proto::frame::BulkEncoder;
use linerate_proto::{Header, MaskKey, Opcode};

/// A message in one frame with the shortest header.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    frame: Vec<u8>,
    header_bytes: usize,
}

/// A message as it is expected to arrive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected<'e> {
    /// The bytes on the wire if the message arrives in one frame with the shortest header.
    pub(crate) frame: &'e [u8],
    /// Number of these bytes that are the header; 0 on a wire without frames.
    pub(crate) header_bytes: usize,
}

impl Message {
    /// Builds a frame, masked with `mask` if there is one.
    pub(crate) fn new(opcode: Opcode, payload: &[u8], mask: Option<MaskKey>) -> Self {
        let mut frame = vec![0; Header::BYTES_MAX + payload.len()];
        let mut frames = BulkEncoder::new(&mut frame);
        let fits = frames.push(opcode, payload, mask);
        debug_assert!(fits, "there is room for the longest header");
        let bytes = frames.written().len();
        frame.truncate(bytes);
        Self {
            header_bytes: bytes - payload.len(),
            frame,
        }
    }

    /// Returns the bytes of the frame.
    pub(crate) fn frame(&self) -> &[u8] {
        &self.frame
    }

    /// Returns the payload as it is on the wire, masked or not.
    pub(crate) fn payload_mut(&mut self) -> &mut [u8] {
        &mut self.frame[self.header_bytes..]
    }

    /// Returns the message as one that the server may send in any number of frames.
    pub(crate) fn expected(&self) -> Expected<'_> {
        Expected {
            frame: &self.frame,
            header_bytes: self.header_bytes,
        }
    }

    /// Returns the message as one that must arrive as exactly these bytes.
    pub(crate) fn expected_raw(&self) -> Expected<'_> {
        Expected {
            frame: &self.frame,
            header_bytes: 0,
        }
    }
}

impl<'e> Expected<'e> {
    /// Returns the payload.
    pub(crate) fn payload(&self) -> &'e [u8] {
        &self.frame[self.header_bytes..]
    }
}

/// Returns a masking key for message `number`. The keys of successive messages share no byte
/// pattern.
pub(crate) fn mask_key(number: u64) -> MaskKey {
    MaskKey((number as u32 + 1).wrapping_mul(0x9E37_79B1).to_be_bytes())
}
