//! Collects pieces in frames of bounded length.

use linerate_proto::{Opcode, frame::OpenFrame};

/// The maximum number of payload bytes in a frame of several publications. Clients process a frame
/// in one go, and many limit its length; beyond 64 KiB, larger frames save nothing. A longer
/// publication gets its own frame.
pub(super) const FRAME_BYTES_MAX: usize = 0xFFFF;

/// A sequence of frames being written.
pub(super) struct Frames<'a> {
    out: &'a mut Vec<u8>,
    opcode: Opcode,
    separator: &'static [u8],
    frame: OpenFrame,
}

impl<'a> Frames<'a> {
    /// Starts the first frame.
    pub(super) fn open(out: &'a mut Vec<u8>, opcode: Opcode, separator: &'static [u8]) -> Self {
        let frame = OpenFrame::start(out);
        Self {
            out,
            opcode,
            separator,
            frame,
        }
    }

    /// Adds a piece written by `append`. If the piece does not fit into the current frame, it
    /// starts a new one.
    pub(super) fn piece<E>(
        &mut self,
        append: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let end = self.out.len();
        let is_first = self.frame.payload_bytes(self.out) == 0;
        if !is_first {
            self.out.extend_from_slice(self.separator);
        }
        let at = self.out.len();
        append(self.out)?;
        if !is_first && self.frame.payload_bytes(self.out) > FRAME_BYTES_MAX {
            let piece = self.out.split_off(at);
            self.out.truncate(end);
            self.frame.finish(self.out, self.opcode);
            self.frame = OpenFrame::start(self.out);
            self.out.extend_from_slice(&piece);
        }
        Ok(())
    }

    /// Ends the last frame.
    pub(super) fn close(self) {
        self.frame.finish(self.out, self.opcode);
    }
}
