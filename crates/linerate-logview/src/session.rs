//! The upload session behind the log page's WebSocket, without the WebSocket.
//!
//! # Protocol `linerate.logs.v1`
//!
//! That is the subprotocol's name ([`SUBPROTOCOL`]). Control is JSON in text messages, the log is
//! binary messages. Members of a message that aren't listed here are ignored, unknown types are
//! not.
//!
//! | client sends | meaning |
//! | --- | --- |
//! | `{"type":"key","key":"…"}` | where `files` asks for it, before anything else; answered by `files` anew |
//! | `{"type":"start","files":[{"name":"access.log","size":8570485}],"format":"auto","rows":true}` | announces files of so many bytes; the last one may have the size `null`, which `finish` ends; with `rows`, lines are kept to be asked for |
//! | binary messages of any size, empty ones included | the bytes of the files, one after the other |
//! | `{"type":"finish"}` | all bytes were sent |
//! | `{"type":"cancel"}` | no figures are wanted any more; at any time |
//! | `{"type":"resume","id":"…"}` | instead of `start`: goes on with a session whose connection was lost |
//! | `{"type":"follow","name":"access.log"}` | instead of `start`: the figures of a file that the server reads |
//! | `{"type":"query","seq":1,"query":{…}}` | asks for the figures of some of the requests |
//! | `{"type":"rows","seq":2,"query":{…},"offset":0,"limit":100}` | asks for lines |
//!
//! | server sends | meaning |
//! | --- | --- |
//! | `{"type":"files","files":["access.log"],"uploads":"allowed"}` | what can be followed, and whether uploads are `allowed`, `off`, `closed` or need a `key`; the first message |
//! | `{"type":"ready","id":"…","window_bytes":67108864,"bytes":0}` | go on behind so many bytes: at most so many beyond the last acknowledged one |
//! | `{"type":"ack","bytes":1048576}` | so many bytes were parsed since the start |
//! | `{"type":"snapshot","final":false,"summary":{…}}` | the figures so far, a [`Summary`] |
//! | `{"type":"snapshot","final":true,"summary":{…}}` | the figures of all files |
//! | `{"type":"figures","seq":1,"summary":{…}}` | the figures that were asked for |
//! | `{"type":"rows","seq":2,"total":9,"rows":[{"line":17,"text":"…"}]}` | the lines that were asked for, and how many there are |
//! | `{"type":"refused","seq":1,"code":"bad_filter","message":"…","filter":0,"column":8}` | a question that can't be answered; the session goes on. With `bad_filter`, which filter is wrong, from 0, and where, in characters from 1 |
//! | `{"type":"error","code":"too_large","message":"…"}` | the session is over; the last message |
//!
//! Bytes are acknowledged at the end of each binary message and about every MiB within one. Of
//! several acknowledgements or snapshots that could not be sent in time, the latest is sent. The
//! first snapshot comes 50 ms after the first bytes, the next 200 ms later, and after a while one each
//! second, only if bytes came. An empty file is no error: its figures are zeros. After the final snapshot the
//! session stays, for questions, until the client leaves or asks nothing for a while.
//!
//! Who follows a file gets `ready`, then a snapshot whenever there is news, none of them final, and
//! may ask as well.
//!
//! Codes of errors are those of [`SessionError::code`], those of refusals those of
//! [`QueryError::code`], or `malformed`; the message is a sentence for people.
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
mod verdict;

use std::time::Duration;

pub use error::SessionError;
pub use followed::{Followed, Viewer};
pub use id::SessionId;
pub use limits::Limits;
use message::{Reply, Request};
use question::{Question, Questions};
use upload::Upload;

use crate::decode::Progress;

/// The name of the WebSocket subprotocol.
pub const SUBPROTOCOL: &str = "linerate.logs.v1";

/// How many bytes are parsed at most before an acknowledgement is due.
const ACK_BYTES: u64 = 1 << 20;
/// How many bytes are parsed before it is decided whether they are an access log.
const VERDICT_BYTES: u64 = 1 << 20;
/// How long after the first bytes the first snapshot is due.
const FIRST_SNAPSHOT_AFTER: Duration = Duration::from_millis(50);
/// How much time lies between snapshots at least,
const SNAPSHOT_INTERVAL: Duration = Duration::from_millis(200);
/// and at most: in between, as much as since the first one. To show one takes a browser up to a tenth
/// of a second of processor time, which an upload at full speed would be slowed by.
const SNAPSHOT_INTERVAL_MAX: Duration = Duration::from_secs(1);

/// What it takes to make up the reply with the most values and lines, for a client that asks for them.
const ANSWER_WORK_BYTES: usize = 64 << 20;
/// The same for the figures that are shown unasked.
const SNAPSHOT_WORK_BYTES: usize = 4 << 20;

/// How a session ended.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// The client called it off.
    Cancelled,
    /// The client or one of its files was refused.
    Failed(SessionError),
}

