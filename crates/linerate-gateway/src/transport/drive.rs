//! Runs a session: input, work, events, deadlines and flow control, until it ends.

use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures_util::{StreamExt, stream::FuturesOrdered};
use linerate::{Message, MessageKind, Receiver};
use linerate_hub::ClientId;
use tokio::sync::oneshot;

use super::{
    ClientOutlet,
    portable::{PortableClient, PortableConnection},
};
use crate::{
    clock::now,
    node::{Emulation, WaitingClient},
    protocol::{codes::Disconnect, decode::DecodeError},
    session::{Completion, Session, Work},
};

/// A source of command frames.
pub(crate) trait Input: Send {
    /// Waits for the next frame; returns `None` once the client has disconnected. Cancel-safe.
    fn next(&mut self) -> impl Future<Output = Option<CommandFrame>> + Send;
}

/// A frame of commands.
#[derive(Debug)]
pub(crate) enum CommandFrame {
    Binary(Bytes),
    Bytes(Bytes),
    /// The client has sent something else than a frame.
    Malformed(DecodeError),
    Message(Message),
    /// The client polls, which is a sign of life.
    Poll,
    /// A WebSocket continues the session from now on.
    Upgraded,
}

/// Command frames for a client whose stream is one-way: they arrive in separate requests.
#[derive(Debug)]
pub(crate) struct StreamInput {
    pub(crate) emulation: Emulation,
    /// Completes once the stream is dropped.
    pub(crate) gone: oneshot::Receiver<()>,
}

/// A session of a client that sends commands, with everything it needs to run.
#[derive(Debug)]
pub(crate) struct SessionRuntime {
    session: Session,
    outlet: Arc<ClientOutlet>,
    /// The outstanding operations; `None` while there are none, which is nearly always.
    works: Option<Box<FuturesOrdered<Work>>>,
    /// `None` once the worker has registered the client, and delivers to it.
    waiting: Option<WaitingClient>,
}

/// A session on the reactor whose stream is one-way: its commands arrive in separate requests.
pub(super) struct EmulatedRuntime {
    pub(super) runtime: Box<SessionRuntime>,
    pub(super) emulation: Emulation,
}

enum Step {
    Changed,
    Completed(Completion),
    Input(Option<CommandFrame>),
    Room(bool),
    Timeout,
}

impl SessionRuntime {
    /// Prepares a session that answers to `outlet`.
    pub(crate) fn new(session: Session, outlet: Arc<ClientOutlet>) -> Self {
        let waiting = session.worker().expect(&outlet);
        Self {
            session,
            outlet,
            works: None,
            waiting: Some(waiting),
        }
    }

    /// Continues a session of another process.
    pub(super) fn restored(session: Session, outlet: Arc<ClientOutlet>) -> Self {
        let client = session.client();
        let waiting = client.is_none().then(|| session.worker().expect(&outlet));
        let runtime = Self {
            waiting,
            session,
            outlet,
            works: None,
        };
        if let Some(client) = client {
            runtime.outlet.release();
            runtime.session.worker().writable(client);
        }
        runtime
    }

    /// Sets how long the client may be silent, if it is to send signs of life on its own. Call this
    /// before the session runs.
    pub(super) fn limit_silence(&mut self, timeout: Duration) {
        self.session.limit_silence(timeout);
    }

    /// Returns whether the session waits for nothing but its client.
    pub(super) fn is_settled(&self) -> bool {
        self.works.is_none() && self.session.is_settled() && self.outlet.is_quiet()
    }

    /// Returns the client's ID at the worker, once the client is connected.
    pub(super) const fn client(&self) -> Option<ClientId> {
        self.session.client()
    }

    /// Returns the output side of the client.
    pub(super) const fn outlet(&self) -> &Arc<ClientOutlet> {
        &self.outlet
    }

    /// Returns what another process needs to continue the session.
    pub(super) fn export(&self, now: Instant) -> PortableClient {
        PortableClient {
            connection: PortableConnection::of(self.session.connection()),
            wants_gaps: self.outlet.tells_gaps(),
            session: self.session.export(now),
        }
    }

