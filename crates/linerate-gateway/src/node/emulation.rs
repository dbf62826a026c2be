//! Commands of clients that receive replies on a streaming HTTP response and send commands in
//! separate requests.
//!
//! A command names its node and session, so any node can accept it. Sticky sessions are not needed.

use std::{
    collections::VecDeque,
    future::poll_fn,
    mem,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use parking_lot::Mutex;

/// The maximum number of command bodies queued for a session.
const COMMANDS_MAX: usize = 64;

/// The sessions of this node whose commands arrive in separate requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Emulations(Arc<Mutex<Sessions>>);

type Sessions = HashMap<String, Arc<Mutex<Queue>>, RandomState>;

/// The receiver of a session's commands, for the lifetime of the session.
#[derive(Debug)]
pub(crate) struct Emulation {
    emulations: Emulations,
    session: String,
    queue: Arc<Mutex<Queue>>,
}

/// The commands that wait for a session.
#[derive(Debug, Default)]
struct Queue {
    commands: VecDeque<Bytes>,
    receiver: Option<Waker>,
}

/// Why a command did not reach its session.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum EmulateError {
    /// Too many commands are queued.
    #[error("session already has {COMMANDS_MAX} queued commands; try again later")]
    Busy,
    /// The session does not exist, or its node does not answer.
    #[error("session is unknown, or its node is unavailable")]
    Unknown,
}

impl Emulations {
    /// Starts receiving commands for `session`, whose name must be unguessable.
    pub(crate) fn open(&self, session: &str) -> Emulation {
        let queue = Arc::<Mutex<Queue>>::default();
        self.0.lock().insert(session.to_owned(), queue.clone());
        Emulation {
            emulations: self.clone(),
            session: session.to_owned(),
            queue,
        }
    }

    /// Delivers a command to a session on this node.
    pub(crate) fn deliver(&self, session: &str, data: Bytes) -> Result<(), EmulateError> {
        let queue = self.0.lock().get(session).cloned();
        let queue = queue.ok_or(EmulateError::Unknown)?;
        let mut queue = queue.lock();
        if queue.commands.len() >= COMMANDS_MAX {
            return Err(EmulateError::Busy);
        }
        queue.commands.push_back(data);
        let receiver = queue.receiver.take();
        drop(queue);
        if let Some(receiver) = receiver {
            receiver.wake();
        }
        Ok(())
    }
}

impl Emulation {
    /// Waits for the next body of commands. Cancel-safe.
    pub(crate) async fn recv(&mut self) -> Bytes {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// Returns the next body of commands once there is one.
    pub(crate) fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Bytes> {
        let mut queue = self.queue.lock();
        match queue.commands.pop_front() {
            Some(commands) => {
                if queue.commands.is_empty() {
                    // Most sessions send commands only when they begin.
                    mem::take(&mut queue.commands);
                }
                Poll::Ready(commands)
            }
            None => {
                queue.receiver = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Emulation {
    fn drop(&mut self) {
        self.emulations.0.lock().remove(&self.session);
    }
}

#[cfg(test)]
mod tests {
    use super::{COMMANDS_MAX, EmulateError, Emulations};

    #[tokio::test]
    async fn commands_get_to_their_session_while_it_lives() {
        let emulations = Emulations::default();
        let mut session = emulations.open("s");
        emulations.deliver("s", "a".into()).unwrap();
        assert_eq!(session.recv().await, "a");
        assert_eq!(
            emulations.deliver("t", "a".into()),
            Err(EmulateError::Unknown)
        );
        drop(session);
        assert_eq!(
            emulations.deliver("s", "a".into()),
            Err(EmulateError::Unknown)
        );
    }

    #[tokio::test]
    async fn commands_that_wait_are_bounded() {
        let emulations = Emulations::default();
        let _session = emulations.open("s");
        for _ in 0..COMMANDS_MAX {
            emulations.deliver("s", "a".into()).unwrap();
        }
        let error = emulations.deliver("s", "a".into()).unwrap_err();
        assert!(error.to_string().contains("64"), "{error}");
    }
}
