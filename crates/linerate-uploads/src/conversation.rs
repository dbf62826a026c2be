//! The conversation between a connection and its session, which runs on another thread.

use std::{
    future::{Future, pending},
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use linerate::{Error, MessageKind, Reader, Receiver, Sender};
use linerate_logview::session::{Lookup, SessionError, Uploads, files_message};
use tokio::{
    task::JoinError,
    time::{Instant, sleep, sleep_until, timeout},
};

use crate::{
    access::{
        Admission, CLOSED, KEY_TEXT_BYTES_MAX, KEY_WITHIN, Visitor, WRONG_KEY_DELAY, refusal_of_key,
    },
    farewell::{Farewell, refusal_of_place},
    lane::{Completion, Input, Lane, ROOM_INTERVAL, ROOM_WITHIN},
    sessions::{HostedSession, MemoryShortage, SessionGuard, SessionSignals, Sessions},
    tails::Tail,
    viewer_conversation::ViewerConversation,
};

type RunningTurn = Pin<Box<dyn Future<Output = Result<Completion, JoinError>> + Send>>;

/// How a conversation ended.
#[derive(Debug)]
pub(crate) enum End {
    /// The connection was lost; the client may return.
    Lost(Error),
    /// The conversation is finished.
    Over(Farewell),
    /// The client wants to view a file that the server follows.
    Follow(Arc<Tail>),
    /// Other sessions need the memory of this one.
    GaveWay,
    /// The client has resumed the session on another connection.
    Taken,
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
    hosted: Option<Box<HostedSession>>,
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
        let hosted = sessions.session();
        Self {
            sessions,
            sender,
            visitor,
            calls: Arc::default(),
            seat: None,
            due: hosted.session.poll_timeout().unwrap_or_default(),
            lane: Arc::new(Lane::new(sessions, hosted.held().clone())),
            hosted: Some(hosted),
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
            End::Follow(tail) => {
                ViewerConversation::new(self.sessions, self.sender, tail)
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
        let offer = files_message(&files, self.sessions.offer());
        self.sender.send(offer).await?;
        loop {
            let Some(reader) = self.while_working(receiver.reader()).await?? else {
                tracing::debug!("upload ended by the client's Close frame");
                return Err(End::Over(Farewell::DONE));
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
                self.sender
                    .send(files_message(&[], Uploads::Closed))
                    .await?;
                self.sender.send(CLOSED).await?;
                return Err(End::Over(Farewell::CLOSED));
            }
            Admission::Key => {}
        }
        self.sender.send(files_message(&[], Uploads::Key)).await?;
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
        if let Some(hosted) = self.hosted.take() {
            let run = self.lane.clone().run(hosted, self.sessions.clone());
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
            mut hosted,
            replies,
            lookup,
        } = done.map_err(|error| {
            tracing::error!(%error, "session failed");
            End::Over(Farewell::FAILED)
        })?;
        if self.seat.is_none() && hosted.session.has_files() {
            let (address, calls) = (self.visitor.address, self.calls.clone());
            match self.sessions.admit(&hosted, address, calls) {
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
            hosted = self.grant(lookup, hosted).await?;
        }
        let session = &hosted.session;
        let is_finished = session.is_finished();
        let last_words = is_finished.then(|| Farewell::of_outcome(session.outcome()));
        self.due = session.poll_timeout().unwrap_or_default();
        // From here on, the session is kept if sending fails because the connection is lost.
        self.hosted = Some(hosted);
        self.send_replies().await?;
        self.send_all(replies).await?;
        if let Some(farewell) = last_words {
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
        mut hosted: Box<HostedSession>,
    ) -> Result<Box<HostedSession>, End> {
        let error = match lookup {
            Lookup::Follow(name) => match self.sessions.tails.find(&name) {
                Some(tail) => return Err(End::Follow(tail)),
                None => SessionError::UnknownFile,
            },
            Lookup::Resume(id) => match self.sessions.resume(id, self.calls.clone()).await {
                Some((mut resumed, seat)) => {
                    self.lane.belong_to(resumed.held());
                    resumed.session.handle_resume(self.sessions.now());
                    self.seat = Some(seat);
                    return Ok(resumed);
                }
                None => SessionError::UnknownSession,
            },
            _ => SessionError::UnknownMessage,
        };
        hosted.session.refuse(error);
        Ok(hosted)
    }

    /// Keeps the session for a client that may return, if the session has files.
    async fn keep(mut self) {
        if let Some(running) = self.running.take()
            && let Ok(done) = running.await
        {
            self.hosted = Some(done.hosted);
        }
        if let (Some(seat), Some(hosted)) = (self.seat.take(), self.hosted.take())
            && hosted.session.has_files()
        {
            self.sessions.keep(seat, hosted);
        }
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
