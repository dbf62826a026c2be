//! Queueing replies, which are framed already.

use linerate_proto::{Endpoint, Engine, Role, SendError};

use super::{Outbox, Side};
use crate::{Replies, Result, frames::encoded};

impl Outbox {
    /// Moves all messages of `replies` to the queue of an open connection; returns their number.
    ///
    /// # Errors
    /// A message is being sent in fragments.
    pub(crate) fn push_replies(
        &mut self,
        engine: &mut Engine<Side>,
        replies: &mut Replies,
    ) -> Result<u64> {
        let messages = replies.len();
        let pushed = self.push_parts(engine, replies);
        replies.clear();
        pushed.map(|()| messages)
    }

    fn push_parts(&mut self, engine: &mut Engine<Side>, replies: &mut Replies) -> Result<()> {
        if engine.is_message_in_progress() {
            return Err(SendError::MessageInProgress.into());
        }
        let is_plain = is_plain(engine);
        let (frames, long) = replies.parts();
        if is_plain && long.is_empty() && self.is_empty() {
            self.forget_front();
            std::mem::swap(&mut self.front, frames);
            return Ok(());
        }
        let mut at = 0;
        for (end, message) in long.drain(..) {
            self.push_some(engine, &frames[at..end], is_plain)?;
            self.push(engine, message)?;
            at = end;
        }
        self.push_some(engine, &frames[at..], is_plain)
    }

    /// Queues frames, masked or compressed if the connection does that.
    fn push_some(
        &mut self,
        engine: &mut Engine<Side>,
        frames: &[u8],
        is_plain: bool,
    ) -> Result<()> {
        if is_plain {
            self.tail(frames.len()).extend_from_slice(frames);
            return Ok(());
        }
        for (kind, payload) in encoded::messages(frames) {
            self.push_copy(engine, kind, payload)?;
        }
        Ok(())
    }
}

/// Returns whether frames of a server can be sent as they are.
fn is_plain(engine: &Engine<Side>) -> bool {
    #[cfg(feature = "deflate")]
    if engine.compression().is_some() {
        return false;
    }
    engine.endpoint().role() == Role::Server
}
