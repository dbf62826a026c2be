//! The attempts of a source to read, and the pauses between them.

use std::{sync::Arc, time::Duration};

use tokio::time::sleep;

use crate::status::{SourceState, Status};

/// The delay before another attempt to read.
const RETRY_MIN: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(1);

/// How often a node tries to read what another one reads.
const STANDBY_INTERVAL: Duration = Duration::from_secs(1);

/// The reason why an attempt to read has ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Trouble {
    /// It failed; the text is the reason.
    Failed(String),
    /// Another node reads.
    Standby,
}

/// Decides when to try again.
#[derive(Debug)]
pub struct Attempts {
    source: String,
    status: Arc<Status>,
    /// How often the source had begun to read before the latest pause.
    connections: u64,
    delay: Duration,
    /// Why the source did not read in the latest attempt.
    trouble: Option<Trouble>,
}

impl Attempts {
    /// Creates the attempts of a source.
    pub fn new(source: String, status: Arc<Status>) -> Self {
        Self {
            source,
            status,
            connections: 0,
            delay: RETRY_MIN,
            trouble: None,
        }
    }

    /// Notes why the source does not read from a server.
    pub fn failed(&mut self, trouble: impl Into<Trouble>) {
        self.trouble = Some(trouble.into());
    }

    /// Returns whether another node reads from the server that was tried last.
    pub const fn is_standby(&self) -> bool {
        matches!(self.trouble, Some(Trouble::Standby))
    }

    /// Reports, and logs if it is new, what the last server said. Waits before another attempt:
    /// longer each time, until one succeeds.
    pub async fn pause(&mut self) {
        let is_standby = self.is_standby();
        if let Some(trouble) = self.trouble.take() {
            let state = match trouble {
                Trouble::Standby => SourceState::Standby,
                Trouble::Failed(reason) => SourceState::Failed(reason),
            };
            self.status.enter(&self.source, state);
        }
        let connections = self.status.connections();
        if std::mem::replace(&mut self.connections, connections) < connections {
            self.delay = RETRY_MIN;
        }
        if is_standby {
            return sleep(STANDBY_INTERVAL).await;
        }
        sleep(self.delay).await;
        self.delay = (self.delay * 2).min(RETRY_MAX);
    }
}
