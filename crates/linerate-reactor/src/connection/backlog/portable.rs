//! Exports output that waits, and continues it.

use std::time::Duration;

use linerate_proto::{
    Header,
    portable::{ImportError, Reader, Writer},
};

use super::{Backlog, Queues, Segment};
use crate::{
    memory::pool::Pool,
    wheel::{millis_until, tick_in},
};

/// The numbers of the kinds of segments.
const BYTES: u8 = 0;
const FRAMES: u8 = 1;
const DROPPABLE_FRAMES: u8 = 2;

impl Backlog {
    /// Writes the output with the time that the peer has left to accept some of it.
    pub(crate) fn export(&self, state: &mut Writer, now: Duration) {
        let segments = || self.0.iter().flat_map(|queue| &queue.segments);
        state.u32(segments().count() as u32);
        if let Some(due) = self.stall_due() {
            state.u32(millis_until(due, now));
        }
        for segment in segments() {
            match segment.frame_bytes() {
                None => state.u8(BYTES),
                Some(bytes) => {
                    state.u8(match segment.is_droppable() {
                        true => DROPPABLE_FRAMES,
                        false => FRAMES,
                    });
                    state.u32(bytes as u32);
                }
            }
            state.bytes(segment.as_bytes());
        }
    }

    /// Adds the output of an exported connection. The peer has at most the time that a peer has in
    /// this process.
    pub(crate) fn import(
        &mut self,
        state: &mut Reader<'_>,
        pool: &mut Pool,
        queues: &mut Queues,
        now: Duration,
    ) -> Result<(), ImportError> {
        let segments = state.u32("backlog segments")?;
        if segments == 0 {
            return Ok(());
        }
        let due = tick_in(state.u32("time for the backlog")?, now);
        for _ in 0..segments {
            self.import_segment(state, pool, queues)?;
        }
        let queue = self.queue(queues);
        queue.stall_due = queue.stall_due.min(due);
        Ok(())
    }

    fn import_segment(
        &mut self,
        state: &mut Reader<'_>,
        pool: &mut Pool,
        queues: &mut Queues,
    ) -> Result<(), ImportError> {
        let invalid = |field, value: u64| ImportError::Invalid { field, value };
        let kind = state.u8("kind of output")?;
        let frame_bytes = match kind {
            BYTES => None,
            FRAMES | DROPPABLE_FRAMES => Some(state.u32("frames in the backlog")? as usize),
            other => return Err(invalid("kind of output", other.into())),
        };
        let field = "backlog";
        let bytes = state.bytes(field, u32::MAX as usize)?;
        let length = bytes.len() as u64;
        if bytes.is_empty() {
            return Err(invalid(field, length));
        }
        let queue = self.queue(queues);
        let last = queue.segments.back_mut();
        // Small segments are joined, because each has a cost. What follows frames must be frames.
        let Some(frame_bytes) = frame_bytes else {
            let last = last.filter(|last| last.frame_bytes().is_none());
            if last.is_some_and(|last| last.extend(bytes, false, pool)) {
                queue.bytes += bytes.len();
            } else {
                queue.push(Segment::copy(bytes, pool));
            }
            return Ok(());
        };
        let start = bytes.len().checked_sub(frame_bytes);
        let start = start.filter(|&start| are_frames(&bytes[start..]));
        let start = start.ok_or(invalid(field, length))?;
        let is_droppable = kind == DROPPABLE_FRAMES;
        let last = last.filter(|last| start == 0 && last.frame_bytes().is_some());
        if last.is_some_and(|last| last.extend(bytes, is_droppable, pool)) {
            queue.bytes += bytes.len();
        } else {
            queue.push(Segment::copy_frames(bytes, start, is_droppable, pool));
        }
        Ok(())
    }
}

/// Returns whether `bytes` are whole frames.
fn are_frames(mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        let Ok(Some((header, prefix_bytes))) = Header::decode(bytes) else {
            return false;
        };
        let rest = &bytes[prefix_bytes..];
        if header.payload_bytes > rest.len() as u64 {
            return false;
        }
        bytes = &rest[header.payload_bytes as usize..];
    }
    true
}
