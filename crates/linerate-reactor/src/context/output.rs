//! From messages to the cork, or to the socket without a copy.

use std::ops::Range;

use linerate_proto::{
    MaskKey, Role, SendError,
    engine::{Message, MessageKind},
    frame::BulkEncoder,
};
use linerate_simd::mask;

use crate::{
    connection::{Connection, endpoint},
    core::Core,
};

/// A payload of this many bytes or more is written without a copy. A shorter one is copied into the
/// cork buffer, because that costs less than one more slice for the kernel.
const COPIED_BYTES_MAX: usize = 4 << 10;

/// The cork buffer is flushed when it holds this many bytes.
const CORK_BYTES_MAX: usize = 128 << 10;

/// All output, including the parts of the input that are sent without a copy, is flushed at this
/// many bytes. The replies to one read are shorter, but much more input may have been kept while
/// the backlog of a slow peer was at its limit.
const OUTPUT_BYTES_MAX: usize = 256 << 10;

/// The output of a callback. What is sent back from the received data is not copied where that
/// pays.
pub(crate) struct Output<'a> {
    pub(super) core: &'a mut Core,
    pub(super) connection: &'a mut Connection,
    /// The bytes that the last read returned.
    pub(super) input: &'a [u8],
    /// The message, if it was joined from pieces.
    pub(super) joined: &'a [u8],
    /// The part of `joined` that is to be sent after the output.
    pub(super) tail: Range<usize>,
}

