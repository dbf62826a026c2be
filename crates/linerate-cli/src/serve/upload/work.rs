//! What a session does away from the worker, so that parsing holds up nobody else's connection.

use std::{iter, mem, sync::Arc};

use linerate::Message;
use linerate_logview::session::{Session, Wish};
use tokio::task::{JoinError, spawn_blocking};

use super::sessions::Sessions;

/// How many bytes of a log are parsed in one go: a millisecond or so, after which it is the turn of
/// the next session.
const BYTES_MAX: usize = 1 << 20;

/// Input of a session, in the order in which it came: pieces of the log, then a text.
#[derive(Debug, Default)]
pub(super) struct Work {
    pieces: Vec<Message>,
    bytes: usize,
    message_ends: bool,
    text: Option<String>,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) session: Box<Session>,
    pub(super) replies: Vec<String>,
    pub(super) wish: Option<Wish>,
}

impl Work {
    /// Adds a piece of the log. To be called only while there is [room](Self::has_room).
    pub(super) fn push_piece(&mut self, piece: Message) {
        self.bytes += piece.as_bytes().len();
        self.pieces.push(piece);
    }

    pub(super) fn end_message(&mut self) {
        self.message_ends = true;
    }

    /// Adds a text message, likewise.
    pub(super) fn push_text(&mut self, text: String) {
        self.text = Some(text);
    }

    pub(super) fn has_room(&self) -> bool {
        self.bytes < BYTES_MAX && self.text.is_none()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty() && !self.message_ends && self.text.is_none()
    }

    /// Takes what has gathered, and leaves nothing.
    pub(super) fn take(&mut self) -> Self {
        mem::take(self)
    }

    /// Does the work on a thread of its own when it is this session's turn.
    ///
    /// Sessions have their turns in the order in which they ask, so that none waits for more than
    /// one piece of each of the others.
    pub(super) async fn perform(
        self,
        session: Box<Session>,
        sessions: Arc<Sessions>,
    ) -> Result<Done, JoinError> {
        // The semaphore is never closed; without a permit the work would only be done sooner.
        let permit = sessions.parsers.clone().acquire_owned().await.ok();
        spawn_blocking(move || {
            let _permit = permit;
            self.perform_now(session, &sessions)
        })
        .await
    }

    fn perform_now(self, mut session: Box<Session>, sessions: &Sessions) -> Done {
        let now = sessions.now();
        let mut replies = Vec::new();
        for piece in &self.pieces {
            session.handle_chunk(piece.as_bytes(), false, now);
        }
        if self.message_ends {
            session.handle_chunk(b"", true, now);
        }
        replies.extend(iter::from_fn(|| session.poll_reply(now)));
        if let Some(text) = &self.text {
            session.handle_text(text, now);
        }
        session.handle_timeout(now);
        replies.extend(iter::from_fn(|| session.poll_reply(now)));
        Done {
            wish: session.take_wish(),
            session,
            replies,
        }
    }
}
