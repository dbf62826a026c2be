//! Producers: publications are written to topics of Kafka.
//!
//! | module | responsibility |
//! | --- | --- |
//! | `fuzzing` | an entry point for fuzzers |
//! | `record` | a publication as a record |
//! | `setup` | what a section of the configuration says, ready to be used |
//!
//! Only what clients and the application publish is written, and not what sources read.

#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod record;
mod setup;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use linerate_budget::Budget;
use linerate_hub::{ChannelName, ClientInfo, StreamPosition};
use linerate_kafka::{ProduceError, Producer, ProducerStatus};
use tokio::time::sleep;

pub(crate) use record::PublicationRecord;
pub(crate) use setup::ProducerSetup;

/// How often to look whether everything is written.
const FLUSH_INTERVAL: Duration = Duration::from_millis(10);

/// Who publishes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Author<'a> {
    /// The application, with the server API or the admin page.
    Application,
    /// A client.
    Client(&'a ClientInfo),
}

/// The producers of a node.
#[derive(Debug)]
pub(crate) struct Producers {
    budget: Budget,
    all: ArcSwap<Vec<Arc<RunningProducer>>>,
}

/// A producer that runs.
#[derive(Debug)]
pub(crate) struct RunningProducer {
    setup: Arc<ProducerSetup>,
    producer: Arc<Producer>,
    status: Arc<ProducerStatus>,
}

impl Producers {
    /// Creates a node without producers; [`replace`](Self::replace) adds them.
    pub(crate) fn new(budget: Budget) -> Self {
        Self {
            budget,
            all: ArcSwap::default(),
        }
    }

    /// Replaces the producers. One whose options stay the same continues; another one for the same
    /// topic continues to count. The others write what waits in the background.
    pub(crate) fn replace(&self, setups: &[Arc<ProducerSetup>]) {
        let known = self.all.load();
        let start = |setup: &Arc<ProducerSetup>| {
            let mut known = known.iter();
            let previous = known.find(|it| it.setup.has_topic_of(setup));
            let status = previous.map_or_else(Arc::default, |it| it.status.clone());
            let same = previous.filter(|it| it.setup.is_same_client(setup));
            let producer = same.map(|it| it.producer.clone()).unwrap_or_else(|| {
                let (options, budget) = (setup.options().clone(), self.budget.clone());
                Arc::new(Producer::new(options, status.clone(), budget))
            });
            Arc::new(RunningProducer {
                setup: setup.clone(),
                producer,
                status,
            })
        };
        let all: Vec<_> = setups.iter().map(start).collect();
        self.all.store(Arc::new(all));
    }

    /// Returns the producers that write a publication in this channel.
    pub(crate) fn find(
        &self,
        channel: &ChannelName,
        author: Author<'_>,
    ) -> Vec<Arc<RunningProducer>> {
        let all = self.all.load();
        let wanted = all.iter().filter(|it| it.setup.wants(channel, author));
        wanted.cloned().collect()
    }

    /// Returns the cluster and the topic of each producer, and what it has done.
    pub(crate) fn statuses(&self) -> Vec<([Arc<str>; 2], Arc<ProducerStatus>)> {
        let all = self.all.load();
        let status = |it: &Arc<RunningProducer>| {
            let options = it.setup.options();
            let names = [&*options.name, &*options.topic].map(Arc::from);
            (names, it.status.clone())
        };
        all.iter().map(status).collect()
    }

    /// Waits until everything is written, but not longer than `wait_max`, and logs what is not.
    pub(crate) async fn flush(&self, wait_max: Duration) {
        let since = Instant::now();
        for ([kafka, topic], status) in self.statuses() {
            while status.waiting() > 0 && since.elapsed() < wait_max {
                sleep(FLUSH_INTERVAL).await;
            }
            let records = status.waiting();
            if records > 0 {
                tracing::warn!(%kafka, %topic, records, "records are not written");
            }
        }
    }
}

impl RunningProducer {
    /// Returns whether a publication waits until its record is stored.
    pub(crate) fn waits(&self) -> bool {
        self.setup.waits()
    }

    /// Queues a record at once, and returns a future that waits until Kafka has stored it.
    ///
    /// # Errors
    /// The queue is full, Kafka refuses the record, or it has not stored it in time.
    pub(crate) fn store(
        &self,
        record: &PublicationRecord,
    ) -> impl Future<Output = Result<(), ProduceError>> + Send + 'static + use<> {
        let headers = record.headers(None);
        self.producer.store(&record.with(&headers))
    }

    /// Queues a record of a publication that has this position. One that is not stored is counted
    /// and logged.
    pub(crate) fn queue(&self, record: &PublicationRecord, position: Option<&StreamPosition>) {
        let headers = record.headers(position);
        self.producer.queue(&record.with(&headers));
    }
}
