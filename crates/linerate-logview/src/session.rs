//! The upload session behind the log page's WebSocket, without the WebSocket.
//!
//! # Protocol `linerate.logs.v1`
//!
//! That is the subprotocol's name ([`SUBPROTOCOL`]). Control is JSON in text messages, the log is
//! binary messages. The client speaks first:
//!
//! | client sends | meaning |
//! | --- | --- |
//! | `{"type":"start","name":"access.log","size":8570485}` | announces a file of so many bytes |
//! | binary messages of any size, empty ones included | the file's bytes in order |
//! | `{"type":"finish"}` | all bytes were sent |
//! | `{"type":"cancel"}` | no figures are wanted any more; at any time |
//!
//! | server sends | meaning |
//! | --- | --- |
//! | `{"type":"ready","window_bytes":16777216}` | go on: at most so many bytes beyond the last acknowledged one |
//! | `{"type":"ack","bytes":1048576}` | so many bytes were parsed since the start |
//! | `{"type":"snapshot","final":false,"summary":{…}}` | the figures so far, a [`Summary`] |
//! | `{"type":"snapshot","final":true,"summary":{…}}` | the figures of the whole file; the last message |
//! | `{"type":"error","code":"too_large","message":"…"}` | the session is over; the last message |
//!
//! Bytes are acknowledged at the end of each binary message and about every MiB within one. Of
//! several acknowledgements or snapshots that could not be sent in time, the latest is sent. The
//! first snapshot comes 50 ms after the first bytes, later ones at most every 200 ms and only if
//! bytes came. An empty file is no error: its figures are zeros. Members of a message that aren't
//! listed here are ignored, unknown types are not.
//!
//! Codes of errors are those of [`SessionError::code`]; the message is a sentence for people.
//!
//! [`Summary`]: crate::summary::Summary

mod error;
mod message;
mod verdict;

use std::time::Duration;

use crate::aggregate::{self, Aggregator};
pub use error::SessionError;
use message::{Reply, Request};

/// The name of the WebSocket subprotocol.
pub const SUBPROTOCOL: &str = "linerate.logs.v1";

/// How many bytes are parsed at most before an acknowledgement is due.
const ACK_BYTES: u64 = 1 << 20;
/// How many bytes are parsed before it is decided whether they are an access log.
const VERDICT_BYTES: u64 = 1 << 20;
/// How long after the first bytes the first snapshot is due.
const FIRST_SNAPSHOT_AFTER: Duration = Duration::from_millis(50);
/// How much time lies between snapshots.
const SNAPSHOT_INTERVAL: Duration = Duration::from_millis(200);

/// What one session may take.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The largest file, 64 GiB.
    pub upload_bytes_max: u64,
    /// How many bytes the client may send beyond the last acknowledgement, 16 MiB: four slices of
    /// 4 MiB, with which browsers are fastest.
    pub window_bytes: u64,
    /// The longest text message, 8 KiB.
    pub text_bytes_max: usize,
    /// The longest file name, 1,024 bytes: 255 UTF-16 units, what file systems take, fit.
    pub name_bytes_max: usize,
    /// How long the client may be silent, 60 s.
    pub silence_max: Duration,
    /// What the figures may take.
    pub aggregate: aggregate::Limits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            upload_bytes_max: 64 << 30,
            window_bytes: 16 << 20,
            text_bytes_max: 8 << 10,
            name_bytes_max: 1_024,
            silence_max: Duration::from_secs(60),
            aggregate: aggregate::Limits::default(),
        }
    }
}

/// How a session ended.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// The client called it off.
    Cancelled,
    /// The client or its file was refused.
    Failed(SessionError),
    /// The file was read to its end.
    Finished,
}

