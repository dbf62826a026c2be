//! A log that the server reads itself, and the clients that view its figures.

use std::time::Duration;

use super::{
    ANSWER_WORK_BYTES, Limits, Outcome, SessionError, SessionId,
    message::{ClientMessage, ServerMessage},
    question::{Question, Questions},
};
use crate::{
    aggregate::Aggregator,
    decode::DecodeError,
    input::{Input, LogEvent},
};

/// A growing log: the figures of its files, one after the other as they are rotated.
///
/// ```
/// use linerate_logview::session::{Followed, Limits};
///
/// let mut log = Followed::new(Limits::default());
/// log.handle_input(b"192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] \"GET / HTTP/1.1\" 200 654\n")?;
/// assert!(log.snapshot().contains(r#""requests":1"#));
/// # Ok::<(), linerate_logview::decode::DecodeError>(())
/// ```
#[derive(Debug)]
pub struct Followed {
    limits: Limits,
    input: Input,
    log: Aggregator,
    bytes: u64,
    /// True while the remainder of the file is skipped because it cannot be decompressed.
    is_skipping: bool,
}

impl Followed {
    /// Creates a log of which nothing has been read.
    ///
    /// Because it never ends, the oldest requests make way for the newest when there is not enough
    /// space for all.
    pub fn new(mut limits: Limits) -> Self {
        limits.aggregate.columns_age = true;
        Self {
            input: Input::new(None, limits.decode.clone()),
            log: Aggregator::new(limits.aggregate.clone()),
            limits,
            bytes: 0,
            is_skipping: false,
        }
    }

    /// Parses the next bytes of the file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be decompressed. The remainder of the file is then
    /// skipped.
    pub fn handle_input(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        if self.is_skipping {
            return Ok(());
        }
        self.bytes += bytes.len() as u64;
        let log = &mut self.log;
        let decoded = self.input.handle_input(bytes, |event| count(log, event));
        self.is_skipping = decoded.is_err();
        decoded
    }

    /// Ends the current file. The next input begins a new one.
    ///
    /// # Errors
    /// Returns an error if the file cannot be decompressed or was truncated.
    pub fn handle_eof(&mut self) -> Result<(), DecodeError> {
        let next = Input::new(None, self.limits.decode.clone());
        let mut input = std::mem::replace(&mut self.input, next);
        let log = &mut self.log;
        let was_skipping = std::mem::take(&mut self.is_skipping);
        let decoded = input.handle_eof(|event| count(log, event));
        self.log.handle_eof();
        if was_skipping { Ok(()) } else { decoded }
    }

    /// Returns how many bytes of heap the log holds, within a few KiB.
    pub fn memory_bytes(&self) -> usize {
        self.log.memory_bytes() + self.input.memory_bytes_max()
    }

    /// Returns the snapshot message of the current figures, which is the same for all viewers.
    pub fn snapshot(&self) -> String {
        let summary = Box::new(self.log.summary());
        let snapshot = ServerMessage::Snapshot {
            is_final: false,
            summary,
        };
        snapshot.to_json()
    }
}

pub(super) fn count(log: &mut Aggregator, event: LogEvent<'_>) {
    match event {
        LogEvent::Bytes(bytes) => log.handle_input(bytes),
        LogEvent::Format(format) => log.set_format(format.clone()),
    }
}

/// A client that views a log that the server reads: handles its questions and returns the answers.
///
/// Snapshots are the same for all viewers, so the caller sends them, using [`Followed::snapshot`].
#[derive(Debug)]
pub struct Viewer {
    limits: Limits,
    /// The identifier for the `ready` message, until that was polled.
    ready: Option<SessionId>,
    questions: Questions,
    end: Option<(Outcome, Option<String>)>,
}

impl Viewer {
    /// Creates a viewer. Its identifier cannot be resumed: a client that reconnects follows again.
    pub fn new(limits: Limits, id: SessionId) -> Self {
        Self {
            limits,
            ready: Some(id),
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
        if self.end.is_none() {
            self.fail(SessionError::NotStarted);
        }
    }

    /// Returns the next reply, built from the current figures, or `None` if none is due.
    pub fn poll_reply(&mut self, log: &Followed) -> Option<String> {
        if let Some(id) = self.ready.take() {
            let ready = ServerMessage::Ready {
                id: id.to_string(),
                window_bytes: 0,
                bytes: log.bytes,
            };
            return Some(ready.to_json());
        }
        match &mut self.end {
            Some((_, last_reply)) => last_reply.take(),
            None => {
                // Because the log changes, a question is answered at once. What is kept is little.
                while !self.questions.is_empty() {
                    let answer = self.questions.poll_answer(&log.log, Duration::ZERO);
                    if answer.is_some() {
                        return answer;
                    }
                }
                None
            }
        }
    }

    /// Returns how many bytes of heap it may take to build the replies that are due.
    pub fn reply_bytes_max(&self) -> usize {
        match self.questions.is_empty() {
            true => 0,
            false => ANSWER_WORK_BYTES,
        }
    }

    /// Returns how the session ended, or `None` while it lasts.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.end.as_ref().map(|(outcome, _)| outcome)
    }

    fn try_handle_text(&mut self, text: &str) -> Result<(), SessionError> {
        match ClientMessage::parse(text, &self.limits)? {
            ClientMessage::Cancel => {
                self.end = Some((Outcome::Cancelled, None));
                Ok(())
            }
            ClientMessage::Drop { seq } => {
                self.questions.drop(seq);
                Ok(())
            }
            ClientMessage::Query { seq, query } => {
                self.questions.push(Question::Figures { seq, query })
            }
            ClientMessage::Rows(wanted) => self.questions.push(Question::Rows(wanted)),
            ClientMessage::Finish | ClientMessage::Stop => Err(SessionError::NotStarted),
            ClientMessage::Follow { .. }
            | ClientMessage::Resume { .. }
            | ClientMessage::Start(_) => Err(SessionError::SecondStart),
        }
    }

    fn fail(&mut self, error: SessionError) {
        let reply = error.to_json();
        self.end = Some((Outcome::Failed(error), Some(reply)));
    }
}
