//! The upload session of the log page, independent of the WebSocket that carries it.
//!
//! # Protocol `linerate.logs.v1`
//!
//! This is the name of the subprotocol ([`SUBPROTOCOL`]). Control messages are JSON in text
//! messages; the log itself is sent in binary messages. Unknown members of a message are ignored,
//! but unknown message types are an error.
//!
//! | client sends | meaning |
//! | --- | --- |
//! | `{"type":"key","key":"…"}` | presents the key if `files` asks for one; must come first, and is answered by another `files` |
//! | `{"type":"start","files":[{"name":"access.log","size":8570485}],"format":"auto","rows":true}` | announces the files and their sizes in bytes; the last size may be `null`, in which case `finish` ends that file; with `rows`, the lines are kept so that they can be requested |
//! | binary messages of any size, including empty ones | the bytes of the files, one file after the other |
//! | `{"type":"finish"}` | all bytes have been sent |
//! | `{"type":"stop"}` | no more bytes will be sent, although some are missing; the figures of those that arrived are final |
//! | `{"type":"cancel"}` | the figures are no longer wanted; allowed at any time |
//! | `{"type":"resume","id":"…"}` | instead of `start`: continues a session whose connection was lost |
//! | `{"type":"follow","name":"access.log"}` | instead of `start`: requests the figures of a file that the server reads |
//! | `{"type":"view","name":"…"}` | instead of `start`: requests the figures of an upload of another connection |
//! | `{"type":"query","seq":1,"query":{…}}` | requests the figures of some of the requests |
//! | `{"type":"rows","seq":2,"query":{…},"containing":"","offset":0,"limit":100}` | requests lines: a [`RowsQuery`](crate::query::RowsQuery) |
//! | `{"type":"changes","seq":3,"query":{"before":{…},"after":{…}}}` | asks what has changed between two periods: a [`ChangesQuery`](crate::query::ChangesQuery) |
//! | `{"type":"values","seq":4,"query":{"field":"path","by":"bytes"}}` | asks for the values of a field in some order: a [`ListQuery`](crate::query::ListQuery) |
//! | `{"type":"latency","seq":5,"query":{…}}` | asks how long requests took over time |
//! | `{"type":"rates","seq":6,"query":{…},"rates":{"limit":{"requests":60,"seconds":60},"by":"address"}}` | asks which clients exceed a limit |
//! | `{"type":"drop","seq":1}` | withdraws this question; its answer may arrive nevertheless |
//!
//! | server sends | meaning |
//! | --- | --- |
//! | `{"type":"files","files":["access.log"],"uploads":"allowed","kept_s":600}` | which files can be followed, whether uploads are `allowed`, `off`, `closed` or need a `key`, and for how long an upload is kept after its last page was closed; always the first message |
//! | `{"type":"ready","id":"…","window_bytes":67108864,"bytes":0,"view":"…"}` | continue after the first `bytes` bytes, and never send more than `window_bytes` beyond the last acknowledged byte. `view` is the name by which others view the upload; after `resume` and `view`, `files` lists the announced files |
//! | `{"type":"ack","bytes":1048576}` | the number of bytes parsed since the start |
//! | `{"type":"snapshot","final":false,"summary":{…}}` | the figures so far, a [`Summary`] |
//! | `{"type":"snapshot","final":true,"summary":{…}}` | the figures of all files, or of the part that arrived before `stop` |
//! | `{"type":"figures","seq":1,"summary":{…}}` | the answer to a `query` |
//! | `{"type":"searching","seq":1,"fraction":0.5}` | how much of the log was examined for an answer that takes longer; sent a few times a second |
//! | `{"type":"rows","seq":2,"total":9,"rows":[{"line":17,"text":"…"}]}` | the requested lines, and the total number of matching lines |
//! | `{"type":"changes","seq":3,"changes":{…}}` | the values that explain the difference, as [`Changes`](crate::summary::Changes) |
//! | `{"type":"values","seq":4,"list":{…}}` | the values, as a [`ValueList`](crate::summary::ValueList) |
//! | `{"type":"latency","seq":5,"latency":{…}}` | how long requests took, as a [`LatencySeries`](crate::summary::LatencySeries) |
//! | `{"type":"rates","seq":6,"rates":{…}}` | the clients that exceed the limit, as [`Rates`](crate::summary::Rates) |
//! | `{"type":"refused","seq":1,"code":"bad_filter","message":"…","filter":0,"column":8}` | the question cannot be answered; the session continues. For `bad_filter`, `filter` is the index of the wrong filter, from 0, and `column` the position in characters, from 1 |
//! | `{"type":"error","code":"too_large","message":"…"}` | the session is over; always the last message |
//!
//! Bytes are acknowledged at the end of each binary message and about every MiB within one. If
//! several acknowledgements or snapshots could not be sent in time, only the latest is sent. The
//! first snapshot is sent 50 ms after the first bytes and the next one 200 ms later; the interval
//! then grows to 1 s. Snapshots are sent only if bytes arrived since the last one. An empty file is
//! not an error: its figures are zeros. Nor is a compressed file that is damaged after its first
//! request: the lines before the damage count, its other bytes are skipped, and the summaries list
//! it under `damaged`. After the final snapshot the session stays open for questions until the
//! client leaves or has been idle for too long.
//!
//! A client that follows a file receives `ready`, then a snapshot whenever there is news. None of
//! these snapshots is final. It may ask questions as well.
//!
//! A client that views an upload receives `ready` with a window of 0, then a snapshot whenever the
//! upload has a new one. It may ask questions, and can change nothing.
//!
//! The codes of errors are those of [`SessionError::code`]; the codes of refusals are those of
//! [`QueryError::code`], plus `malformed` and `answer_too_large`. The message is a sentence for
//! people.
//!
//! [`QueryError::code`]: crate::query::QueryError::code
//! [`Summary`]: crate::summary::Summary

