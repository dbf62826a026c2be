//! Exports output that waits, and continues it.

use linerate_proto::{
    Header,
    portable::{ImportError, Reader, Writer},
};

use super::{Backlog, Queues, Segment};
use crate::memory::pool::Pool;

impl Backlog {
    pub(crate) fn export(&self, state: &mut Writer) {
        let segments = || self.0.iter().flat_map(|queue| &queue.segments);
        state.u32(segments().count() as u32);
        for segment in segments() {
            let droppable = segment.droppable_bytes();
            state.flag(droppable.is_some());
            if let Some(bytes) = droppable {
                state.u32(bytes as u32);
            }
            state.bytes(segment.as_bytes());
        }
    }

    /// Adds the output of an exported connection. The time that the peer is given begins again.
    pub(crate) fn import(
        &mut self,
        state: &mut Reader<'_>,
        pool: &mut Pool,
        queues: &mut Queues,
    ) -> Result<(), ImportError> {
        for _ in 0..state.u32("backlog segments")? {
            let is_droppable = state.flag("droppable frames")?;
            let droppable = is_droppable
                .then(|| state.u32("droppable frames"))
                .transpose()?;
            let bytes = state.bytes("backlog", u32::MAX as usize)?;
            let segment = match droppable {
                None => Some(Segment::copy(bytes, pool)),
                Some(droppable) => bytes
                    .len()
                    .checked_sub(droppable as usize)
                    .filter(|&start| are_frames(&bytes[start..]))
                    .map(|start| Segment::copy_droppable(bytes, start, pool)),
            };
            let segment = segment.filter(|segment| segment.len() > 0);
            let value = bytes.len() as u64;
            let field = "backlog";
            let segment = segment.ok_or(ImportError::Invalid { field, value })?;
            self.queue(queues).push(segment);
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
