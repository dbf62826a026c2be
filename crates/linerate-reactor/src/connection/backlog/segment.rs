//! A segment of a backlog.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use linerate_proto::Header;

use crate::{memory::pool::Pool, topics::burst::Burst};

/// A smaller part of a burst is copied, because that costs less than one more slice for the kernel.
pub(super) const SHARED_BYTES_MIN: usize = 4 << 10;

/// A part of a burst is also copied if it is smaller than the burst's memory divided by this
/// factor, and so is the remainder of a segment once it becomes that small. Pending output
/// therefore keeps at most this many times its own size from being reused.
const MEMORY_FACTOR_MAX: usize = 4;

/// Maximum size in bytes to which segments with copied bytes grow.
const SEGMENT_BYTES_MAX: usize = 64 << 10;

/// Waiting bytes, in memory of their own or in that of a burst.
#[derive(Debug)]
pub(super) struct Segment {
    memory: Memory,
    /// The part of the memory that waits, at least one byte.
    range: Range<usize>,
    /// The start of the first frame of which nothing has been written, or the end of the range if
    /// there is none. `None` if the bytes are not known to be frames.
    next_frame: Option<usize>,
    /// True if frames may be dropped to keep the backlog below its limit.
    droppable: bool,
    /// True if the bytes count as one frame, whatever they contain.
    is_unit: bool,
}

#[derive(Debug)]
enum Memory {
    Burst(Arc<Burst>),
    Shared(Bytes),
    Owned(Vec<u8>),
}

impl Memory {
    fn capacity(&self) -> usize {
        match self {
            Self::Burst(burst) => burst.capacity(),
            Self::Shared(bytes) => bytes.len(),
            Self::Owned(memory) => memory.capacity(),
        }
    }

    fn slice(&self, range: Range<usize>) -> &[u8] {
        match self {
            Self::Burst(burst) => burst.slice(range),
            Self::Shared(bytes) => &bytes[range],
            Self::Owned(memory) => &memory[range],
        }
    }
}

impl Segment {
    /// Takes over `bytes` without the first `done` bytes.
    pub(super) const fn owned(bytes: Vec<u8>, done: usize) -> Self {
        Self {
            range: done..bytes.len(),
            memory: Memory::Owned(bytes),
            next_frame: None,
            droppable: false,
            is_unit: false,
        }
    }

    pub(super) fn copy(bytes: &[u8], pool: &mut Pool) -> Self {
        let mut memory = pool.take(bytes.len());
        memory.extend_from_slice(bytes);
        Self::owned(memory, 0)
    }

    /// Copies bytes that are whole frames from `frames` on. If they are `droppable`, they may be
    /// dropped to keep the backlog below its limit.
    #[cfg(unix)]
    pub(super) fn copy_frames(
        bytes: &[u8],
        frames: usize,
        droppable: bool,
        pool: &mut Pool,
    ) -> Self {
        let mut segment = Self::copy(bytes, pool);
        segment.next_frame = Some(frames);
        segment.droppable = droppable;
        segment
    }

    /// Returns a segment with the frames of a burst without the first `done` bytes, which must not
    /// be all of them.
    pub(super) fn of_burst(
        burst: &Arc<Burst>,
        frames: Range<usize>,
        done: usize,
        droppable: bool,
        pool: &mut Pool,
    ) -> Self {
        let segment = Self {
            memory: Memory::Burst(burst.clone()),
            range: frames.start + done..frames.end,
            next_frame: droppable.then_some(frames.start),
            droppable,
            is_unit: false,
        };
        segment.in_least_memory(pool)
    }

    /// Returns a segment with shared frames without the first `done` bytes, which must not be all
    /// of them. If they are a unit, they count as one frame.
    pub(super) fn of_bytes(bytes: &Bytes, done: usize, is_unit: bool, pool: &mut Pool) -> Self {
        let segment = Self {
            memory: Memory::Shared(bytes.clone()),
            range: done..bytes.len(),
            next_frame: Some(0),
            droppable: false,
            is_unit,
        };
        segment.in_least_memory(pool)
    }

    /// Adds a copy of `bytes` if the segment owns its memory, has room, and is droppable exactly if
    /// `bytes` are; returns whether it did.
    pub(super) fn extend(&mut self, bytes: &[u8], droppable: bool, pool: &mut Pool) -> bool {
        match &mut self.memory {
            Memory::Owned(memory)
                if memory.len() + bytes.len() <= SEGMENT_BYTES_MAX
                    && self.droppable == droppable =>
            {
                pool.reserve(memory, bytes.len());
                memory.extend_from_slice(bytes);
                self.range.end = memory.len();
                true
            }
            _ => false,
        }
    }

