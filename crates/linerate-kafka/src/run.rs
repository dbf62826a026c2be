//! Reads and publishes until the source ends.

use std::{sync::Arc, thread};

use linerate_budget::Budget;
use linerate_source::{Attempts, Publisher, Sink, Status};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

use crate::{
    error::SourceError,
    job::{JOB_MAX, Job, Jobs, Work},
    options::SourceOptions,
    reader::{Scope, read},
};

/// Reads records and publishes them, until this future is dropped. The thread that reads then
/// leaves the consumer group, and drops its `presence` afterwards.
pub async fn run(
    options: SourceOptions,
    sink: Arc<dyn Sink>,
    status: Arc<Status>,
    budget: Budget,
    presence: Arc<()>,
) {
    let options = Arc::new(options);
    let mut attempts = Attempts::new(options.name.clone(), status.clone());
    loop {
        let (jobs, queue) = Jobs::new();
        let scope = Scope {
            options: options.clone(),
            status: status.clone(),
            budget: budget.clone(),
            jobs,
            _presence: presence.clone(),
        };
        let (ended, end) = oneshot::channel();
        let thread = thread::Builder::new().name(format!("kafka {}", options.name));
        let reads = thread.spawn(move || {
            let Err(error) = read(&scope);
            // The receiver is gone if the source has ended.
            _ = ended.send(error);
        });
        let error = match reads {
            Err(error) => SourceError::Thread(error),
            Ok(_) => {
                work(&options, &sink, &status, queue).await;
                end.await.unwrap_or(SourceError::Ended)
            }
        };
        attempts.failed(error);
        attempts.pause().await;
    }
}

/// Does the jobs of a thread until it ends.
async fn work(
    options: &SourceOptions,
    sink: &Arc<dyn Sink>,
    status: &Arc<Status>,
    mut queue: mpsc::Receiver<Job>,
) {
    let new = || {
        let (name, bytes_max) = (options.name.clone(), options.record_bytes_max);
        Publisher::new(name, sink.clone(), status.clone(), bytes_max)
    };
    let mut publisher = new();
    while let Some(Job { work, done }) = queue.recv().await {
        let is_done = match work {
            Work::Publish { records, is_first } => {
                if is_first {
                    publisher = new();
                }
                timeout(JOB_MAX, publisher.publish(records)).await.is_ok()
            }
            Work::ReportGap(patterns) => timeout(JOB_MAX, sink.report_gap(patterns)).await.is_ok(),
        };
        // The thread waits, unless it has ended.
        _ = done.send(is_done);
    }
}