/// One upload: takes what the client sends and gives the replies.
///
/// The caller feeds messages, passes the time since any fixed moment as `now`, and after every
/// call sends what [`poll_reply`](Self::poll_reply) gives until it gives `None`. When
/// [`poll_timeout`](Self::poll_timeout) has passed without input, it calls
/// [`handle_timeout`](Self::handle_timeout) and polls again. While a reply can't be sent it should
/// not read on. Once [`is_finished`](Self::is_finished), it closes the connection.
///
/// A binary message may be handed over in pieces, as it arrives. Nothing is queued: replies are
/// made when they are polled, from the figures as they then are.
///
/// ```
/// use std::time::Duration;
/// use linerate_logview::session::{Limits, Outcome, Session};
///
/// let line = b"192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] \"GET / HTTP/1.1\" 200 654\n";
/// let now = Duration::ZERO;
/// let mut session = Session::new(Limits::default(), now);
/// session.handle_text(r#"{"type":"start","name":"a.log","size":68}"#, now);
/// assert_eq!(
///     session.poll_reply(now).as_deref(),
///     Some(r#"{"type":"ready","window_bytes":16777216}"#)
/// );
/// session.handle_chunk(line, true, now);
/// assert_eq!(session.poll_reply(now).as_deref(), Some(r#"{"type":"ack","bytes":68}"#));
/// session.handle_text(r#"{"type":"finish"}"#, now);
/// let figures = session.poll_reply(now).ok_or("no figures")?;
/// assert!(figures.starts_with(r#"{"type":"snapshot","final":true,"summary":{"lines":1,"#));
/// assert!(session.is_finished());
/// assert_eq!(session.outcome(), Some(&Outcome::Finished));
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug)]
pub struct Session {
    limits: Limits,
    state: State,
    /// Until when the client has to be heard of.
    silence_ends: Duration,
    due: Due,
}

#[derive(Debug)]
enum State {
    AwaitingStart,
    /// Boxed, since it is all of the session that is large.
    Uploading(Box<Upload>),
    /// Over, with the last reply still to be polled where there is one.
    Ended(Outcome, Option<String>),
}

/// Which replies are due.
#[derive(Debug, Default)]
struct Due {
    ready: bool,
    ack: bool,
    /// When the next snapshot is.
    snapshot: Option<Duration>,
}

#[derive(Debug)]
struct Upload {
    name: String,
    /// How many bytes the client announced.
    announced: u64,
    /// How many bytes the last acknowledgement that was polled named.
    acked: u64,
    /// When the last snapshot was polled.
    last_snapshot: Option<Duration>,
    log: Aggregator,
    verdict: verdict::Verdict,
}

impl Session {
    /// Creates a session whose client has to send `start` within the time of silence.
    pub fn new(limits: Limits, now: Duration) -> Self {
        Self {
            state: State::AwaitingStart,
            silence_ends: now + limits.silence_max,
            due: Due::default(),
            limits,
        }
    }

    /// Takes a text message. After the end of the session it is ignored.
    pub fn handle_text(&mut self, text: &str, now: Duration) {
        self.silence_ends = now + self.limits.silence_max;
        if !self.is_over()
            && let Err(error) = self.try_handle_text(text)
        {
            self.fail(error);
        }
    }

    /// Takes a binary message or a piece of one, and says whether the message ends with it.
    ///
    /// After the end of the session it is ignored.
    pub fn handle_chunk(&mut self, bytes: &[u8], message_ends: bool, now: Duration) {
        self.silence_ends = now + self.limits.silence_max;
        if !self.is_over()
            && let Err(error) = self.try_handle_chunk(bytes, message_ends, now)
        {
            self.fail(error);
        }
    }

    /// Ends the session if the client has been silent for too long.
    pub fn handle_timeout(&mut self, now: Duration) {
        if !self.is_over() && now >= self.silence_ends {
            self.fail(SessionError::Stalled {
                silence_max: self.limits.silence_max,
            });
        }
    }

    /// Returns the next reply that is due, a text message; `None` for now if there is none.
    pub fn poll_reply(&mut self, now: Duration) -> Option<String> {
        if std::mem::take(&mut self.due.ready) {
            let window_bytes = self.limits.window_bytes;
            return Some(Reply::Ready { window_bytes }.to_json());
        }
        match &mut self.state {
            State::AwaitingStart => None,
            State::Ended(_, last) => last.take(),
            State::Uploading(upload) => {
                if std::mem::take(&mut self.due.ack) {
                    upload.acked = upload.log.bytes_read();
                    return Some(upload.ack());
                }
                self.due.snapshot.take_if(|due| *due <= now)?;
                upload.last_snapshot = Some(now);
                Some(upload.snapshot(false))
            }
        }
    }

    /// Returns when to poll for a reply again, or to call [`handle_timeout`](Self::handle_timeout),
    /// if no input comes before; `None` once the session is over.
    pub fn poll_timeout(&self) -> Option<Duration> {
        if self.is_over() {
            return None;
        }
        let snapshot = self.due.snapshot.unwrap_or(self.silence_ends);
        Some(snapshot.min(self.silence_ends))
    }

    /// Says whether the session is over and its last reply was polled.
    pub fn is_finished(&self) -> bool {
        matches!(self.state, State::Ended(_, None))
    }

