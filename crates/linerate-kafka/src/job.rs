//! What the thread that reads asks of the runtime: to publish, and to report gaps.

use std::{sync::mpsc as blocking, time::Duration};

use linerate_source::Record;
use tokio::sync::mpsc;

use crate::{error::SourceError, position::Position};

/// The maximum time for a job. A node that cannot publish gives its partitions to others.
pub(crate) const JOB_MAX: Duration = Duration::from_secs(20);

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Work {
    /// Publish records.
    Publish {
        records: Vec<Record<Position>>,
        /// True if another node may have read since the last job.
        is_first: bool,
    },
    /// Report a gap in the channels that match these patterns.
    ReportGap(Vec<String>),
}

/// Work, and how to answer.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) work: Work,
    /// Receives whether the work was done within [`JOB_MAX`].
    pub(crate) done: blocking::Sender<bool>,
}

/// Has jobs done.
#[derive(Clone, Debug)]
pub(crate) struct Jobs(mpsc::Sender<Job>);

impl Jobs {
    /// Returns a queue without room for a job that waits: the thread waits for each one.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Job>) {
        let (sender, receiver) = mpsc::channel(1);
        (Self(sender), receiver)
    }

    /// Has work done, and waits until it is.
    ///
    /// # Errors
    /// It took too long, or the source has ended.
    pub(crate) fn run(&self, work: Work) -> Result<(), SourceError> {
        let (done, answer) = blocking::channel();
        let sent = self.0.blocking_send(Job { work, done });
        sent.map_err(|_| SourceError::Ended)?;
        match answer.recv() {
            Ok(true) => Ok(()),
            Ok(false) => Err(SourceError::Late { within: JOB_MAX }),
            Err(_) => Err(SourceError::Ended),
        }
    }

    /// Returns whether the source has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.0.is_closed()
    }
}
