//! The conversation between a connection and its session, which runs on another thread.

use std::{
    future::{Future, pending},
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use linerate::{CloseCode, Error, MessageKind, Reader, Receiver, Sender};
use linerate_logview::session::{Lookup, SessionError, Uploads, files_message};
use tokio::{
    task::JoinError,
    time::{Instant, sleep, sleep_until, timeout},
};

use crate::{
    access::{
        Admission, CLOSED, KEY_TEXT_BYTES_MAX, KEY_WITHIN, Visitor, WRONG_KEY_DELAY, refusal_of_key,
    },
    farewell::{BUSY_VIEWERS, Farewell, refusal_of_place},
    hosted::SharedSession,
    lane::{Completion, Input, Lane, ROOM_INTERVAL, ROOM_WITHIN},
    sessions::{MemoryShortage, SessionGuard, SessionSignals, Sessions, ViewRefusal},
    viewer_conversation::{Source, ViewerConversation},
};

type RunningTurn = Pin<Box<dyn Future<Output = Result<Completion, JoinError>> + Send>>;

/// How a conversation ended.
#[derive(Debug)]
pub(crate) enum End {
    /// The connection was lost; the client may return.
    Lost(Error),
    /// The conversation is finished.
    Over(Farewell),
    /// The client has closed its page, and may return.
    Away,
    /// Other sessions need the memory of this one.
    GaveWay,
    /// The client has resumed the session on another connection.
    Taken,
    /// The client wants to view a file that the server follows, or another upload.
    View(Source),
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        Self::Lost(error)
    }
}

/// How long a small amount of input waits for more, so that both are parsed together.
const GATHER_MAX: Duration = Duration::from_millis(5);
/// Timeout for telling a client that its session is over, because the client may not be reading.
const LAST_WORDS_WITHIN: Duration = Duration::from_secs(1);

/// Receives input for a session, and sends the session's replies.
///
/// Input goes to the session through a lane. While the lane is full, nothing is received, so that
/// TCP slows the client down.
pub(crate) struct Conversation<'a> {
    sessions: &'a Arc<Sessions>,
    sender: &'a Sender,
    visitor: Visitor<'a>,
    calls: Arc<SessionSignals>,
    seat: Option<SessionGuard>,
    /// The session, unless it is running.
    shared: Option<Arc<SharedSession>>,
    /// True if the session receives or holds files.
    has_files: bool,
    running: Option<RunningTurn>,
    lane: Arc<Lane>,
    /// The latest time at which the session must run, on its clock.
    due: Duration,
}

impl<'a> Conversation<'a> {
    pub(crate) fn new(
        sessions: &'a Arc<Sessions>,
        sender: &'a Sender,
        visitor: Visitor<'a>,
    ) -> Self {
        let shared = sessions.session();
        let due = shared.lock().session.poll_timeout();
        Self {
            sessions,
            sender,
            visitor,
            calls: Arc::default(),
            seat: None,
            due: due.unwrap_or_default(),
            lane: Arc::new(Lane::new(sessions, shared.held().clone())),
            shared: Some(shared),
            has_files: false,
            running: None,
        }
    }

    /// Runs the conversation until it ends, and keeps the session if the client may return.
    pub(crate) async fn talk(mut self, receiver: &mut Receiver) -> linerate::Result<Farewell> {
        let calls = self.calls.clone();
        let end = tokio::select! {
            biased;
            () = calls.to_give_way() => End::GaveWay,
            heard = self.hear(receiver) => match heard {
                Ok(never) => match never {},
                Err(end) => end,
            },
        };
        self.lane.abandon();
        match end {
            End::View(source) => {
                let (sessions, sender) = (self.sessions, self.sender);
                drop(self);
                ViewerConversation::new(sessions, sender, source)
                    .talk(receiver)
                    .await
            }
            End::GaveWay => {
                let (sender, error) = (self.sender, self.sessions.gave_way(&calls));
                // Free the memory before telling the client, because the client may not be reading.
                drop(self);
                _ = timeout(LAST_WORDS_WITHIN, sender.send(error.to_json())).await;
                Ok(Farewell::of_error(&error))
            }
            End::Over(farewell) => Ok(farewell),
            End::Away => {
                self.keep().await;
                Ok(Farewell::DONE)
            }
            End::Taken => {
                self.keep().await;
                Ok(Farewell::TAKEN)
            }
            End::Lost(error) => {
                self.keep().await;
                Err(error)
            }
        }
    }