mod error;
mod followed;
mod id;
mod limits;
mod message;
mod question;
mod upload;
mod viewer;

use std::time::Duration;

pub use error::SessionError;
pub use followed::Followed;
pub use id::SessionId;
pub use limits::Limits;
use message::{ClientMessage, Question, ServerMessage};
use question::Questions;
pub use question::answer;
use upload::Upload;
pub use viewer::{Viewed, Viewer};

use crate::decode::Progress;

/// The name of the WebSocket subprotocol.
pub const SUBPROTOCOL: &str = "linerate.logs.v1";

/// The number of parsed bytes after which an acknowledgement is due within a message.
const ACK_BYTES: u64 = 1 << 20;
/// The number of parsed bytes after which a file is judged to be an access log or not.
const VERDICT_BYTES: u64 = 1 << 20;
/// The delay from the first bytes to the first snapshot.
const FIRST_SNAPSHOT_AFTER: Duration = Duration::from_millis(50);
/// The shortest interval between snapshots.
const SNAPSHOT_INTERVAL: Duration = Duration::from_millis(200);
/// The longest interval between snapshots. The interval equals the time between the first and the
/// latest snapshot, clamped to this range. Drawing a snapshot takes a browser up to 0.1 s of
/// processor time, which would slow down an upload at full speed.
const SNAPSHOT_INTERVAL_MAX: Duration = Duration::from_secs(1);

/// The most heap, in bytes, that the largest reply to a query takes to build.
const ANSWER_WORK_BYTES: usize = 64 << 20;
/// The most heap, in bytes, that a snapshot takes to build.
const SNAPSHOT_WORK_BYTES: usize = 8 << 20;

/// How a session ended.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// The client cancelled the session.
    Cancelled,
    /// The client or one of its files was rejected.
    Failed(SessionError),
}

/// Returns the first message of a connection, which lists the files that can be followed, and says
/// whether uploads are allowed and for how long one is kept after its last page was closed.
///
/// ```
/// use std::time::Duration;
/// use linerate_logview::session::{Uploads, files_message};
///
/// let names = ["access.log".to_owned()];
/// let message = files_message(&names, Uploads::Allowed, Duration::from_secs(600));
/// assert_eq!(
///     message,
///     r#"{"type":"files","files":["access.log"],"uploads":"allowed","kept_s":600}"#
/// );
/// ```
pub fn files_message(names: &[String], uploads: Uploads, kept: Duration) -> String {
    let files = ServerMessage::Files {
        files: names.to_vec(),
        uploads,
        kept_s: kept.as_secs(),
    };
    files.to_json()
}