    /// Removes the first `bytes` bytes, which must not be all of them.
    pub(super) fn skip(&mut self, bytes: usize, pool: &mut Pool) {
        self.range.start += bytes;
        self.find_next_frame();
        self.save_memory(pool);
    }

    /// Removes frames from the front until the segment is shorter by `bytes` or no more frames can
    /// be removed. The last frame stays if `last_stays`.
    pub(super) fn drop_frames(
        &mut self,
        bytes: usize,
        last_stays: bool,
        pool: &mut Pool,
    ) -> DroppedFrames {
        let Some(first) = self.next_frame else {
            return DroppedFrames::default();
        };
        let (mut at, mut frames) = (first, 0);
        while at < self.range.end && at - first < bytes {
            let end = self.frame_end(at);
            if last_stays && end == self.range.end {
                break;
            }
            (at, frames) = (end, frames + 1);
        }
        let mut dropped = DroppedFrames {
            frames,
            bytes: at - first,
            begun: None,
        };
        if frames > 0 {
            if first > self.range.start {
                let begun = self.memory.slice(self.range.start..first);
                dropped.begun = Some(Self::copy(begun, pool));
            }
            self.range.start = at;
            self.next_frame = Some(at);
            self.save_memory(pool);
        }
        dropped
    }

    pub(super) fn free(self, pool: &mut Pool) {
        if let Memory::Owned(memory) = self.memory {
            pool.give(memory);
        }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.memory.slice(self.range.clone())
    }

    pub(super) const fn len(&self) -> usize {
        self.range.end - self.range.start
    }

    /// Returns the memory that belongs to this segment only, in bytes.
    pub(super) const fn owned_bytes(&self) -> usize {
        match &self.memory {
            Memory::Burst(_) | Memory::Shared(_) => 0,
            Memory::Owned(memory) => memory.capacity(),
        }
    }

    /// Returns whether frames of which nothing has been written may be dropped to keep the backlog
    /// below its limit.
    pub(super) const fn is_droppable(&self) -> bool {
        self.droppable
    }

    /// Keeps shared frames by reference if that pays and does not keep a large block of memory for
    /// a small part of it, and copies them otherwise.
    fn in_least_memory(mut self, pool: &mut Pool) -> Self {
        self.find_next_frame();
        if self.len() < SHARED_BYTES_MIN || is_wasteful(self.len(), self.memory.capacity()) {
            self.move_out(pool);
        }
        self
    }

    /// Returns the number of bytes at the end that are frames of which nothing has been written;
    /// `None` if the bytes are not known to be frames.
    #[cfg(unix)]
    pub(super) fn frame_bytes(&self) -> Option<usize> {
        self.next_frame.map(|next| self.range.end - next)
    }

    /// Skips the frames that have been written in part or completely.
    fn find_next_frame(&mut self) {
        while let Some(next) = self.next_frame
            && next < self.range.start
        {
            self.next_frame = Some(self.frame_end(next));
        }
    }

    /// Returns the end of the frame that begins at `start`.
    fn frame_end(&self, start: usize) -> usize {
        if self.is_unit {
            return self.range.end;
        }
        match Header::decode(self.memory.slice(start..self.range.end)) {
            Ok(Some((header, prefix_bytes))) => {
                start + prefix_bytes + header.payload_bytes as usize
            }
            // This cannot happen: we have encoded these frames.
            _ => self.range.end,
        }
    }

    /// Moves the remaining bytes if they keep too much memory in use.
    fn save_memory(&mut self, pool: &mut Pool) {
        let capacity = self.memory.capacity();
        if self.len() > 0 && capacity > SHARED_BYTES_MIN && is_wasteful(self.len(), capacity) {
            self.move_out(pool);
        }
    }

    /// Moves the remaining bytes into memory of their own size.
    fn move_out(&mut self, pool: &mut Pool) {
        let mut copy = Self::copy(self.as_bytes(), pool);
        // Other bytes may follow a unit in its own memory, where they would count as a part of it.
        let next_frame = self.next_frame.filter(|_| !self.is_unit);
        copy.next_frame = next_frame.map(|next| next - self.range.start);
        copy.droppable = self.droppable;
        std::mem::replace(self, copy).free(pool);
    }
}

/// What was dropped from a segment.
#[derive(Debug, Default)]
pub(super) struct DroppedFrames {
    pub(super) frames: u64,
    pub(super) bytes: usize,
    /// The remainder of the frame before the dropped ones, which has been written in part; it is
    /// kept.
    pub(super) begun: Option<Segment>,
}

/// Returns whether `bytes` are too few to keep `capacity` in use.
const fn is_wasteful(bytes: usize, capacity: usize) -> bool {
    bytes.saturating_mul(MEMORY_FACTOR_MAX) < capacity
}
