//! What librdkafka reports: partitions that come and go, and errors.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use linerate_source::Status;
use rdkafka::{
    TopicPartitionList,
    client::ClientContext,
    config::RDKafkaLogLevel,
    consumer::{BaseConsumer, ConsumerContext, Rebalance},
    error::KafkaError,
};

use crate::{
    error::SourceError,
    job::{Jobs, Work},
    offsets::{Partition, Place, prepare},
    options::SourceOptions,
};

/// What has happened while librdkafka was polled.
#[derive(Debug)]
pub(crate) enum Event {
    Assigned(HashMap<Partition, Place>),
    /// Where to begin cannot be determined.
    Failed(SourceError),
    Revoked(Vec<Partition>),
}

/// Receives the calls of librdkafka, on the thread that polls it.
pub(crate) struct Context {
    options: Arc<SourceOptions>,
    status: Arc<Status>,
    jobs: Jobs,
    events: Mutex<Vec<Event>>,
    /// What the client has reported last.
    reason: Mutex<String>,
}

impl Context {
    pub(crate) fn new(options: Arc<SourceOptions>, status: Arc<Status>, jobs: Jobs) -> Self {
        Self {
            options,
            status,
            jobs,
            events: Mutex::default(),
            reason: Mutex::default(),
        }
    }

    /// Removes and returns what has happened.
    pub(crate) fn take_events(&self) -> Vec<Event> {
        std::mem::take(&mut *self.events.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the explanation of the latest error.
    pub(crate) fn reason(&self) -> String {
        self.reason
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn push(&self, event: Event) {
        let events = self.events.lock();
        events.unwrap_or_else(PoisonError::into_inner).push(event);
    }

    /// Determines where to begin in partitions, after which librdkafka reads them from there.
    fn begin(
        &self,
        consumer: &BaseConsumer<Self>,
        assigned: &[Partition],
    ) -> Result<HashMap<Partition, Place>, SourceError> {
        let prepared = prepare(consumer, assigned, self.options.start)?;
        if !prepared.gaps.is_empty() {
            let topics = self.options.topics.iter();
            let topics = topics.filter(|topic| prepared.gaps.contains(&topic.topic));
            let patterns: Vec<_> = topics.map(|topic| topic.channel.pattern()).collect();
            self.status.note_gap();
            tracing::warn!(
                source = %self.options.name,
                topics = ?prepared.gaps,
                "earlier records are not published"
            );
            self.jobs.run(Work::ReportGap(patterns))?;
        }
        prepared.commit(consumer)?;
        Ok(prepared.places)
    }
}

impl ClientContext for Context {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        tracing::debug!(source = %self.options.name, ?level, facility, message, "librdkafka");
    }

    fn error(&self, _: KafkaError, reason: &str) {
        let mut latest = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        reason.clone_into(&mut latest);
    }
}

impl ConsumerContext for Context {
    fn pre_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        let event = match rebalance {
            Rebalance::Assign(list) => match self.begin(consumer, &partitions(list)) {
                Ok(places) => Event::Assigned(places),
                Err(error) => Event::Failed(error),
            },
            Rebalance::Revoke(list) => Event::Revoked(partitions(list)),
            Rebalance::Error(error) => Event::Failed(error.clone().into()),
        };
        self.push(event);
    }
}

fn partitions(list: &TopicPartitionList) -> Vec<Partition> {
    let elements = list.elements();
    let partition = elements
        .iter()
        .map(|it| (it.topic().to_owned(), it.partition()));
    partition.collect()
}