/// True if clients may upload files.
#[derive(Clone, Copy, Debug, Eq, PartialEq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Uploads {
    /// Any client may upload.
    Allowed,
    /// No client may upload or follow, with or without a key.
    Closed,
    /// A client must present a key before it may upload or follow.
    Key,
    /// Uploads are disabled, but files can be followed.
    Off,
}

/// A request that the session cannot serve itself and passes on to the caller.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Lookup {
    /// Follow the file of this name, which the server reads.
    Follow(String),
    /// Resume this session.
    Resume(SessionId),
    /// View the upload with this name.
    View(SessionId),
}

/// One client's upload: consumes the client's messages and produces the replies.
///
/// The caller feeds in messages, passes the time since any fixed moment as `now`, and after every
/// call sends what [`poll_reply`](Self::poll_reply) returns until it returns `None`. When the time
/// from [`poll_timeout`](Self::poll_timeout) is reached without input, it calls
/// [`handle_timeout`](Self::handle_timeout) and polls again. While a reply cannot be sent, the
/// caller should stop reading. Once [`is_finished`](Self::is_finished) returns true, it closes the
/// connection.
///
/// A session may outlive its connection. When a client asks on a new connection to resume a
/// session, [`take_lookup`](Self::take_lookup) names that session. The caller then continues it
/// with [`handle_resume`](Self::handle_resume), or rejects the client with
/// [`refuse`](Self::refuse) if there is no such session.
///
/// A binary message may be passed in pieces, as they arrive. Replies are built when they are
/// polled, from the figures at that moment.
///
/// ```
/// use std::time::Duration;
/// use linerate_logview::session::{Limits, Session, SessionId};
///
/// let line = b"192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] \"GET / HTTP/1.1\" 200 654\n";
/// let now = Duration::ZERO;
/// let id = SessionId::from_bytes([7; 16]); // Use an unpredictable generator.
/// let mut session = Session::new(Limits::default(), id, now);
/// session.handle_text(r#"{"type":"start","files":[{"name":"a.log","size":68}]}"#, now);
/// let ready = session.poll_reply(now).ok_or("not ready")?;
/// assert!(ready.ends_with(r#""window_bytes":67108864,"bytes":0}"#));
/// session.handle_chunk(line, true, now);
/// assert_eq!(session.poll_reply(now).as_deref(), Some(r#"{"type":"ack","bytes":68}"#));
///
/// session.handle_text(r#"{"type":"finish"}"#, now);
/// let figures = session.poll_reply(now).ok_or("no figures")?;
/// assert!(figures.starts_with(r#"{"type":"snapshot","final":true,"summary":{"lines":1,"#));
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug)]
pub struct Session {
    limits: Limits,
    id: SessionId,
    /// The name by which others view the upload.
    view: Option<SessionId>,
    state: State,
    lookup: Option<Lookup>,
    /// When the last message arrived.
    last_input: Duration,
    due: DueReplies,
}

#[derive(Debug)]
enum State {
    AwaitingStart,
    /// Boxed because it is by far the largest variant.
    Started(Box<Upload>),
    /// Over. Holds the last reply until it is polled, if there is one.
    Ended(Outcome, Option<String>),
}

/// The replies that are due.
#[derive(Debug, Default)]
struct DueReplies {
    ready: Option<ReadyReply>,
    ack: bool,
    /// When the next snapshot is due.
    snapshot: Option<Duration>,
    questions: Questions,
}

/// What a `ready` message answers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ReadyReply {
    Resume,
    Start,
}

impl Session {
    /// Creates a session whose client must send `start` within [`Limits::silence_max`].
    pub fn new(limits: Limits, id: SessionId, now: Duration) -> Self {
        Self {
            limits,
            id,
            view: None,
            state: State::AwaitingStart,
            lookup: None,
            last_input: now,
            due: DueReplies::default(),
        }
    }

