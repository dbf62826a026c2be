//! A connection that views a log which the server follows, or the upload of another connection.

use std::{
    fmt,
    future::{Future, pending, ready},
    iter,
    pin::{Pin, pin},
    sync::{Arc, Weak},
};

use linerate::{Error, MessageKind, Reader, Receiver, Sender};
use linerate_logview::session::{SessionError, SessionId, Viewed, Viewer};
use tokio::{
    sync::watch,
    task::JoinError,
    time::{Instant, sleep_until},
};

use crate::{
    farewell::Farewell,
    hosted::SharedSession,
    memory::{Share, UploadBytes},
    parsing,
    sessions::{Sessions, ViewGuard},
    tails::Tail,
};

/// The log that a connection views.
pub(crate) enum Source {
    Tail(Arc<Tail>),
    Upload(ViewGuard),
}

/// The same on a parser thread. An upload does not outlive its end because it is viewed.
enum SourceHandle {
    Tail(Arc<Tail>),
    Upload(Weak<SharedSession>),
}

/// How a conversation ended.
enum End {
    Lost(Error),
    Over(Farewell),
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        Self::Lost(error)
    }
}

/// The viewer after it has run, with its replies and their memory.
struct Completion {
    viewer: Viewer,
    snapshots: watch::Receiver<Arc<str>>,
    replies: Vec<String>,
    share: Share,
}

type RunningTurn = Pin<Box<dyn Future<Output = Result<Completion, JoinError>> + Send>>;

/// Sends snapshots as they are published, and answers queries.
///
/// Answers take a while to compute, so this is done on the parser threads. The memory of a viewer
/// is charged to the upload that it views.
pub(crate) struct ViewerConversation<'a> {
    sessions: &'a Arc<Sessions>,
    sender: &'a Sender,
    source: Source,
    /// Closed when the upload has ended.
    snapshots: watch::Receiver<Arc<str>>,
    /// The viewer, unless it is running.
    viewer: Option<Viewer>,
    running: Option<RunningTurn>,
    /// The memory of the viewer and of its replies, unless it is running.
    share: Option<Share>,
    /// When the client last asked a question.
    asked: Instant,
}

impl<'a> ViewerConversation<'a> {
    pub(crate) fn new(sessions: &'a Arc<Sessions>, sender: &'a Sender, source: Source) -> Self {
        let (snapshots, held) = match &source {
            Source::Tail(tail) => {
                let mut snapshots = tail.snapshots();
                snapshots.mark_changed();
                (snapshots, UploadBytes::default())
            }
            Source::Upload(guard) => (guard.snapshots.clone(), guard.held.clone()),
        };
        let id = SessionId::from_bytes(rand::random());
        Self {
            sessions,
            sender,
            source,
            snapshots,
            viewer: Some(Viewer::new(sessions.limits.clone(), id)),
            running: None,
            share: Some(sessions.share(held)),
            asked: Instant::now(),
        }
    }

    /// Runs the conversation until it ends.
    pub(crate) async fn talk(mut self, receiver: &mut Receiver) -> linerate::Result<Farewell> {
        match self.hear(receiver).await {
            Ok(never) => match never {},
            Err(End::Over(farewell)) => Ok(farewell),
            Err(End::Lost(error)) => Err(error),
        }
    }

    async fn hear(&mut self, receiver: &mut Receiver) -> Result<std::convert::Infallible, End> {
        self.begin();
        loop {
            let Some(reader) = self.while_showing(receiver.reader()).await?? else {
                return Err(End::Over(Farewell::DONE));
            };
            match reader.kind() {
                MessageKind::Binary => self.viewer().await?.handle_binary(),
                MessageKind::Text => {
                    let text = self.receive_text(reader).await?;
                    self.viewer().await?.handle_text(&text);
                }
            }
            self.asked = Instant::now();
            self.begin();
        }
    }

    /// Receives a text message. Of one that is too long, only enough is read for it to be refused.
    async fn receive_text(&mut self, mut reader: Reader<'_>) -> Result<String, End> {
        let mut text = String::new();
        while text.len() <= self.sessions.limits.text_bytes_max {
            let Some(piece) = self.while_showing(reader.chunk()).await?? else {
                break;
            };
            text.push_str(piece.as_text().unwrap_or_default());
        }
        Ok(text)
    }

