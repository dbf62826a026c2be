//! Clients that view a log which they have not uploaded themselves.

use std::time::Duration;

use super::{
    ANSWER_WORK_BYTES, Followed, Limits, Outcome, SNAPSHOT_WORK_BYTES, Session, SessionError,
    SessionId,
    message::{ClientMessage, ServerMessage},
    question::Questions,
};

/// The log that a [`Viewer`] sees.
#[derive(Clone, Copy, Debug)]
pub enum Viewed<'a> {
    /// A file that the server reads.
    Followed(&'a Followed),
    /// An upload that has ended.
    Gone,
    /// The upload of another client.
    Upload(&'a Session),
}

/// A client that views a log: handles its questions and returns the answers. It can change nothing.
///
/// Snapshots are the same for all viewers, so the caller sends them: those of
/// [`Followed::snapshot`], or those of the [`Session`]. Only the first snapshot of an upload comes
/// from the viewer, because the upload may have sent its last one already.
#[derive(Debug)]
pub struct Viewer {
    limits: Limits,
    /// The identifier for the `ready` message, until that was polled.
    ready: Option<SessionId>,
    /// True until the first snapshot of an upload was polled.
    needs_snapshot: bool,
    questions: Questions,
    end: Option<(Outcome, Option<String>)>,
}

impl Viewer {
    /// Creates a viewer. Its identifier, which `ready` contains, cannot be resumed: a client that
    /// reconnects follows or views again.
    pub fn new(limits: Limits, id: SessionId) -> Self {
        Self {
            limits,
            ready: Some(id),
            needs_snapshot: true,
            questions: Questions::default(),
            end: None,
        }
    }

    /// Handles a text message.
    pub fn handle_text(&mut self, text: &str) {
        if self.end.is_some() {
            return;
        }
        if let Err(error) = self.try_handle_text(text) {
            self.fail(error);
        }
    }

    /// Ends the session with an error, because a viewer has no file to send.
    pub fn handle_binary(&mut self) {
        self.refuse(SessionError::NotStarted);
    }

    /// Ends the session with an error.
    pub fn refuse(&mut self, error: SessionError) {
        if self.end.is_none() {
            self.fail(error);
        }
    }

    /// Returns the next reply, built from the current figures, or `None` if none is due at `now`.
    ///
    /// A question about a followed log is answered at once, because the log changes. One about an
    /// upload takes several calls, so that the upload can continue in between: call this again
    /// while the viewer [has questions](Self::has_questions).
    pub fn poll_reply(&mut self, viewed: Viewed<'_>, now: Duration) -> Option<String> {
        if let Some((_, last_reply)) = &mut self.end {
            return last_reply.take();
        }
        match viewed {
            Viewed::Followed(log) => self.poll_followed(log),
            Viewed::Gone => self.poll_gone(),
            Viewed::Upload(session) => self.poll_upload(session, now),
        }
    }

    /// Returns whether the next replies include a snapshot.
    pub fn needs_snapshot(&self) -> bool {
        self.needs_snapshot
    }

    /// Returns whether questions wait for an answer.
    pub fn has_questions(&self) -> bool {
        !self.questions.is_empty()
    }

    /// Returns how many bytes of heap it may take to build the replies that are due.
    pub fn reply_bytes_max(&self) -> usize {
        match (self.has_questions(), self.ready) {
            (true, _) => ANSWER_WORK_BYTES,
            (false, Some(_)) => SNAPSHOT_WORK_BYTES,
            (false, None) => 0,
        }
    }

    /// Returns how many bytes of heap the viewer holds between two replies.
    pub fn memory_bytes(&self) -> usize {
        self.questions.memory_bytes()
    }

    /// Returns how the session ended, or `None` while it lasts.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.end.as_ref().map(|(outcome, _)| outcome)
    }

    fn poll_followed(&mut self, log: &Followed) -> Option<String> {
        if let Some(id) = self.ready.take() {
            let ready = ServerMessage::Ready {
                id: id.to_string(),
                window_bytes: 0,
                bytes: log.bytes(),
                view: None,
                files: None,
            };
            return Some(ready.to_json());
        }
        while !self.questions.is_empty() {
            let answer = self.questions.poll_answer(log.log(), Duration::ZERO);
            if answer.is_some() {
                return answer;
            }
        }
        None
    }

    fn poll_gone(&mut self) -> Option<String> {
        self.fail(SessionError::UnknownSession);
        self.end.as_mut()?.1.take()
    }

    fn poll_upload(&mut self, session: &Session, now: Duration) -> Option<String> {
        let Some(upload) = session.upload() else {
            return self.poll_gone();
        };
        if let Some(id) = self.ready.take() {
            let ready = ServerMessage::Ready {
                id: id.to_string(),
                window_bytes: 0,
                bytes: upload.bytes(),
                view: session.view().map(|name| name.to_string()),
                files: Some(upload.files().to_vec()),
            };
            return Some(ready.to_json());
        }
        if std::mem::take(&mut self.needs_snapshot) {
            let snapshot = ServerMessage::Snapshot {
                is_final: upload.is_complete(),
                summary: Box::new(upload.summary()),
            };
            return Some(snapshot.to_json());
        }
        self.questions.poll_answer(upload.log(), now)
    }

    fn try_handle_text(&mut self, text: &str) -> Result<(), SessionError> {
        match ClientMessage::parse(text, &self.limits)? {
            ClientMessage::Ask(question) => self.questions.push(question),
            ClientMessage::Cancel => {
                self.end = Some((Outcome::Cancelled, None));
                Ok(())
            }
            ClientMessage::Drop { seq } => {
                self.questions.drop(seq);
                Ok(())
            }
            ClientMessage::Finish | ClientMessage::Stop => Err(SessionError::NotStarted),
            ClientMessage::Follow { .. }
            | ClientMessage::Resume { .. }
            | ClientMessage::Start(_)
            | ClientMessage::View { .. } => Err(SessionError::SecondStart),
        }
    }

    fn fail(&mut self, error: SessionError) {
        let reply = error.to_json();
        self.questions = Questions::default();
        self.end = Some((Outcome::Failed(error), Some(reply)));
    }
}
