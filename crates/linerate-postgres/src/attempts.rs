//! The attempts of a source to read, and the pauses between them.

use std::{sync::Arc, time::Duration};

use tokio::time::sleep;

use crate::{
    error::SourceError,
    status::{SourceState, Status},
};

/// The delay before another attempt to read.
const RETRY_MIN: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(1);

/// How often a node tries to read what another one reads.
const STANDBY_INTERVAL: Duration = Duration::from_secs(1);

/// Decides when to try again.
pub(crate) struct Attempts {
    source: String,
    status: Arc<Status>,
    /// How often the source had begun to read before the latest pause.
    connections: u64,
    delay: Duration,
    is_standby: bool,
}

impl Attempts {
    pub(crate) fn new(source: String, status: Arc<Status>) -> Self {
        Self {
            source,
            status,
            connections: 0,
            delay: RETRY_MIN,
            is_standby: false,
        }
    }

    /// Notes, and logs if it is new, why the source does not read.
    pub(crate) fn failed(&mut self, error: SourceError) {
        self.is_standby = matches!(error, SourceError::Active);
        let state = match self.is_standby {
            true => SourceState::Standby,
            false => SourceState::Failed(error.to_string()),
        };
        self.status.enter(&self.source, state);
    }

    /// Waits before another attempt: longer each time, until one succeeds.
    pub(crate) async fn pause(&mut self) {
        let connections = self.status.connections();
        if std::mem::replace(&mut self.connections, connections) < connections {
            self.delay = RETRY_MIN;
        }
        if self.is_standby {
            return sleep(STANDBY_INTERVAL).await;
        }
        sleep(self.delay).await;
        self.delay = (self.delay * 2).min(RETRY_MAX);
    }
}
