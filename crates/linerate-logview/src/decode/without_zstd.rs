//! Refuses Zstandard: the library is written in C, and WebAssembly reads only packed columns.

use super::{DecodeError, Progress};

pub(super) const STATE_BYTES: usize = 0;

/// A decompressor that cannot be created.
#[derive(Debug)]
pub(super) enum Zstd {}

impl Zstd {
    pub(super) fn new(_: usize) -> Result<Self, DecodeError> {
        Err(DecodeError::Unsupported { by: "zstd" })
    }

    pub(super) fn decode(
        &mut self,
        _: &[u8],
        _: usize,
        _: &mut impl FnMut(&[u8]) -> Result<(), DecodeError>,
    ) -> Result<Progress, DecodeError> {
        match *self {}
    }

    pub(super) fn is_between_frames(&self) -> bool {
        match *self {}
    }
}