    /// Sets the name by which others may view the upload. Like the identifier, it must be drawn
    /// from an unpredictable source.
    #[must_use]
    pub fn with_view(mut self, name: SessionId) -> Self {
        self.view = Some(name);
        self
    }

    /// Handles a text message. Ignored after the end of the session.
    pub fn handle_text(&mut self, text: &str, now: Duration) {
        self.last_input = now;
        if !self.is_over()
            && let Err(error) = self.try_handle_text(text, now)
        {
            self.fail(error);
        }
    }

    /// Handles a binary message or a piece of one. `message_ends` is true for the last piece.
    ///
    /// Ignored after the end of the session.
    pub fn handle_chunk(&mut self, bytes: &[u8], message_ends: bool, now: Duration) {
        self.handle_some(bytes, message_ends, usize::MAX, now);
    }

    /// Like [`handle_chunk`](Self::handle_chunk), but stops after about `work_max` bytes of work,
    /// possibly in the middle of `bytes`. Work is counted in decompressed bytes, which may be
    /// thousands of times as many.
    ///
    /// Until the returned progress is done, the caller must call this again with the remaining
    /// bytes, even if none remain.
    pub fn handle_some(
        &mut self,
        bytes: &[u8],
        message_ends: bool,
        work_max: usize,
        now: Duration,
    ) -> Progress {
        self.last_input = now;
        let taken = match self.is_over() {
            true => None,
            false => match self.try_handle_chunk(bytes, message_ends, work_max, now) {
                Ok(progress) => Some(progress),
                Err(error) => {
                    self.fail(error);
                    None
                }
            },
        };
        taken.unwrap_or(Progress {
            read: bytes.len(),
            work: 0,
            is_done: true,
        })
    }

    /// Ends the session if the client has been silent for too long.
    pub fn handle_timeout(&mut self, now: Duration) {
        if self.is_over() || now < self.patience_ends() {
            return;
        }
        self.fail(if self.is_complete() {
            SessionError::Idle {
                idle_max: self.limits.idle_max,
            }
        } else {
            SessionError::Stalled {
                silence_max: self.limits.silence_max,
            }
        });
    }

    /// Continues the session over a new connection: tells its client how many bytes were received,
    /// and sends the figures.
    ///
    /// Bytes of the old connection that were not passed to the session do not count.
    pub fn handle_resume(&mut self, now: Duration) {
        self.last_input = now;
        let State::Started(upload) = &mut self.state else {
            return;
        };
        upload.acked = upload.bytes();
        let is_worth_showing = upload.is_complete() || upload.bytes() > 0;
        self.due = DueReplies {
            ready: Some(ReadyReply::Resume),
            snapshot: is_worth_showing.then_some(now),
            ..DueReplies::default()
        };
    }

    /// Keeps the session from becoming idle, because a [`Viewer`] has asked a question.
    pub fn handle_viewer(&mut self, now: Duration) {
        if self.is_complete() {
            self.last_input = now;
        }
    }

    /// Ends the session with an error because a [`Lookup`] of the client cannot be granted.
    pub fn refuse(&mut self, error: SessionError) {
        if !self.is_over() {
            self.fail(error);
        }
    }

    /// Returns what the client asked for that the caller must look up.
    pub fn take_lookup(&mut self) -> Option<Lookup> {
        self.lookup.take()
    }

    /// Returns the next text message to send, or `None` if no reply is due at `now`.
    pub fn poll_reply(&mut self, now: Duration) -> Option<String> {
        let upload = match &mut self.state {
            State::AwaitingStart => return None,
            State::Started(upload) => upload,
            State::Ended(_, last) => return last.take(),
        };
        if let Some(to) = self.due.ready.take() {
            let ready = ServerMessage::Ready {
                id: self.id.to_string(),
                window_bytes: self.limits.window_bytes,
                bytes: upload.bytes(),
                view: self.view.map(|name| name.to_string()),
                files: (to == ReadyReply::Resume).then(|| upload.files().to_vec()),
            };
            return Some(ready.to_json());
        }
        if std::mem::take(&mut self.due.ack) {
            upload.acked = upload.bytes();
            let bytes = upload.bytes();
            return Some(ServerMessage::Ack { bytes }.to_json());
        }
        if let Some(answer) = self.due.questions.poll_answer(upload.log(), now) {
            return Some(answer);
        }
        self.due.snapshot.take_if(|due| *due <= now)?;
        upload.snapshots = Some((upload.snapshots.map_or(now, |(first, _)| first), now));
        let snapshot = ServerMessage::Snapshot {
            is_final: upload.is_complete(),
            summary: Box::new(upload.summary()),
        };
        Some(snapshot.to_json())
    }

