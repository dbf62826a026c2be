//! Runs a session: input, work, events, deadlines and flow control, until it ends.

use std::{future::Future, pin::pin, sync::Arc};

use bytes::Bytes;
use futures_util::{StreamExt, stream::FuturesOrdered};
use linerate::{Message, Receiver};
use linerate_budget::Registration;
use tokio::sync::oneshot;

use super::ClientOutlet;
use crate::{
    clock::now,
    node::{Emulation, Worker},
    protocol::{codes::Disconnect, dialect::Commands},
    server::ConnectionGuard,
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
    Bytes(Bytes),
    Message(Message),
}

/// Command frames for a client whose stream is one-way: they arrive in separate requests.
#[derive(Debug)]
pub(crate) struct StreamInput {
    pub(crate) emulation: Emulation,
    /// Completes once the stream is dropped.
    pub(crate) gone: oneshot::Receiver<()>,
}

/// What a session runs on.
#[derive(Debug)]
pub(crate) struct SessionRuntime {
    pub(crate) worker: Arc<Worker>,
    pub(crate) outlet: Arc<ClientOutlet>,
    pub(crate) commands: &'static Commands,
    /// Registers the session with the memory budget until the worker has registered the client.
    pub(crate) registration: Option<Registration>,
    /// The connection's reservation.
    pub(crate) _guard: Option<ConnectionGuard>,
}

enum Step {
    Changed,
    Completed(Completion),
    Input(Option<CommandFrame>),
    Room(bool),
    Timeout,
}

impl SessionRuntime {
    /// Runs a session until it ends or the client disconnects.
    pub(crate) async fn run(mut self, mut session: Box<Session>, mut input: impl Input) {
        // `None` while nothing is outstanding, which is nearly always.
        let mut works: Option<FuturesOrdered<Work>> = None;
        let mut is_released = false;
        let mut sleep = pin!(tokio::time::sleep(std::time::Duration::ZERO));
        loop {
            self.send(&mut session);
            // Do not start new commands for a client that is slow to read its replies:
            // resubscribing to many channels would otherwise produce more replies than may be
            // queued.
            let may_answer = !self.outlet.has_waiting();
            while may_answer && let Some(work) = session.poll_work(now()) {
                works.get_or_insert_default().push_back(work);
            }
            self.send(&mut session);
            if let Some(disconnect) = session.ended() {
                return self.outlet.close(disconnect);
            }
            if let (false, Some(client)) = (is_released, session.client()) {
                is_released = true;
                self.registration = None;
                self.outlet.release();
                self.worker.writable(client);
            }
            let deadline = session.poll_timeout();
            if let Some(deadline) = deadline
                && sleep.deadline().into_std() != deadline
            {
                sleep.as_mut().reset(deadline.into());
            }
            let step = tokio::select! {
                // The order is fixed, so that a simulation can repeat it. Input comes last, because
                // only a client can keep it ready.
                biased;
                () = self.outlet.changed() => Step::Changed,
                () = sleep.as_mut(), if deadline.is_some() => Step::Timeout,
                Some(completion) = next(&mut works), if works.is_some() && !self.outlet.has_waiting() => {
                    Step::Completed(completion)
                }
                has_room = self.outlet.room(), if self.outlet.is_full() => Step::Room(has_room),
                frame = input.next(), if session.wants_input() => Step::Input(frame),
            };
            if self.take(&mut session, step).is_none() {
                return;
            }
        }
    }

    /// Passes an event to the session. Returns `None` if the client has disconnected.
    fn take(&self, session: &mut Session, step: Step) -> Option<()> {
        match step {
            Step::Changed => {
                for event in self.outlet.take_events() {
                    session.handle_event(now(), event);
                }
            }
            Step::Completed(completion) => session.handle_completion(now(), completion),
            Step::Input(frame) => session.handle_frame(now(), frame?.as_bytes()),
            Step::Room(has_room) => {
                if let (true, Some(client)) = (has_room, session.client()) {
                    self.worker.writable(client);
                }
            }
            Step::Timeout => session.handle_timeout(now()),
        }
        Some(())
    }

    /// Sends the pending output of a session.
    fn send(&self, session: &mut Session) {
        let messages = session.take_output();
        if messages.is_empty() {
            return;
        }
        let mut bytes = Vec::new();
        match self.commands.encode(&messages, &mut bytes) {
            Ok(()) => self.outlet.send(bytes.into()),
            Err(_) => session.end(Disconnect::INAPPROPRIATE_PROTOCOL),
        }
    }
}

impl CommandFrame {
    fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Message(message) => message.as_bytes(),
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
            bytes = self.emulation.recv() => bytes.map(CommandFrame::Bytes),
            _ = &mut self.gone => None,
        }
    }
}

/// Waits for the oldest operation, if there is one, and drops the queue with the last of them.
/// Cancel-safe.
async fn next(works: &mut Option<FuturesOrdered<Work>>) -> Option<Completion> {
    let completion = works.as_mut()?.next().await;
    if works.as_ref().is_some_and(FuturesOrdered::is_empty) {
        *works = None;
    }
    completion
}