    /// Returns the viewer once it is not running.
    async fn viewer(&mut self) -> Result<&mut Viewer, End> {
        if self.running.is_some() {
            let done = done(&mut self.running).await;
            self.handle_done(done).await?;
        }
        // It is either running or here.
        self.viewer.as_mut().ok_or(End::Over(Farewell::FAILED))
    }

    /// Waits for `input`. Meanwhile, sends new snapshots and the answers to questions.
    async fn while_showing<T>(&mut self, input: impl Future<Output = T>) -> Result<T, End> {
        let mut input = pin!(input);
        loop {
            let is_free = self.running.is_none();
            let idle = self.idle_ends();
            tokio::select! {
                biased;
                done = done(&mut self.running) => self.handle_done(done).await?,
                input = &mut input => return Ok(input),
                changed = self.snapshots.changed(), if is_free => {
                    if changed.is_err() {
                        return Err(self.refuse(&SessionError::UnknownSession).await?);
                    }
                    let snapshot = self.snapshots.borrow_and_update().clone();
                    if !snapshot.is_empty() {
                        self.send(&snapshot).await?;
                    }
                }
                () = ready(()), if self.has_questions() => self.begin(),
                () = wait(idle), if is_free => {
                    let idle_max = self.sessions.limits.idle_max;
                    return Err(self.refuse(&SessionError::Idle { idle_max }).await?);
                }
            }
        }
    }

    fn has_questions(&self) -> bool {
        self.viewer.as_ref().is_some_and(Viewer::has_questions)
    }

    /// Returns when a client that asks nothing has to leave an upload; never for a followed log.
    fn idle_ends(&self) -> Option<Instant> {
        let is_upload = matches!(self.source, Source::Upload(_));
        is_upload.then(|| self.asked + self.sessions.limits.idle_max)
    }

    /// Starts to build the replies that are due, unless the viewer is running.
    fn begin(&mut self) {
        if let (Some(viewer), Some(share)) = (self.viewer.take(), self.share.take()) {
            let source = match &self.source {
                Source::Tail(tail) => SourceHandle::Tail(tail.clone()),
                Source::Upload(guard) => SourceHandle::Upload(guard.shared.clone()),
            };
            let (sessions, snapshots) = (self.sessions.clone(), self.snapshots.clone());
            self.running = Some(Box::pin(run(sessions, source, viewer, snapshots, share)));
        }
    }

    async fn handle_done(&mut self, done: Result<Completion, JoinError>) -> Result<(), End> {
        self.running = None;
        let Completion {
            viewer,
            snapshots,
            replies,
            mut share,
        } = done.map_err(|error| {
            tracing::error!(%error, "viewer failed");
            End::Over(Farewell::FAILED)
        })?;
        let end = viewer.outcome();
        let end = end.map(|outcome| Farewell::of_outcome(Some(outcome)));
        let held_bytes = viewer.memory_bytes() as u64;
        (self.viewer, self.snapshots) = (Some(viewer), snapshots);
        for reply in replies {
            self.send(&reply).await?;
        }
        share.set(held_bytes);
        self.share = Some(share);
        end.map_or(Ok(()), |farewell| Err(End::Over(farewell)))
    }

    /// Sends a message, unless the upload ends before the client has room for it.
    async fn send(&mut self, message: &str) -> Result<(), End> {
        let mut snapshots = self.snapshots.clone();
        let gone = async { while snapshots.changed().await.is_ok() {} };
        tokio::select! {
            biased;
            sent = self.sender.send(message) => Ok(sent?),
            () = gone => Err(End::Over(Farewell::of_error(&SessionError::UnknownSession))),
        }
    }

    /// Tells the client why its session is over; returns the end of the conversation.
    async fn refuse(&mut self, error: &SessionError) -> Result<End, End> {
        self.sender.send(error.to_json()).await?;
        Ok(End::Over(Farewell::of_error(error)))
    }
}