    /// Returns how the session ended, or `None` while it lasts.
    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.state {
            State::Ended(outcome, _) => Some(outcome),
            State::AwaitingStart | State::Uploading(_) => None,
        }
    }

    /// Returns the name of the file that is being uploaded. It is the client's word.
    pub fn name(&self) -> Option<&str> {
        match &self.state {
            State::Uploading(upload) => Some(&upload.name),
            State::AwaitingStart | State::Ended(..) => None,
        }
    }

    fn try_handle_text(&mut self, text: &str) -> Result<(), SessionError> {
        if text.len() > self.limits.text_bytes_max {
            return Err(SessionError::TextTooLong {
                bytes: text.len(),
                bytes_max: self.limits.text_bytes_max,
            });
        }
        match Request::parse(text).ok_or(SessionError::UnknownMessage)? {
            Request::Start { name, size } => self.start(name, size),
            Request::Finish => self.finish(),
            Request::Cancel => {
                self.end(Outcome::Cancelled, None);
                Ok(())
            }
        }
    }

    fn start(&mut self, name: String, announced: u64) -> Result<(), SessionError> {
        if !matches!(self.state, State::AwaitingStart) {
            return Err(SessionError::SecondStart);
        }
        if name.len() > self.limits.name_bytes_max {
            return Err(SessionError::NameTooLong {
                bytes: name.len(),
                bytes_max: self.limits.name_bytes_max,
            });
        }
        if announced > self.limits.upload_bytes_max {
            return Err(SessionError::TooLarge {
                bytes: announced,
                bytes_max: self.limits.upload_bytes_max,
            });
        }
        self.due.ready = true;
        self.state = State::Uploading(Box::new(Upload {
            name,
            announced,
            acked: 0,
            last_snapshot: None,
            log: Aggregator::new(self.limits.aggregate.clone()),
            verdict: verdict::Verdict::default(),
        }));
        Ok(())
    }

    fn try_handle_chunk(
        &mut self,
        bytes: &[u8],
        message_ends: bool,
        now: Duration,
    ) -> Result<(), SessionError> {
        let State::Uploading(upload) = &mut self.state else {
            return Err(SessionError::NotStarted);
        };
        upload.take(bytes, self.limits.window_bytes)?;
        let unacknowledged = upload.log.bytes_read() - upload.acked;
        self.due.ack |=
            message_ends || unacknowledged >= ACK_BYTES.min(self.limits.window_bytes / 2);
        if !bytes.is_empty() && self.due.snapshot.is_none() {
            self.due.snapshot = Some(match upload.last_snapshot {
                None => now + FIRST_SNAPSHOT_AFTER,
                Some(last) => last + SNAPSHOT_INTERVAL,
            });
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), SessionError> {
        let State::Uploading(upload) = &mut self.state else {
            return Err(SessionError::NotStarted);
        };
        let received = upload.log.bytes_read();
        if received != upload.announced {
            return Err(SessionError::SizeMismatch {
                announced: upload.announced,
                received,
            });
        }
        upload.log.handle_eof();
        upload.verdict.at_eof(&upload.log)?;
        let figures = upload.snapshot(true);
        self.end(Outcome::Finished, Some(figures));
        Ok(())
    }

    fn fail(&mut self, error: SessionError) {
        let reply = Reply::Error {
            code: error.code(),
            message: error.to_string(),
        };
        let reply = reply.to_json();
        self.end(Outcome::Failed(error), Some(reply));
    }

    /// Ends the session and frees the figures.
    fn end(&mut self, outcome: Outcome, last_reply: Option<String>) {
        self.due = Due::default();
        self.state = State::Ended(outcome, last_reply);
    }

    fn is_over(&self) -> bool {
        matches!(self.state, State::Ended(..))
    }
}

impl Upload {
    /// Counts and parses bytes that the client was allowed to send.
    fn take(&mut self, bytes: &[u8], window_bytes: u64) -> Result<(), SessionError> {
        let received = self.log.bytes_read() + bytes.len() as u64;
        if received > self.announced {
            return Err(SessionError::SizeMismatch {
                announced: self.announced,
                received,
            });
        }
        if received - self.acked > window_bytes {
            return Err(SessionError::WindowExceeded {
                bytes: received - self.acked,
                window_bytes,
            });
        }
        self.verdict.note_head(bytes);
        self.log.handle_input(bytes);
        self.verdict.after_input(&self.log)
    }

    fn ack(&self) -> String {
        let bytes = self.log.bytes_read();
        Reply::Ack { bytes }.to_json()
    }

    fn snapshot(&self, is_final: bool) -> String {
        let summary = Box::new(self.log.summary());
        Reply::Snapshot { is_final, summary }.to_json()
    }
}

#[cfg(test)]
mod tests {
    mod flow;
    mod refusals;
}