    /// Notes that another process continues the session.
    pub(super) fn hand_over(&mut self) {
        self.session.forget_recovery();
    }

    /// Runs the session in a task until it ends or the client disconnects.
    ///
    /// Boxed, so that moving it into a task does not double the size of the task.
    pub(crate) async fn run(mut self: Box<Self>, mut input: impl Input) {
        let mut sleep = pin!(tokio::time::sleep(Duration::ZERO));
        loop {
            if let Some(disconnect) = self.advance() {
                return self.close(&disconnect);
            }
            let deadline = self.poll_timeout();
            if let Some(deadline) = deadline
                && sleep.deadline().into_std() != deadline
            {
                sleep.as_mut().reset(deadline.into());
            }
            let may_complete = self.works.is_some() && !self.outlet.has_waiting();
            let step = tokio::select! {
                // The order is fixed, so that a simulation can repeat it. Input comes last, because
                // only a client can keep it ready.
                biased;
                () = self.outlet.changed() => Step::Changed,
                () = sleep.as_mut(), if deadline.is_some() => Step::Timeout,
                Some(completion) = next(&mut self.works), if may_complete => {
                    Step::Completed(completion)
                }
                has_room = self.outlet.room(), if self.outlet.is_full() => Step::Room(has_room),
                frame = input.next(), if self.session.wants_input() => Step::Input(frame),
            };
            match step {
                Step::Changed => self.handle_events(),
                Step::Completed(completion) => self.session.handle_completion(now(), completion),
                Step::Input(Some(frame)) => self.handle_input(frame),
                Step::Input(None) => return,
                Step::Room(true) => self.resume(),
                Step::Room(false) => {}
                Step::Timeout => self.handle_timeout(now()),
            }
        }
    }