    async fn hear(&mut self, receiver: &mut Receiver) -> Result<std::convert::Infallible, End> {
        self.let_in(receiver).await?;
        let files = self.sessions.tails.names();
        let offer = self.sessions.offer();
        self.send_offer(&files, offer).await?;
        loop {
            let Some(reader) = self.while_working(receiver.reader()).await?? else {
                return Err(end_of(receiver.closed().map(|closed| closed.code)));
            };
            match reader.kind() {
                MessageKind::Binary => self.hear_log(reader).await?,
                MessageKind::Text => self.hear_control(reader).await?,
            }
        }
    }

    /// Asks the client for the key if one is required.
    async fn let_in(&mut self, receiver: &mut Receiver) -> Result<(), End> {
        match self.visitor.admission() {
            Admission::Open => return Ok(()),
            Admission::Closed => {
                self.send_offer(&[], Uploads::Closed).await?;
                self.sender.send(CLOSED).await?;
                return Err(End::Over(Farewell::CLOSED));
            }
            Admission::Key => {}
        }
        self.send_offer(&[], Uploads::Key).await?;
        let shown = timeout(KEY_WITHIN, hear_key(receiver)).await;
        let Some(text) = shown.unwrap_or(Ok(Some(String::new())))? else {
            return Err(End::Over(Farewell::DONE));
        };
        let Err(why) = self.visitor.check_message(&text) else {
            return Ok(());
        };
        sleep(WRONG_KEY_DELAY).await;
        let (error, farewell) = refusal_of_key(why);
        self.sender.send(error).await?;
        Err(End::Over(farewell))
    }

    async fn send_offer(&mut self, files: &[String], uploads: Uploads) -> linerate::Result<()> {
        let offer = files_message(files, uploads, self.sessions.keep_time());
        self.sender.send(offer).await
    }

    /// Receives a binary message and passes its pieces on as they arrive.
    async fn hear_log(&mut self, mut reader: Reader<'_>) -> Result<(), End> {
        while let Some(piece) = self.while_working(reader.chunk()).await?? {
            self.bring(Input::piece(piece)).await?;
        }
        self.bring(Input::End).await
    }

    /// Receives a text message. Of one that is too long, only enough is read for the session to
    /// refuse it.
    async fn hear_control(&mut self, mut reader: Reader<'_>) -> Result<(), End> {
        let mut text = String::new();
        while text.len() <= self.sessions.limits.text_bytes_max {
            let Some(piece) = self.while_working(reader.chunk()).await?? else {
                break;
            };
            text.push_str(piece.as_text().unwrap_or_default());
        }
        self.bring(Input::Text(text)).await
    }

    /// Passes input to the session, once there is room on the lane and enough memory.
    async fn bring(&mut self, input: Input) -> Result<(), End> {
        while !self.lane.has_room() {
            tokio::select! {
                biased;
                done = done(&mut self.running) => self.handle_done(done).await?,
                () = self.lane.news() => self.send_replies().await?,
            }
        }
        let until = Instant::now() + ROOM_WITHIN;
        while let Err(lack) = self.lane.reserve(&input, self.sessions) {
            if lack == MemoryShortage::Refused || Instant::now() >= until {
                return Err(self.end_without_memory().await?);
            }
            self.while_working(sleep(ROOM_INTERVAL)).await?;
        }
        self.lane.push(input);
        if self.running.is_none() {
            self.due = self.due.min(self.sessions.now() + GATHER_MAX);
            if self.lane.is_worthwhile() {
                self.begin();
            }
        }
        Ok(())
    }

    /// Waits for `input`. Meanwhile, runs the session when it is due and sends its replies.
    async fn while_working<T>(&mut self, input: impl Future<Output = T>) -> Result<T, End> {
        let mut input = pin!(input);
        loop {
            let due = self.sessions.moment(self.due);
            let is_free = self.running.is_none();
            tokio::select! {
                biased;
                done = done(&mut self.running) => self.handle_done(done).await?,
                () = self.lane.news() => self.send_replies().await?,
                () = self.calls.to_leave() => return Err(End::Taken),
                input = &mut input => return Ok(input),
                () = sleep_until(due), if is_free => self.begin(),
            }
        }
    }

    /// Starts running the session, unless it is already running.
    fn begin(&mut self) {
        if let Some(shared) = self.shared.take() {
            let run = self.lane.clone().run(shared, self.sessions.clone());
            self.running = Some(Box::pin(run));
        }
    }

    async fn send_replies(&mut self) -> Result<(), End> {
        let replies = self.lane.take_replies();
        self.send_all(replies).await
    }

    async fn send_all(&mut self, replies: Vec<String>) -> Result<(), End> {
        for reply in replies {
            self.sender.send(&*reply).await?;
            self.lane.release(&reply);
        }
        Ok(())
    }

