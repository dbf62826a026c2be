//! Writes one frame at a time into the caller's memory.

use core::ops::Range;

use linerate_simd::mask;

use super::Header;
use crate::{opcode::Opcode, role::MaskKey};

/// A frame whose header is written and whose payload the caller fills.
///
/// ```
/// use linerate_proto::{Opcode, frame::FrameFactory};
///
/// let mut memory = [0; 32];
/// let mut frame = FrameFactory::start(&mut memory, Opcode::Text, 4, None).expect("it fits");
/// frame.payload_mut().copy_from_slice(b"Spam");
/// let bytes = frame.finish();
/// assert_eq!(&memory[..bytes], b"\x81\x04Spam");
/// ```
#[derive(Debug)]
pub struct FrameFactory<'a> {
    frame: &'a mut [u8],
    prefix_bytes: usize,
    mask: Option<MaskKey>,
}

impl<'a> FrameFactory<'a> {
    /// Writes the header of a frame to the start of `out`.
    ///
    /// The payload keeps the old content of `out` until the caller fills it. Returns `None` if the
    /// frame does not fit into `out`.
    #[inline]
    pub fn start(
        out: &'a mut [u8],
        opcode: Opcode,
        payload_bytes: usize,
        mask: Option<MaskKey>,
    ) -> Option<Self> {
        let header = Header::new(opcode, payload_bytes as u64, mask);
        let prefix_bytes = header.encoded_bytes();
        let frame = out.get_mut(..prefix_bytes.checked_add(payload_bytes)?)?;
        header.encode(frame);
        Some(Self {
            frame,
            prefix_bytes,
            mask,
        })
    }

    /// Returns the payload, for the caller to fill.
    #[inline]
    pub fn payload_mut(&mut self) -> &mut [u8] {
        &mut self.frame[self.prefix_bytes..]
    }

    /// Masks the payload if the frame is masked; returns the length of the frame in bytes.
    #[inline]
    pub fn finish(self) -> usize {
        if let Some(MaskKey(key)) = self.mask {
            mask::apply(key, 0, &mut self.frame[self.prefix_bytes..]);
        }
        self.frame.len()
    }
}

/// Returns how many bytes must be free before a payload for [`encode_in_place`].
#[inline]
pub const fn head_room(payload_bytes: usize, masked: bool) -> usize {
    let mask = if masked { Some(MaskKey([0; 4])) } else { None };
    Header::new(Opcode::Binary, payload_bytes as u64, mask).encoded_bytes()
}

/// Writes the header right before the payload at `payload` in `buffer`, masks the payload if there
/// is a key, and returns the range of the whole frame.
///
/// # Panics
/// Panics if `payload` is out of bounds, or fewer than [`head_room`] bytes precede it.
#[inline]
pub fn encode_in_place(
    buffer: &mut [u8],
    payload: Range<usize>,
    opcode: Opcode,
    mask: Option<MaskKey>,
) -> Range<usize> {
    let header = Header::new(opcode, payload.len() as u64, mask);
    let start = payload.start - header.encoded_bytes();
    header.encode(&mut buffer[start..payload.start]);
    if let Some(MaskKey(key)) = mask {
        mask::apply(key, 0, &mut buffer[payload.clone()]);
    }
    start..payload.end
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: MaskKey = MaskKey([0x37, 0xFA, 0x21, 0x3D]);

    /// RFC 6455 §5.7: "A single-frame masked text message".
    const MASKED_HELLO: &[u8] = b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58";

    #[test]
    fn factory_writes_the_example_of_the_rfc() {
        let mut memory = [0; 64];
        let mut frame = FrameFactory::start(&mut memory, Opcode::Text, 5, Some(KEY)).unwrap();
        frame.payload_mut().copy_from_slice(b"Hello");
        assert_eq!(frame.finish(), MASKED_HELLO.len());
        assert_eq!(&memory[..MASKED_HELLO.len()], MASKED_HELLO);
    }

    #[test]
    fn factory_refuses_messages_that_do_not_fit() {
        let mut memory = [0; 10];
        assert!(FrameFactory::start(&mut memory, Opcode::Text, 8, None).is_some());
        assert!(FrameFactory::start(&mut memory, Opcode::Text, 9, None).is_none());
        assert!(FrameFactory::start(&mut memory, Opcode::Text, usize::MAX, None).is_none());
    }

    #[test]
    fn encode_in_place_writes_around_the_payload() {
        for (payload_bytes, masked) in [(5, true), (5, false), (126, true), (70_000, false)] {
            let room = head_room(payload_bytes, masked);
            let mut buffer = std::vec![7; 3 + room + payload_bytes];
            let mask = masked.then_some(KEY);
            let at = 3 + room..3 + room + payload_bytes;
            assert_eq!(
                encode_in_place(&mut buffer, at.clone(), Opcode::Binary, mask),
                3..at.end
            );
            let (header, bytes) = Header::decode(&buffer[3..]).unwrap().unwrap();
            assert_eq!(
                header,
                Header::new(Opcode::Binary, payload_bytes as u64, mask)
            );
            assert_eq!(bytes, room);
            if let Some(MaskKey(key)) = mask {
                mask::apply(key, 0, &mut buffer[at.clone()]);
            }
            assert!(buffer[at].iter().all(|byte| *byte == 7));
        }
    }
}
