//! Files of Zstandard frames (RFC 8878).

use std::fmt;

use zstd::stream::raw::{DParameter, InBuffer, Operation, OutBuffer};

use super::{DecodeError, PIECE_BYTES, Progress};

/// The memory of a decompressor in addition to its window and the pieces: tables and one block.
pub(super) const STATE_BYTES: usize = 512 << 10;

/// The cost of a call to the library, which reads at most one frame, as the number of bytes that
/// could be decoded in the same time.
const CALL_WORK: usize = 1 << 10;

pub(super) struct Zstd {
    inner: zstd::stream::raw::Decoder<'static>,
    is_between_frames: bool,
    read_bytes: u64,
    window_bytes_max: usize,
    piece: Box<[u8]>,
}

impl fmt::Debug for Zstd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Zstd")
            .field("is_between_frames", &self.is_between_frames)
            .field("read_bytes", &self.read_bytes)
            .finish_non_exhaustive()
    }
}

impl Zstd {
    pub(super) fn new(window_bytes_max: usize) -> Result<Self, DecodeError> {
        /// The smallest window limit that the library accepts, as a power of two.
        const LOG_MIN: u32 = 10;
        let window_log_max = window_bytes_max.max(1).ilog2().max(LOG_MIN);
        let window = |_| DecodeError::Window {
            bytes_max: window_bytes_max,
        };
        let mut inner = zstd::stream::raw::Decoder::new().map_err(window)?;
        inner
            .set_parameter(DParameter::WindowLogMax(window_log_max))
            .map_err(window)?;
        Ok(Self {
            inner,
            is_between_frames: true,
            read_bytes: 0,
            window_bytes_max,
            piece: vec![0; PIECE_BYTES].into(),
        })
    }

    /// Decodes `input` until about `work_max` bytes of work are done.
    pub(super) fn decode(
        &mut self,
        input: &[u8],
        work_max: usize,
        each: &mut impl FnMut(&[u8]) -> Result<(), DecodeError>,
    ) -> Result<Progress, DecodeError> {
        let mut input = InBuffer::around(input);
        let mut work = 0;
        let mut is_done = false;
        while !is_done && work < work_max {
            let read = input.pos;
            let mut output = OutBuffer::around(&mut *self.piece);
            let result = self.inner.run(&mut input, &mut output);
            let written = output.pos();
            self.read_bytes += (input.pos - read) as u64;
            work += written + CALL_WORK;
            if written > 0 {
                each(&self.piece[..written])?;
            }
            match result {
                Ok(hint) => {
                    // After the end of a frame, a call that does nothing returns a hint for the
                    // next frame.
                    let does_nothing = input.pos == read && written == 0;
                    self.is_between_frames = hint == 0 || does_nothing && self.is_between_frames;
                }
                Err(error) => return Err(self.error(&error)),
            }
            is_done = input.pos == input.src.len() && written < self.piece.len();
        }
        Ok(Progress {
            read: input.pos,
            work,
            is_done,
        })
    }

    /// Returns whether the file may end here.
    pub(super) fn is_between_frames(&self) -> bool {
        self.is_between_frames
    }

    fn error(&self, error: &std::io::Error) -> DecodeError {
        // The library reports its error codes only as text.
        if error.to_string().contains("too much memory") {
            return DecodeError::Window {
                bytes_max: self.window_bytes_max,
            };
        }
        DecodeError::Corrupt {
            at: self.read_bytes,
        }
    }
}