    /// Returns when to poll for a reply again, or to call [`handle_timeout`](Self::handle_timeout),
    /// unless input arrives earlier. Returns `None` once the session is over.
    pub fn poll_timeout(&self) -> Option<Duration> {
        if self.is_over() {
            return None;
        }
        if !self.due.questions.is_empty() {
            // The search for an answer continues as soon as the caller has time.
            return Some(Duration::ZERO);
        }
        let patience_ends = self.patience_ends();
        let snapshot = self.due.snapshot.unwrap_or(patience_ends);
        Some(snapshot.min(patience_ends))
    }

    /// Returns whether the session is over and its last reply was polled.
    pub fn is_finished(&self) -> bool {
        matches!(self.state, State::Ended(_, None))
    }

    /// Returns the name by which others may view the upload.
    pub fn view(&self) -> Option<SessionId> {
        self.view
    }

    /// Returns the identifier by which a client resumes the session.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Returns whether the session receives or holds files, so that it can be resumed.
    pub fn has_files(&self) -> bool {
        matches!(self.state, State::Started(_))
    }

    /// Returns how many bytes of heap the session holds, within a few KiB.
    pub fn memory_bytes(&self) -> usize {
        match &self.state {
            State::Started(upload) => upload.memory_bytes() + self.due.questions.memory_bytes(),
            State::AwaitingStart | State::Ended(..) => 0,
        }
    }

    /// Returns how many bytes the session holds in a temporary file.
    pub fn spilled_bytes(&self) -> u64 {
        let upload = self.upload();
        upload.map_or(0, |upload| upload.log().spilled_bytes())
    }

    /// Returns by how many bytes of heap [`memory_bytes`](Self::memory_bytes) may grow while the
    /// session does `work` bytes of [work](Self::handle_some), including memory held only
    /// temporarily while lists grow.
    ///
    /// A caller with a memory budget reserves this much beforehand.
    pub fn growth_bytes_max(&self, work: usize) -> usize {
        match &self.state {
            State::Started(upload) => upload.growth_bytes_max(work, &self.limits),
            State::AwaitingStart | State::Ended(..) => 0,
        }
    }

    /// Returns how many bytes of heap it may take to build the replies that are due after input,
    /// including the reply to the text message `text` if there is one.
    pub fn reply_bytes_max(&self, text: Option<&str>) -> usize {
        match text.map(|text| ClientMessage::parse(text, &self.limits)) {
            Some(Ok(ClientMessage::Ask(_))) => ANSWER_WORK_BYTES,
            _ if !self.due.questions.is_empty() => ANSWER_WORK_BYTES,
            _ => SNAPSHOT_WORK_BYTES,
        }
    }