/// Builds the replies that are due on a parser thread, when it is the viewer's turn.
async fn run(
    sessions: Arc<Sessions>,
    source: SourceHandle,
    mut viewer: Viewer,
    mut snapshots: watch::Receiver<Arc<str>>,
    mut share: Share,
) -> Result<Completion, JoinError> {
    let turn = sessions.turn().await;
    let worked = parsing::spawn(turn, move || {
        if sessions
            .grow(&mut share, viewer.reply_bytes_max() as u64)
            .is_err()
        {
            viewer.refuse(sessions.no_memory());
        }
        let replies = source.replies(&mut viewer, &mut snapshots, &sessions);
        let bytes: usize = replies.iter().map(String::capacity).sum();
        share.set((bytes + viewer.memory_bytes()) as u64);
        Completion {
            viewer,
            snapshots,
            replies,
            share,
        }
    });
    worked.await
}

impl SourceHandle {
    fn replies(
        &self,
        viewer: &mut Viewer,
        snapshots: &mut watch::Receiver<Arc<str>>,
        sessions: &Sessions,
    ) -> Vec<String> {
        let now = sessions.now();
        match self {
            Self::Tail(tail) => {
                let log = tail.log();
                iter::from_fn(|| viewer.poll_reply(Viewed::Followed(&log), now)).collect()
            }
            Self::Upload(shared) => {
                let Some(shared) = shared.upgrade() else {
                    return viewer.poll_reply(Viewed::Gone, now).into_iter().collect();
                };
                let waiting = sessions.wait();
                let mut hosted = shared.lock();
                drop(waiting);
                if viewer.has_questions() {
                    hosted.session.handle_viewer(now);
                }
                if viewer.needs_snapshot() {
                    // The one that is built now is newer than what was published before.
                    snapshots.mark_unchanged();
                }
                let viewed = Viewed::Upload(&hosted.session);
                iter::from_fn(|| viewer.poll_reply(viewed, now)).collect()
            }
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tail(_) => "Tail",
            Self::Upload(_) => "Upload",
        })
    }
}

async fn wait(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => pending().await,
    }
}

/// Waits until the viewer has finished running; waits forever if it is not running.
async fn done(running: &mut Option<RunningTurn>) -> Result<Completion, JoinError> {
    match running {
        Some(running) => running.await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use linerate_budget::Budget;
    use linerate_logview::session::{SessionId, Viewer};

    use super::SourceHandle;
    use crate::{options::LogsOptions, sessions::Sessions};

    #[tokio::test]
    async fn snapshot_that_is_published_while_a_question_waits_is_still_sent() {
        let sessions = Sessions::new(&LogsOptions::default(), Budget::unbounded()).unwrap();
        let shared = sessions.session();
        let start = r#"{"type":"start","files":[{"name":"a","size":null}]}"#;
        shared.lock().session.handle_text(start, sessions.now());
        let _seat = sessions.admit(&shared, [192, 0, 2, 1].into(), Arc::default());
        let mut guard = sessions.view(shared.view).unwrap();
        let source = SourceHandle::Upload(guard.shared.clone());
        let mut viewer = Viewer::new(sessions.limits.clone(), SessionId::from_bytes([1; 16]));
        let publish = || {
            let snapshot = r#"{"type":"snapshot","final":true}"#.to_owned();
            shared.settle(&mut shared.lock(), &[snapshot]);
        };

        publish();
        let first = source.replies(&mut viewer, &mut guard.snapshots, &sessions);
        assert!(
            first.len() == 2 && first[1].contains("snapshot"),
            "{first:?}"
        );
        let is_new = guard.snapshots.has_changed().unwrap();
        assert!(!is_new, "the viewer has built a newer one");

        publish();
        viewer.handle_text(r#"{"type":"query","seq":1,"query":{}}"#);
        let answer = source.replies(&mut viewer, &mut guard.snapshots, &sessions);
        assert!(
            answer.len() == 1 && answer[0].contains("figures"),
            "{answer:?}"
        );
        assert!(guard.snapshots.has_changed().unwrap());
    }
}