    /// Tells the client that there is not enough memory for its input; returns the end of the
    /// conversation.
    async fn end_without_memory(&mut self) -> Result<End, End> {
        let error = self.sessions.no_memory();
        tracing::debug!(%error, "upload refused");
        self.sender.send(error.to_json()).await?;
        Ok(End::Over(Farewell::of_error(&error)))
    }

    async fn handle_done(&mut self, done: Result<Completion, JoinError>) -> Result<(), End> {
        self.running = None;
        let Completion {
            mut shared,
            replies,
            lookup,
            has_files,
            due,
            end,
        } = done.map_err(|error| {
            tracing::error!(%error, "session failed");
            End::Over(Farewell::FAILED)
        })?;
        (self.has_files, self.due) = (has_files, due);
        if self.seat.is_none() && has_files {
            let (address, calls) = (self.visitor.address, self.calls.clone());
            match self.sessions.admit(&shared, address, calls) {
                Ok(seat) => self.seat = Some(seat),
                Err(why) => {
                    let (error, farewell) = refusal_of_place(why);
                    self.sender.send(error).await?;
                    return Err(End::Over(farewell));
                }
            }
        }
        let has_wish = lookup.is_some();
        if let Some(lookup) = lookup {
            shared = self.grant(lookup, shared).await?;
        }
        // From here on, the session is kept if sending fails because the connection is lost.
        self.shared = Some(shared);
        self.send_replies().await?;
        self.send_all(replies).await?;
        if let Some(farewell) = end {
            return Err(End::Over(farewell));
        }
        if has_wish || !self.lane.is_empty() {
            self.begin();
        }
        Ok(())
    }

    /// Returns the session that the client wants to resume, or its own session with an error to
    /// send.
    async fn grant(
        &mut self,
        lookup: Lookup,
        shared: Arc<SharedSession>,
    ) -> Result<Arc<SharedSession>, End> {
        let error = match lookup {
            Lookup::Follow(name) => match self.sessions.tails.find(&name) {
                Some(tail) => return Err(End::View(Source::Tail(tail))),
                None => SessionError::UnknownFile,
            },
            Lookup::Resume(id) => match self.sessions.resume(id, self.calls.clone()).await {
                Some((resumed, seat)) => {
                    self.lane.resume(resumed.held());
                    self.seat = Some(seat);
                    self.has_files = true;
                    return Ok(resumed);
                }
                None => SessionError::UnknownSession,
            },
            Lookup::View(name) => match self.sessions.view(name) {
                Ok(guard) => return Err(End::View(Source::Upload(guard))),
                Err(ViewRefusal::Busy) => {
                    self.sender.send(BUSY_VIEWERS).await?;
                    return Err(End::Over(Farewell::BUSY_VIEWERS));
                }
                Err(ViewRefusal::Unknown) => SessionError::UnknownSession,
            },
            _ => SessionError::UnknownMessage,
        };
        // No other thread can know this session, because it has no files.
        shared.lock().session.refuse(error);
        Ok(shared)
    }

    /// Keeps the session for a client that may return, if the session has files.
    async fn keep(mut self) {
        if let Some(running) = self.running.take()
            && let Ok(done) = running.await
        {
            (self.shared, self.has_files) = (Some(done.shared), done.has_files);
        }
        if let (Some(seat), Some(shared), true) =
            (self.seat.take(), self.shared.take(), self.has_files)
        {
            self.sessions.keep(seat, shared);
        }
    }
}

/// Returns how a conversation ends when the client closes the connection with this code. A browser
/// closes it with 1001 when the page is left or loaded again.
fn end_of(code: Option<u16>) -> End {
    match code {
        Some(code) if CloseCode::NORMAL.as_u16() == code => {
            tracing::debug!("upload ended by the client's Close frame");
            End::Over(Farewell::DONE)
        }
        _ => End::Away,
    }
}

/// Receives the message with the key. Returns an empty text, which is refused, if the message is
/// too long, and `None` if the client closes the connection.
async fn hear_key(receiver: &mut Receiver) -> linerate::Result<Option<String>> {
    let Some(mut reader) = receiver.reader().await? else {
        return Ok(None);
    };
    let mut text = String::new();
    while text.len() <= KEY_TEXT_BYTES_MAX {
        let Some(piece) = reader.chunk().await? else {
            return Ok(Some(text));
        };
        text.push_str(piece.as_text().unwrap_or_default());
    }
    Ok(Some(String::new()))
}

/// Waits until the session has finished running; waits forever if it is not running.
async fn done(running: &mut Option<RunningTurn>) -> Result<Completion, JoinError> {
    match running {
        Some(running) => running.await,
        None => pending().await,
    }
}
