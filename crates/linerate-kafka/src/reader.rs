//! The thread that reads: it polls librdkafka, and has what it read published in batches.

use std::{
    collections::HashMap,
    convert::Infallible,
    sync::Arc,
    time::{Duration, Instant},
};

use linerate_budget::{Budget, Consumer as MemoryConsumer, Lease, State};
use linerate_source::{Record, SourceState, Status};
use rdkafka::{
    Message, Offset, TopicPartitionList,
    config::FromClientConfigAndContext,
    consumer::{BaseConsumer, Consumer},
    error::KafkaError,
    message::{BorrowedMessage, Headers},
    types::RDKafkaErrorCode,
};

use crate::{
    config,
    context::{Context, Event},
    convert::{Raw, convert},
    error::SourceError,
    job::{Jobs, Work},
    offsets::{Partition, Place, lag},
    options::{SourceOptions, TopicOptions},
    position::Position,
};

/// How long to wait for records before looking whether the source has ended.
const POLL_MAX: Duration = Duration::from_millis(100);

/// How often the lag is measured.
const LAG_INTERVAL: Duration = Duration::from_secs(2);

/// The maximum of a batch. librdkafka reads ahead while one is published.
const BATCH_RECORDS_MAX: usize = 1_024;
const BATCH_BYTES_MAX: usize = 1 << 20;

/// What a reader works with.
pub(crate) struct Scope {
    pub(crate) options: Arc<SourceOptions>,
    pub(crate) status: Arc<Status>,
    pub(crate) budget: Budget,
    pub(crate) jobs: Jobs,
    /// Dropped when the thread has left the group.
    pub(crate) _presence: Arc<()>,
}

/// Reads until the source ends, or cannot read. Leaves the group, and commits what has been
/// published.
pub(crate) fn read(scope: &Scope) -> Result<Infallible, SourceError> {
    let (options, status) = (&scope.options, &scope.status);
    let context = Context::new(options.clone(), status.clone(), scope.jobs.clone());
    let consumer = BaseConsumer::from_config_and_context(&config::consumer(options), context)?;
    let topics = options.topics.iter().map(|topic| topic.topic.as_str());
    consumer.subscribe(&topics.collect::<Vec<_>>())?;
    let mut prefetched = scope.budget.lease(MemoryConsumer::Publications);
    prefetched.force(options.prefetch_bytes_max as u64);
    let mut reader = Reader {
        scope,
        consumer: &consumer,
        places: HashMap::new(),
        batch: Batch::default(),
        lease: scope.budget.lease(MemoryConsumer::Publications),
        is_first: true,
        measured: Instant::now(),
    };
    reader.run()
}

/// Records that are read and not published.
#[derive(Default)]
struct Batch {
    records: Vec<Record<Position>>,
    bytes: usize,
    /// The next offsets, once they are published.
    next: HashMap<Partition, i64>,
}

struct Reader<'a> {
    scope: &'a Scope,
    consumer: &'a BaseConsumer<Context>,
    /// Where the assigned partitions are read.
    places: HashMap<Partition, Place>,
    batch: Batch,
    /// The memory of the batch.
    lease: Lease,
    /// True if another node may have read since the last batch.
    is_first: bool,
    /// When the lag was measured.
    measured: Instant,
}

