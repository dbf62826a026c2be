//! Commands of clients that receive replies on a streaming HTTP response and send commands in
//! separate requests.
//!
//! A command names its node and session, so any node can accept it. Sticky sessions are not needed.

use std::sync::Arc;

use bytes::Bytes;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use parking_lot::Mutex;
use tokio::sync::mpsc;

/// The maximum number of command bodies queued for a session.
const COMMANDS_MAX: usize = 64;

/// The sessions of this node whose commands arrive in separate requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Emulations(Arc<Mutex<Sessions>>);

type Sessions = HashMap<String, mpsc::Sender<Bytes>, RandomState>;

/// The receiver of a session's commands, for the lifetime of the session.
#[derive(Debug)]
pub(crate) struct Emulation {
    emulations: Emulations,
    session: String,
    commands: mpsc::Receiver<Bytes>,
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
        let (sender, commands) = mpsc::channel(COMMANDS_MAX);
        self.0.lock().insert(session.to_owned(), sender);
        Emulation {
            emulations: self.clone(),
            session: session.to_owned(),
            commands,
        }
    }

    /// Delivers a command to a session on this node.
    pub(crate) fn deliver(&self, session: &str, data: Bytes) -> Result<(), EmulateError> {
        let sender = self.0.lock().get(session).cloned();
        match sender.map(|sender| sender.try_send(data)) {
            Some(Ok(())) => Ok(()),
            Some(Err(mpsc::error::TrySendError::Full(_))) => Err(EmulateError::Busy),
            Some(Err(mpsc::error::TrySendError::Closed(_))) | None => Err(EmulateError::Unknown),
        }
    }
}

impl Emulation {
    /// Waits for the next body of commands. Cancel-safe.
    pub(crate) async fn recv(&mut self) -> Option<Bytes> {
        self.commands.recv().await
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
        assert_eq!(session.recv().await.unwrap(), "a");
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