    /// Returns how the session ended, or `None` while it lasts.
    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.state {
            State::Ended(outcome, _) => Some(outcome),
            State::AwaitingStart | State::Started(_) => None,
        }
    }

    fn try_handle_text(&mut self, text: &str, now: Duration) -> Result<(), SessionError> {
        match ClientMessage::parse(text, &self.limits)? {
            ClientMessage::Ask(question) => self.ask(question),
            ClientMessage::Cancel => {
                self.end(Outcome::Cancelled, None);
                Ok(())
            }
            ClientMessage::Drop { seq } => {
                self.due.questions.drop(seq);
                Ok(())
            }
            ClientMessage::Finish => self.finish(now),
            ClientMessage::Follow { name } => self.look_up(Lookup::Follow(name)),
            ClientMessage::Resume { id } => {
                let id = SessionId::parse(&id).ok_or(SessionError::UnknownSession)?;
                self.look_up(Lookup::Resume(id))
            }
            ClientMessage::Start(start) => self.start(start),
            ClientMessage::Stop => self.stop(now),
            ClientMessage::View { name } => {
                let name = SessionId::parse(&name).ok_or(SessionError::UnknownSession)?;
                self.look_up(Lookup::View(name))
            }
        }
    }

    fn expect_beginning(&self) -> Result<(), SessionError> {
        match (&self.state, &self.lookup) {
            (State::AwaitingStart, None) => Ok(()),
            _ => Err(SessionError::SecondStart),
        }
    }

    fn look_up(&mut self, lookup: Lookup) -> Result<(), SessionError> {
        self.expect_beginning()?;
        self.lookup = Some(lookup);
        Ok(())
    }

    fn start(&mut self, start: message::StartRequest) -> Result<(), SessionError> {
        self.expect_beginning()?;
        self.state = State::Started(Box::new(Upload::new(start, &self.limits)?));
        self.due.ready = Some(ReadyReply::Start);
        Ok(())
    }

    fn try_handle_chunk(
        &mut self,
        bytes: &[u8],
        message_ends: bool,
        work_max: usize,
        now: Duration,
    ) -> Result<Progress, SessionError> {
        let State::Started(upload) = &mut self.state else {
            return Err(SessionError::NotStarted);
        };
        let progress = upload.take(bytes, work_max, &self.limits)?;
        let unacknowledged = upload.bytes() - upload.acked;
        self.due.ack |= message_ends && progress.is_done
            || unacknowledged >= ACK_BYTES.min(self.limits.window_bytes / 2);
        if progress.work > 0 && self.due.snapshot.is_none() {
            self.due.snapshot = Some(match upload.snapshots {
                None => now + FIRST_SNAPSHOT_AFTER,
                Some((first, last)) => {
                    last + (last - first).clamp(SNAPSHOT_INTERVAL, SNAPSHOT_INTERVAL_MAX)
                }
            });
        }
        Ok(progress)
    }

    /// Ends the upload. A repeated `finish` sends the final figures again, because the client may
    /// not have received them.
    fn finish(&mut self, now: Duration) -> Result<(), SessionError> {
        let State::Started(upload) = &mut self.state else {
            return Err(SessionError::NotStarted);
        };
        upload.finish(&self.limits)?;
        self.due.snapshot = Some(now);
        Ok(())
    }

    /// Ends the upload early, so that what has arrived can be queried.
    fn stop(&mut self, now: Duration) -> Result<(), SessionError> {
        let State::Started(upload) = &mut self.state else {
            return Err(SessionError::NotStarted);
        };
        upload.stop();
        self.due.snapshot = Some(now);
        Ok(())
    }

    fn ask(&mut self, question: Question) -> Result<(), SessionError> {
        match self.state {
            State::Started(_) => self.due.questions.push(question),
            State::AwaitingStart | State::Ended(..) => Err(SessionError::NotStarted),
        }
    }

    /// Returns the files and figures, or `None` before the start and after the end.
    fn upload(&self) -> Option<&Upload> {
        match &self.state {
            State::Started(upload) => Some(upload),
            State::AwaitingStart | State::Ended(..) => None,
        }
    }

    fn fail(&mut self, error: SessionError) {
        let reply = error.to_json();
        self.end(Outcome::Failed(error), Some(reply));
    }

    /// Ends the session and frees the figures.
    fn end(&mut self, outcome: Outcome, last_reply: Option<String>) {
        self.due = DueReplies::default();
        self.lookup = None;
        self.state = State::Ended(outcome, last_reply);
    }

    fn is_over(&self) -> bool {
        matches!(self.state, State::Ended(..))
    }

    /// Returns the deadline by which the client must send something.
    fn patience_ends(&self) -> Duration {
        let patience = if self.is_complete() {
            self.limits.idle_max
        } else {
            self.limits.silence_max
        };
        self.last_input + patience
    }

    fn is_complete(&self) -> bool {
        matches!(&self.state, State::Started(upload) if upload.is_complete())
    }
}

#[cfg(test)]
mod tests {
    mod flow;
    mod followed;
    mod questions;
    mod refusals;
    mod resume;
    mod stopped;
    mod viewed;
}