impl Reader<'_> {
    fn run(&mut self) -> Result<Infallible, SourceError> {
        loop {
            if self.scope.jobs.is_over() {
                return Err(SourceError::Ended);
            }
            let wait = match self.batch.next.is_empty() {
                true => POLL_MAX,
                false => Duration::ZERO,
            };
            let polled = self.consumer.poll(wait);
            for event in self.consumer.context().take_events() {
                self.handle(event)?;
            }
            match polled {
                Some(Ok(message)) => {
                    self.add(&message);
                    if self.has_room() {
                        continue;
                    }
                }
                Some(Err(error)) => self.handle_error(error)?,
                None => {}
            }
            self.publish()?;
            if self.measured.elapsed() >= LAG_INTERVAL {
                self.measure();
            }
        }
    }

    fn has_room(&self) -> bool {
        self.batch.records.len() < BATCH_RECORDS_MAX
            && self.batch.bytes < BATCH_BYTES_MAX
            && self.scope.budget.state() != State::Critical
    }

    fn handle(&mut self, event: Event) -> Result<(), SourceError> {
        match event {
            Event::Assigned(places) => {
                self.is_first = true;
                self.places.extend(places);
                self.enter();
            }
            Event::Failed(error) => return Err(error),
            // The next reader reads what is not published.
            Event::Revoked(partitions) => {
                for partition in &partitions {
                    self.places.remove(partition);
                    self.batch.next.remove(partition);
                    let is_other = |record: &Record<Position>| {
                        let at = &record.position;
                        at.partition != partition.1 || at.topic != partition.0
                    };
                    self.batch.records.retain(is_other);
                }
                // A source that has failed does so until partitions are assigned again.
                if self.scope.status.state() == SourceState::Reading {
                    self.enter();
                }
            }
        }
        Ok(())
    }

    /// Handles what librdkafka reports. It tries again by itself, except for records that are
    /// missing.
    fn handle_error(&self, error: KafkaError) -> Result<(), SourceError> {
        let source = &self.scope.options.name;
        let code = error.rdkafka_error_code();
        let is_fatal = matches!(error, KafkaError::MessageConsumptionFatal(_));
        match code {
            Some(RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::LogTruncation) => {
                return Err(SourceError::Expired);
            }
            _ if is_fatal => return Err(error.into()),
            _ => {}
        }
        let reason = self.consumer.context().reason();
        match code {
            // Another server may be available.
            Some(RDKafkaErrorCode::BrokerTransportFailure | RDKafkaErrorCode::Resolve) => {
                tracing::debug!(source, reason, "a connection to Kafka was lost");
            }
            Some(
                RDKafkaErrorCode::AllBrokersDown
                | RDKafkaErrorCode::Authentication
                | RDKafkaErrorCode::SaslAuthenticationFailed
                | RDKafkaErrorCode::SSL,
            ) => self.scope.status.enter(source, SourceState::Failed(reason)),
            _ if self.places.is_empty() => {
                self.scope.status.enter(source, SourceState::Failed(reason));
            }
            _ => tracing::warn!(source, reason, "Kafka reports an error"),
        }
        Ok(())
    }

    /// Reports whether this node reads.
    fn enter(&self) {
        let (source, status) = (&self.scope.options.name, &self.scope.status);
        match self.places.is_empty() {
            true => status.enter(source, SourceState::Standby),
            false if status.state() != SourceState::Reading => status.note_reading(source),
            false => {}
        }
    }

    fn measure(&mut self) {
        match lag(self.consumer, &self.places) {
            Ok(lag) => {
                self.scope.status.set_lag_records(lag);
                if !self.places.is_empty() {
                    self.enter();
                }
            }
            Err(error) if self.scope.status.state() == SourceState::Reading => {
                let state = SourceState::Failed(format!("Kafka: {error}"));
                self.scope.status.enter(&self.scope.options.name, state);
            }
            Err(_) => {}
        }
        self.measured = Instant::now();
    }

    fn add(&mut self, message: &BorrowedMessage<'_>) {
        let partition = (message.topic().to_owned(), message.partition());
        let Some(place) = self.places.get(&partition) else {
            return;
        };
        let is_suspect = message.offset() < place.suspect;
        self.batch.next.insert(partition, message.offset() + 1);
        let options = &self.scope.options;
        let of_topic = |topic: &&TopicOptions| topic.topic == message.topic();
        let Some(topic) = options.topics.iter().find(of_topic) else {
            return;
        };
        match convert(raw(message), topic, is_suspect, options.record_bytes_max) {
            Ok(Some(record)) => {
                let bytes = record.payload.len() + size_of::<Record<Position>>();
                self.batch.bytes += bytes;
                self.lease.force(bytes as u64);
                self.batch.records.push(record);
            }
            Ok(None) => {}
            Err(error) => {
                if let Some(refused) = self.scope.status.note_refused() {
                    let (source, topic) = (&options.name, message.topic());
                    let (partition, offset) = (message.partition(), message.offset());
                    tracing::warn!(source, topic, partition, offset, %error, refused, "records cannot be published; skipped");
                }
            }
        }
    }

    /// Publishes the batch, and lets librdkafka commit its offsets.
    fn publish(&mut self) -> Result<(), SourceError> {
        let batch = std::mem::take(&mut self.batch);
        if !batch.records.is_empty() {
            let records = batch.records;
            let is_first = std::mem::take(&mut self.is_first);
            self.scope.jobs.run(Work::Publish { records, is_first })?;
        }
        self.lease.shrink(batch.bytes as u64);
        if batch.next.is_empty() {
            return Ok(());
        }
        let mut published = TopicPartitionList::new();
        for (partition, next) in batch.next {
            published.add_partition_offset(&partition.0, partition.1, Offset::Offset(next))?;
            if let Some(place) = self.places.get_mut(&partition) {
                place.next = next;
            }
        }
        // This fails for partitions that Kafka has given to another node, which reads them again.
        if let Err(error) = self.consumer.store_offsets(&published) {
            tracing::debug!(source = %self.scope.options.name, %error, "offsets are not stored");
        }
        Ok(())
    }
}

fn raw<'a>(message: &'a BorrowedMessage<'_>) -> Raw<'a> {
    let headers = message
        .headers()
        .into_iter()
        .flat_map(|headers| headers.iter());
    Raw {
        position: Position {
            topic: message.topic().to_owned(),
            partition: message.partition(),
            offset: message.offset(),
            at: message.timestamp().to_millis().unwrap_or(-1),
        },
        key: message.key(),
        value: message.payload(),
        headers: headers.map(|header| (header.key, header.value)).collect(),
    }
}