    /// Handles what has happened to the outlet and to the operations of the session. What `waker`
    /// returns is woken when an operation continues. For sessions without a task of their own.
    ///
    /// Returns the reason to disconnect the client, if it has to be disconnected.
    pub(super) fn handle_changed(&mut self, waker: impl Fn() -> Waker) -> Option<Disconnect> {
        self.handle_events();
        if self.outlet.is_full() && self.outlet.take_room() {
            self.resume();
        }
        loop {
            if let Some(disconnect) = self.advance() {
                return Some(disconnect);
            }
            if self.works.is_none() || self.outlet.has_waiting() {
                return None;
            }
            let waker = waker();
            match pin!(next(&mut self.works)).poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(Some(completion)) => self.session.handle_completion(now(), completion),
                Poll::Ready(None) | Poll::Pending => return None,
            }
        }
    }

    fn handle_input(&mut self, frame: CommandFrame) {
        match frame {
            CommandFrame::Binary(bytes) => self.handle_message(MessageKind::Binary, &bytes),
            CommandFrame::Bytes(bytes) => self.handle_frame(&bytes),
            CommandFrame::Malformed(error) => {
                self.end(Disconnect::BAD_REQUEST.with_reason(error.to_string()));
            }
            CommandFrame::Message(message) => {
                self.handle_message(message.kind(), message.as_bytes());
            }
            CommandFrame::Poll => self.session.note_sign_of_life(),
            CommandFrame::Upgraded => {
                let dialect = self.session.gate().dialect;
                self.session.set_transport(&dialect.name);
            }
        }
    }

    /// Handles a frame of commands. [`wants_input`](Self::wants_input) tells whether to wait with
    /// the next one.
    pub(super) fn handle_frame(&mut self, frame: &[u8]) {
        self.outlet.count_received(frame.len());
        self.session.handle_frame(now(), frame);
    }

    /// Handles a WebSocket message. [`wants_input`](Self::wants_input) tells whether to wait with
    /// the next one.
    pub(super) fn handle_message(&mut self, kind: MessageKind, payload: &[u8]) {
        match kind {
            MessageKind::Binary => {
                self.outlet.count_received(payload.len());
                self.session.handle_binary(now(), payload);
            }
            MessageKind::Text => self.handle_frame(payload),
        }
    }

    /// Handles all deadlines that have passed.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.session.handle_timeout(now);
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.session.poll_timeout()
    }

    /// Returns whether the session accepts another frame.
    pub(super) fn wants_input(&self) -> bool {
        self.session.wants_input()
    }

    /// Ends the session. Only the first call has an effect.
    pub(super) fn end(&mut self, disconnect: Disconnect) {
        self.session.end(disconnect);
    }

    /// Disconnects the client.
    pub(super) fn close(&self, disconnect: &Disconnect) {
        self.outlet.close(disconnect);
    }

    /// Starts what can begin and sends what is to be sent. Returns the reason to disconnect the
    /// client once the session has ended.
    fn advance(&mut self) -> Option<Disconnect> {
        self.send();
        // Do not start new commands for a client that is slow to read its replies: resubscribing to
        // many channels would otherwise produce more replies than may be queued.
        let may_answer = !self.outlet.has_waiting();
        while may_answer && let Some(work) = self.session.poll_work(now()) {
            self.works.get_or_insert_default().push_back(work);
        }
        self.send();
        if let Some(disconnect) = self.session.ended() {
            return Some(disconnect.clone());
        }
        if self.waiting.is_some()
            && let Some(client) = self.session.client()
        {
            self.waiting = None;
            self.outlet.release();
            self.session.worker().writable(client);
        }
        None
    }

    fn handle_events(&mut self) {
        for event in self.outlet.take_events() {
            self.session.handle_event(now(), event);
        }
    }

    /// Resumes delivery.
    fn resume(&self) {
        if let Some(client) = self.session.client() {
            self.session.worker().writable(client);
        }
    }

    /// Sends the pending output of the session.
    fn send(&mut self) {
        let messages = self.session.take_output();
        if messages.is_empty() {
            return;
        }
        let mut bytes = Vec::new();
        match self.session.commands().encode(&messages, &mut bytes) {
            Ok(()) => self.outlet.send(bytes.into()),
            Err(_) => self.session.end(Disconnect::INAPPROPRIATE_PROTOCOL),
        }
    }
}

impl EmulatedRuntime {
    /// Handles the commands that have arrived, and everything else that
    /// [`SessionRuntime::handle_changed`] handles. Returns the reason to disconnect the client, if
    /// it has to be disconnected.
    pub(super) fn handle_changed(&mut self, waker: impl Fn() -> Waker) -> Option<Disconnect> {
        loop {
            if let Some(disconnect) = self.runtime.handle_changed(&waker) {
                return Some(disconnect);
            }
            if !self.runtime.wants_input() {
                return None;
            }
            let waker = waker();
            let frame = self.emulation.poll_recv(&mut Context::from_waker(&waker));
            match frame {
                Poll::Ready(frame) => self.runtime.handle_frame(&frame),
                Poll::Pending => return None,
            }
        }
    }
}

impl Input for Receiver {
    async fn next(&mut self) -> Option<CommandFrame> {
        match self.recv().await {
            Ok(message) => message.map(CommandFrame::Message),
            Err(error) => {
                tracing::debug!(%error, "connection lost");
                None
            }
        }
    }
}

impl Input for StreamInput {
    async fn next(&mut self) -> Option<CommandFrame> {
        tokio::select! {
            bytes = self.emulation.recv() => Some(CommandFrame::Bytes(bytes)),
            _ = &mut self.gone => None,
        }
    }
}

/// Waits for the oldest operation, if there is one, and drops the queue with the last of them.
/// Cancel-safe.
async fn next(works: &mut Option<Box<FuturesOrdered<Work>>>) -> Option<Completion> {
    let completion = works.as_mut()?.next().await;
    if works.as_ref().is_some_and(|works| works.is_empty()) {
        *works = None;
    }
    completion
}
