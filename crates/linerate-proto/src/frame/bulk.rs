//! Writes many frames into one buffer.

use linerate_simd::mask;

use super::{FrameFactory, Header};
use crate::{opcode::Opcode, role::MaskKey};

/// Writes frames one after the other into the caller's buffer.
///
/// ```
/// use linerate_proto::{Opcode, frame::BulkEncoder};
///
/// let mut memory = [0; 64];
/// let mut frames = BulkEncoder::new(&mut memory);
/// while frames.push(Opcode::Text, b"tick", None) {}
/// assert_eq!(frames.written().len(), 60); // ten frames of six bytes
/// ```
#[derive(Debug)]
pub struct BulkEncoder<'a> {
    buffer: &'a mut [u8],
    len: usize,
}

impl<'a> BulkEncoder<'a> {
    /// Creates an encoder that writes from the start of `buffer`.
    pub const fn new(buffer: &'a mut [u8]) -> Self {
        Self { buffer, len: 0 }
    }

    /// Appends a frame with a copy of `payload`, which is masked while copying if there is a key.
    ///
    /// Returns whether the frame fits; if not, nothing is written.
    #[inline]
    pub fn push(&mut self, opcode: Opcode, payload: &[u8], mask: Option<MaskKey>) -> bool {
        let header = Header::new(opcode, payload.len() as u64, mask);
        let prefix_bytes = header.encoded_bytes();
        let out = &mut self.buffer[self.len..];
        let Some((prefix, rest)) = out.split_at_mut_checked(prefix_bytes) else {
            return false;
        };
        let Some(body) = rest.get_mut(..payload.len()) else {
            return false;
        };
        header.encode(prefix);
        match mask {
            Some(MaskKey(key)) => mask::copy(key, 0, payload, body),
            None => body.copy_from_slice(payload),
        }
        self.len += prefix_bytes + payload.len();
        true
    }

    /// Appends a frame whose payload is written by `fill`, then masked if there is a key.
    ///
    /// Returns whether the frame fits; if not, `fill` is not called.
    #[inline]
    pub fn push_with(
        &mut self,
        opcode: Opcode,
        payload_bytes: usize,
        mask: Option<MaskKey>,
        fill: impl FnOnce(&mut [u8]),
    ) -> bool {
        let out = &mut self.buffer[self.len..];
        let Some(mut frame) = FrameFactory::start(out, opcode, payload_bytes, mask) else {
            return false;
        };
        fill(frame.payload_mut());
        self.len += frame.finish();
        true
    }

    /// Returns the frames written so far.
    pub fn written(&self) -> &[u8] {
        &self.buffer[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_push_write_the_same_bytes() {
        for payload_bytes in [0, 1, 5, 13, 125, 126, 200] {
            for mask in [None, Some(MaskKey([9, 8, 7, 6]))] {
                let payload: std::vec::Vec<u8> = (0..payload_bytes).map(|i| i as u8).collect();
                let (mut a, mut b) = ([0; 512], [0; 512]);
                let mut copied = BulkEncoder::new(&mut a);
                let mut filled = BulkEncoder::new(&mut b);
                for _ in 0..2 {
                    assert!(copied.push(Opcode::Binary, &payload, mask));
                    assert!(
                        filled.push_with(Opcode::Binary, payload.len(), mask, |out| {
                            out.copy_from_slice(&payload)
                        })
                    );
                }
                assert_eq!(copied.written(), filled.written());
            }
        }
    }

    #[test]
    fn a_frame_that_does_not_fit_leaves_no_trace() {
        let mut memory = [0; 8];
        let mut frames = BulkEncoder::new(&mut memory);
        assert!(frames.push(Opcode::Text, b"ab", None));
        assert!(!frames.push(Opcode::Text, b"abc", None));
        assert!(!frames.push_with(Opcode::Text, 3, None, |_| unreachable!()));
        assert!(frames.push(Opcode::Text, b"cd", None));
        assert_eq!(frames.written(), b"\x81\x02ab\x81\x02cd");
    }
}