/// Returns the message that a connection begins with: which files can be followed, and whether any can be uploaded.
///
/// ```
/// use linerate_logview::session::{Uploads, files_message};
///
/// let names = ["access.log".to_owned()];
/// let message = files_message(&names, Uploads::Allowed);
/// assert_eq!(message, r#"{"type":"files","files":["access.log"],"uploads":"allowed"}"#);
/// ```
pub fn files_message(names: &[String], uploads: Uploads) -> String {
    let files = names.to_vec();
    Reply::Files { files, uploads }.to_json()
}

/// Whether a client may upload files.
#[derive(Clone, Copy, Debug, Eq, PartialEq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Uploads {
    /// It may.
    Allowed,
    /// No client may upload or follow, whatever it shows.
    Closed,
    /// It has to show a key first, also to follow.
    Key,
    /// Uploads are switched off; the files can be followed.
    Off,
}

/// What a client wants that is not in its session.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Wish {
    /// To see the file of this name, which the server reads.
    Follow(String),
    /// To go on with this session.
    Resume(SessionId),
}

/// One client's files: takes what the client sends and gives the replies.
///
/// The caller feeds messages, passes the time since any fixed moment as `now`, and after every
/// call sends what [`poll_reply`](Self::poll_reply) gives until it gives `None`. When
/// [`poll_timeout`](Self::poll_timeout) has passed without input, it calls
/// [`handle_timeout`](Self::handle_timeout) and polls again. While a reply can't be sent it should
/// not read on. Once [`is_finished`](Self::is_finished), it closes the connection.
///
/// A session may outlive its connection. When a client says on a new one that it wants to go on,
/// [`take_wish`](Self::take_wish) names the session; the caller goes on with that one, by
/// [`handle_resume`](Self::handle_resume), or says by [`refuse`](Self::refuse) that there is none.
///
/// A binary message may be handed over in pieces, as it arrives. Replies are made when they are
/// polled, from the figures as they then are.
///
/// ```
/// use std::time::Duration;
/// use linerate_logview::session::{Limits, Session, SessionId};
///
/// let line = b"192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] \"GET / HTTP/1.1\" 200 654\n";
/// let now = Duration::ZERO;
/// let id = SessionId::from_bytes([7; 16]); // From a generator that nobody can predict.
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
    state: State,
    wish: Option<Wish>,
    /// When the last message came.
    last_input: Duration,
    due: Due,
}

#[derive(Debug)]
enum State {
    AwaitingStart,
    /// Boxed, since it is all of the session that is large.
    Started(Box<Upload>),
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
    questions: Questions,
}

impl Session {
    /// Creates a session whose client has to send `start` within the time of silence.
    pub fn new(limits: Limits, id: SessionId, now: Duration) -> Self {
        Self {
            limits,
            id,
            state: State::AwaitingStart,
            wish: None,
            last_input: now,
            due: Due::default(),
        }
    }

    /// Takes a text message. After the end of the session it is ignored.
    pub fn handle_text(&mut self, text: &str, now: Duration) {
        self.last_input = now;
        if !self.is_over()
            && let Err(error) = self.try_handle_text(text, now)
        {
            self.fail(error);
        }
    }

    /// Takes a binary message or a piece of one, and says whether the message ends with it.
    ///
    /// After the end of the session it is ignored.
    pub fn handle_chunk(&mut self, bytes: &[u8], message_ends: bool, now: Duration) {
        self.handle_some(bytes, message_ends, usize::MAX, now);
    }

    /// Does what [`handle_chunk`](Self::handle_chunk) does, but stops in the middle of the bytes after about `work_max`
    /// bytes of work: those that they decompress to, which may be thousands of times as many.
    ///
    /// While the result is not done, the caller hands over the rest of the bytes again, even if that is empty.
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

    /// Goes on over a new connection: tells its client how many bytes came, and the figures.
    ///
    /// Of what the last connection brought nothing counts but what was handed over.
    pub fn handle_resume(&mut self, now: Duration) {
        self.last_input = now;
        let State::Started(upload) = &mut self.state else {
            return;
        };
        upload.acked = upload.bytes();
        let is_worth_showing = upload.is_complete() || upload.bytes() > 0;
        self.due = Due {
            ready: true,
            snapshot: is_worth_showing.then_some(now),
            ..Due::default()
        };
    }

    /// Ends the session with an error, because a wish of the client can't be met.
    pub fn refuse(&mut self, error: SessionError) {
        if !self.is_over() {
            self.fail(error);
        }
    }

    /// Returns what the client wants that the caller has to look for.
    pub fn take_wish(&mut self) -> Option<Wish> {
        self.wish.take()
    }

