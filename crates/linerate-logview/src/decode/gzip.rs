//! Files of gzip members (RFC 1952).

use flate2::{Decompress, FlushDecompress, Status};

use super::{DecodeError, PIECE_BYTES, Progress};

/// The memory of a decompressor in addition to the pieces: its 32 KiB window and its tables.
pub(super) const STATE_BYTES: usize = 64 << 10;

/// The window of every member, 2^15 bytes.
const WINDOW_BITS: u8 = 15;

/// The cost of a new member, for its tables and its window, as the number of bytes that could be
/// decoded in the same time.
const MEMBER_WORK: usize = 16 << 10;

#[derive(Debug)]
pub(super) struct Gzip {
    inflate: Decompress,
    /// True once the current member has begun.
    is_inside: bool,
    /// True once zeros follow the last member, as padding of tapes and block devices.
    is_padding: bool,
    read_bytes: u64,
    piece: Box<[u8]>,
}

impl Default for Gzip {
    fn default() -> Self {
        Self {
            inflate: Decompress::new_gzip(WINDOW_BITS),
            is_inside: false,
            is_padding: false,
            read_bytes: 0,
            piece: vec![0; PIECE_BYTES].into(),
        }
    }
}

impl Gzip {
    /// Decodes `input` until about `work_max` bytes of work are done.
    pub(super) fn decode(
        &mut self,
        input: &[u8],
        work_max: usize,
        each: &mut impl FnMut(&[u8]) -> Result<(), DecodeError>,
    ) -> Result<Progress, DecodeError> {
        let mut rest = input;
        let mut work = 0;
        let mut is_done = false;
        while !is_done && work < work_max {
            if !self.is_inside {
                rest = self.between_members(rest)?;
                if rest.is_empty() {
                    is_done = true;
                    break;
                }
            }
            let (read, written, status) = self.inflate(rest)?;
            rest = &rest[read..];
            work += written;
            if written > 0 {
                each(&self.piece[..written])?;
            }
            if status == Status::StreamEnd {
                self.inflate = Decompress::new_gzip(WINDOW_BITS);
                self.is_inside = false;
                work += MEMBER_WORK;
            } else {
                is_done = rest.is_empty() && written < self.piece.len();
            }
        }
        Ok(Progress {
            read: input.len() - rest.len(),
            work,
            is_done,
        })
    }

    /// Returns whether the file may end here.
    pub(super) fn is_between_members(&self) -> bool {
        !self.is_inside
    }

    /// Begins the next member, or skips zeros after the last one.
    fn between_members<'a>(&mut self, input: &'a [u8]) -> Result<&'a [u8], DecodeError> {
        if !self.is_padding {
            self.is_padding = self.read_bytes > 0 && input.first() == Some(&0);
            self.is_inside = !(self.is_padding || input.is_empty());
            if !self.is_padding {
                return Ok(input);
            }
        }
        let zeros = input.iter().take_while(|&&byte| byte == 0).count();
        self.read_bytes += zeros as u64;
        if zeros < input.len() {
            return Err(self.corrupt());
        }
        Ok(b"")
    }

    fn inflate(&mut self, input: &[u8]) -> Result<(usize, usize, Status), DecodeError> {
        let [read, written] = [self.inflate.total_in(), self.inflate.total_out()];
        let status = self
            .inflate
            .decompress(input, &mut self.piece, FlushDecompress::None);
        // Both differences are at most the length of a buffer.
        let read = (self.inflate.total_in() - read) as usize;
        let written = (self.inflate.total_out() - written) as usize;
        self.read_bytes += read as u64;
        let status = status.map_err(|_| self.corrupt())?;
        Ok((read, written, status))
    }

    fn corrupt(&self) -> DecodeError {
        DecodeError::Corrupt {
            at: self.read_bytes,
        }
    }
}