impl Output<'_> {
    /// Sends a message, compressed if that was negotiated and pays.
    #[inline]
    pub(super) fn send(&mut self, kind: MessageKind, payload: &[u8]) -> Result<(), SendError> {
        self.settle_tail();
        if payload.len() >= COPIED_BYTES_MAX && !self.connection.would_deflate(payload) {
            return self.send_large(kind, payload);
        }
        let Self {
            core, connection, ..
        } = self;
        connection
            .engine
            .send(&mut core.io.cork.bytes, kind, payload)?;
        self.limit_cork();
        Ok(())
    }

    /// Sends a message that is never compressed.
    pub(super) fn send_uncompressed(&mut self, message: Message<'_>) -> Result<(), SendError> {
        self.settle_tail();
        let (kind, payload) = (message.kind(), message.as_bytes());
        if payload.len() >= COPIED_BYTES_MAX {
            return self.send_large(kind, payload);
        }
        let Self {
            core, connection, ..
        } = self;
        let cork = &mut core.io.cork.bytes;
        connection.engine.send_uncompressed(cork, kind, payload)?;
        self.limit_cork();
        Ok(())
    }

    /// Sends a message whose payload is the concatenation of all `parts`.
    pub(super) fn send_parts(
        &mut self,
        kind: MessageKind,
        parts: &[&[u8]],
    ) -> Result<(), SendError> {
        self.settle_tail();
        if self.connection.compresses() {
            let bytes = parts.iter().map(|part| part.len()).sum();
            return self.send_compressed(kind, bytes, |whole| {
                parts.iter().for_each(|part| whole.extend_from_slice(part));
            });
        }
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        let key = self.begin(kind, bytes)?;
        let mut phase = 0;
        for part in parts {
            match key {
                Some(key) => self.add_masked(key, phase, part),
                None => self.add(part),
            }
            phase += part.len();
        }
        self.limit_cork();
        Ok(())
    }

    /// Sends a piece of a message as a fragment.
    pub(super) fn send_chunk(
        &mut self,
        kind: MessageKind,
        bytes: &[u8],
        ends: bool,
    ) -> Result<(), SendError> {
        self.settle_tail();
        let Self {
            core, connection, ..
        } = self;
        let cork = &mut core.io.cork.bytes;
        if connection.compresses() {
            connection.engine.send_fragment(cork, kind, bytes, ends)?;
            self.limit_cork();
            return Ok(());
        }
        let fragment_bytes = bytes.len() as u64;
        let key = connection
            .engine
            .send_fragment_prefix(cork, kind, fragment_bytes, ends)?;
        match (key, place(bytes, self.joined)) {
            (Some(key), _) => self.add_masked(key, 0, bytes),
            (None, Some(part)) if bytes.len() >= COPIED_BYTES_MAX => self.tail = part,
            (None, _) => self.add(bytes),
        }
        self.limit_cork();
        Ok(())
    }

    /// Sends a message of `bytes` bytes that `fill` writes into the output.
    pub(super) fn send_with(
        &mut self,
        kind: MessageKind,
        bytes: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), SendError> {
        self.settle_tail();
        if self.connection.compresses() {
            return self.send_compressed(kind, bytes, |whole| {
                whole.resize(bytes, 0);
                fill(whole);
            });
        }
        let key = self.begin(kind, bytes)?;
        let cork = &mut self.core.io.cork.bytes;
        let start = cork.len();
        cork.resize(start + bytes, 0);
        fill(&mut cork[start..]);
        if let Some(MaskKey(key)) = key {
            mask::apply(key, 0, &mut cork[start..]);
        }
        self.limit_cork();
        Ok(())
    }

    /// Sends the frames that `encode` pushes, at most `bytes_max` bytes.
    pub(super) fn send_frames(
        &mut self,
        bytes_max: usize,
        encode: impl FnOnce(&mut BulkEncoder<'_>),
    ) -> Result<(), SendError> {
        self.settle_tail();
        if !self.connection.is_open() {
            return Err(SendError::Closed);
        }
        let cork = &mut self.core.io.cork.bytes;
        let start = cork.len();
        cork.resize(start + bytes_max, 0);
        let mut encoder = BulkEncoder::new(&mut cork[start..]);
        encode(&mut encoder);
        let end = start + encoder.written().len();
        cork.truncate(end);
        if self.connection.role() == Role::Client {
            let frames = cork.split_off(start);
            endpoint::append_masked(&frames, cork);
        }
        self.limit_cork();
        Ok(())
    }

    /// Sends a Ping.
    pub(super) fn ping(&mut self, payload: &[u8]) -> Result<(), SendError> {
        self.settle_tail();
        let Self {
            core, connection, ..
        } = self;
        connection
            .engine
            .send_ping(&mut core.io.cork.bytes, payload)?;
        self.limit_cork();
        Ok(())
    }

    /// Sends a message of `bytes` bytes that `append` writes, compressed if that pays.
    fn send_compressed(
        &mut self,
        kind: MessageKind,
        bytes: usize,
        append: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), SendError> {
        let Self {
            core, connection, ..
        } = self;
        if !connection.is_open() {
            return Err(SendError::Closed);
        }
        let mut whole = core.io.memory.pool.take(bytes);
        append(&mut whole);
        let sent = connection
            .engine
            .send(&mut core.io.cork.bytes, kind, &whole);
        core.io.memory.pool.give(whole);
        self.limit_cork();
        sent
    }

    fn send_large(&mut self, kind: MessageKind, payload: &[u8]) -> Result<(), SendError> {
        let key = self.begin(kind, payload.len())?;
        match (key, place(payload, self.joined)) {
            (Some(key), _) => self.add_masked(key, 0, payload),
            // Later output settles it. If there is none, its memory can become the backlog.
            (None, Some(part)) => self.tail = part,
            (None, None) => self.add(payload),
        }
        Ok(())
    }

    /// Adds the header of a message; returns the key with which a client must mask the payload.
    fn begin(&mut self, kind: MessageKind, bytes: usize) -> Result<Option<MaskKey>, SendError> {
        let Self {
            core, connection, ..
        } = self;
        let cork = &mut core.io.cork.bytes;
        connection.engine.send_prefix(cork, kind, bytes as u64)
    }

    /// Adds a part of a payload, masked; `phase` bytes of the payload precede it.
    fn add_masked(&mut self, MaskKey(key): MaskKey, mut phase: usize, part: &[u8]) {
        for piece in part.chunks(CORK_BYTES_MAX) {
            mask::append(key, phase, piece, &mut self.core.io.cork.bytes);
            phase += piece.len();
            self.limit_cork();
        }
    }

    /// Adds a part of a payload that is not masked.
    fn add(&mut self, part: &[u8]) {
        let cork = &mut self.core.io.cork;
        if part.len() < COPIED_BYTES_MAX {
            cork.bytes.extend_from_slice(part);
        } else if let Some(part) = place(part, self.input) {
            cork.splice(part);
            if cork.len() >= OUTPUT_BYTES_MAX {
                self.flush();
            }
        } else {
            let Self {
                core,
                connection,
                input,
                ..
            } = self;
            core.io.flush(connection, input, part);
        }
    }

    /// Writes the part of the joined message that must precede any other output.
    #[inline]
    fn settle_tail(&mut self) {
        if !self.tail.is_empty() {
            let part = std::mem::take(&mut self.tail);
            let Self {
                core,
                connection,
                input,
                joined,
                ..
            } = self;
            core.io.flush(connection, input, &joined[part]);
        }
    }

    /// Flushes the output if the cork buffer is full.
    #[inline]
    fn limit_cork(&mut self) {
        if self.core.io.cork.bytes.len() >= CORK_BYTES_MAX {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let Self {
            core,
            connection,
            input,
            ..
        } = self;
        core.io.flush(connection, input, &[]);
    }
}

/// Returns the position of `part` in the memory of `whole`, if it is a part of it.
fn place(part: &[u8], whole: &[u8]) -> Option<Range<usize>> {
    let start = part.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
    let end = start.checked_add(part.len())?;
    (end <= whole.len()).then_some(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_found_only_where_it_lies() {
        let whole = [1, 2, 3, 4];
        assert_eq!(place(&whole[1..3], &whole), Some(1..3));
        assert_eq!(place(&whole, &whole), Some(0..4));
        assert_eq!(place(&whole, &whole[1..]), None);
        assert_eq!(place(&whole, &whole[..3]), None);
        assert_eq!(place(&[1, 2], &whole), None);
    }
}