    /// Returns the next reply that is due, a text message; `None` for now if there is none.
    pub fn poll_reply(&mut self, now: Duration) -> Option<String> {
        let upload = match &mut self.state {
            State::AwaitingStart => return None,
            State::Started(upload) => upload,
            State::Ended(_, last) => return last.take(),
        };
        if std::mem::take(&mut self.due.ready) {
            let ready = Reply::Ready {
                id: self.id.to_string(),
                window_bytes: self.limits.window_bytes,
                bytes: upload.bytes(),
            };
            return Some(ready.to_json());
        }
        if std::mem::take(&mut self.due.ack) {
            upload.acked = upload.bytes();
            let bytes = upload.bytes();
            return Some(Reply::Ack { bytes }.to_json());
        }
        if let Some(answer) = self.due.questions.poll_answer(upload.log()) {
            return Some(answer);
        }
        self.due.snapshot.take_if(|due| *due <= now)?;
        upload.snapshots = Some((upload.snapshots.map_or(now, |(first, _)| first), now));
        let snapshot = Reply::Snapshot {
            is_final: upload.is_complete(),
            summary: Box::new(upload.summary()),
        };
        Some(snapshot.to_json())
    }

    /// Returns when to poll for a reply again, or to call [`handle_timeout`](Self::handle_timeout),
    /// if no input comes before; `None` once the session is over.
    pub fn poll_timeout(&self) -> Option<Duration> {
        if self.is_over() {
            return None;
        }
        let patience_ends = self.patience_ends();
        let snapshot = self.due.snapshot.unwrap_or(patience_ends);
        Some(snapshot.min(patience_ends))
    }

    /// Says whether the session is over and its last reply was polled.
    pub fn is_finished(&self) -> bool {
        matches!(self.state, State::Ended(_, None))
    }

    /// Returns the name by which a client comes back to the session.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Says whether the session takes or keeps files, so that there is something to resume.
    pub fn has_files(&self) -> bool {
        matches!(self.state, State::Started(_))
    }

    /// Returns how many bytes of heap the session holds, within a few KiB.
    pub fn memory_bytes(&self) -> usize {
        match &self.state {
            State::Started(upload) => upload.memory_bytes(),
            State::AwaitingStart | State::Ended(..) => 0,
        }
    }

    /// Returns how many bytes of heap more than [`memory_bytes`](Self::memory_bytes) it may take to do `work` bytes of
    /// [work](Self::handle_some), those included that are only held while lists grow.
    ///
    /// A caller that has a budget sets so many aside before.
    pub fn growth_bytes_max(&self, work: usize) -> usize {
        match &self.state {
            State::Started(upload) => upload.growth_bytes_max(work, &self.limits),
            State::AwaitingStart | State::Ended(..) => 0,
        }
    }

    /// Returns how many bytes of heap it may take to make up the replies that are due after input, and the one to a text
    /// message if that is given.
    pub fn reply_bytes_max(&self, text: Option<&str>) -> usize {
        match text.map(|text| Request::parse(text, &self.limits)) {
            Some(Ok(Request::Query { .. } | Request::Rows(_))) => ANSWER_WORK_BYTES,
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
        match Request::parse(text, &self.limits)? {
            Request::Cancel => {
                self.end(Outcome::Cancelled, None);
                Ok(())
            }
            Request::Finish => self.finish(now),
            Request::Follow { name } => self.wish(Wish::Follow(name)),
            Request::Query { seq, query } => self.ask(Question::Figures { seq, query }),
            Request::Rows(wanted) => self.ask(Question::Rows(wanted)),
            Request::Resume { id } => {
                let id = SessionId::parse(&id).ok_or(SessionError::UnknownSession)?;
                self.wish(Wish::Resume(id))
            }
            Request::Start(start) => self.start(start),
        }
    }

    fn expect_beginning(&self) -> Result<(), SessionError> {
        match (&self.state, &self.wish) {
            (State::AwaitingStart, None) => Ok(()),
            _ => Err(SessionError::SecondStart),
        }
    }

    fn wish(&mut self, wish: Wish) -> Result<(), SessionError> {
        self.expect_beginning()?;
        self.wish = Some(wish);
        Ok(())
    }

    fn start(&mut self, start: message::Start) -> Result<(), SessionError> {
        self.expect_beginning()?;
        self.state = State::Started(Box::new(Upload::new(start, &self.limits)?));
        self.due.ready = true;
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

    /// Ends the upload. If that was done before, the last figures are said again: the client may
    /// not have heard them.
    fn finish(&mut self, now: Duration) -> Result<(), SessionError> {
        let State::Started(upload) = &mut self.state else {
            return Err(SessionError::NotStarted);
        };
        upload.finish(&self.limits)?;
        self.due.snapshot = Some(now);
        Ok(())
    }

    fn ask(&mut self, question: Question) -> Result<(), SessionError> {
        match self.state {
            State::Started(_) => self.due.questions.push(question),
            State::AwaitingStart | State::Ended(..) => Err(SessionError::NotStarted),
        }
    }

    fn fail(&mut self, error: SessionError) {
        let reply = Reply::of_error(&error);
        self.end(Outcome::Failed(error), Some(reply));
    }

    /// Ends the session and frees the figures.
    fn end(&mut self, outcome: Outcome, last_reply: Option<String>) {
        self.due = Due::default();
        self.wish = None;
        self.state = State::Ended(outcome, last_reply);
    }

    fn is_over(&self) -> bool {
        matches!(self.state, State::Ended(..))
    }

    /// Returns until when the client has to be heard of.
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
}
