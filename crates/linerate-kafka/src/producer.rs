//! Writes records to a topic.
//!
//! | module | responsibility |
//! | --- | --- |
//! | `context` | what librdkafka reports of records and of the connection |
//! | `queue` | the records that wait, and their limits |
//!
//! librdkafka holds the records, writes them in batches, and tries again. A client of it that has
//! failed for good, for example because Kafka has lost what it knew of the client, is replaced.

mod context;
mod queue;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use linerate_budget::{Budget, Consumer};
use rdkafka::{
    config::FromClientConfigAndContext,
    error::KafkaError,
    message::{Header, OwnedHeaders},
    producer::{BaseRecord, Producer as _, ThreadedProducer},
};
use tokio::sync::oneshot;

use crate::{
    config,
    options::ProducerOptions,
    produce::{NewRecord, ProduceError, ProducerStatus},
};
use context::{Context, Ticket};
use queue::Queue;

/// Approximate memory of a record and of one of its headers without their texts, in bytes.
const RECORD_BYTES: usize = 512;
const HEADER_BYTES: usize = 64;

/// The records that wait use at most the memory budget divided by this.
const BUDGET_SHARE: u64 = 4;

/// How long a producer that is replaced tries to write what waits, if its records have no timeout.
const END_MAX: Duration = Duration::from_secs(30);

type Client = ThreadedProducer<Context>;

/// Writes records to a topic, once and in order for each key. Dropping it writes what waits in the
/// background, but not longer than the timeout of records (or 30 s).
pub struct Producer {
    options: Arc<ProducerOptions>,
    status: Arc<ProducerStatus>,
    budget: Budget,
    /// `None` if it has failed, and while the producer is dropped.
    client: Mutex<Option<Client>>,
}

impl Producer {
    /// Creates a producer, which connects in the background. If librdkafka cannot use the options,
    /// this is logged, and the producer tries again for each record.
    pub fn new(options: ProducerOptions, status: Arc<ProducerStatus>, budget: Budget) -> Self {
        let options = Arc::new(options);
        let client = connect(&options, &status, &budget).inspect_err(|error| {
            let (kafka, topic) = (&options.name, &options.topic);
            tracing::error!(%kafka, %topic, %error, "cannot create a Kafka client");
        });
        Self {
            client: Mutex::new(client.ok()),
            options,
            status,
            budget,
        }
    }

    /// Queues a record, and returns at once. A record that is not stored is counted and logged.
    pub fn queue(&self, record: &NewRecord<'_>) {
        if let Err(error) = self.enqueue(record, None) {
            report(&self.options, &self.status, &error, false);
        }
    }

    /// Queues a record at once, and returns a future that waits until Kafka has stored it.
    ///
    /// # Errors
    /// The queue is full, Kafka refuses the record, or it has not stored it in time.
    pub fn store(
        &self,
        record: &NewRecord<'_>,
    ) -> impl Future<Output = Result<(), ProduceError>> + Send + 'static + use<> {
        let (waiter, stored) = oneshot::channel();
        let queued = self.enqueue(record, Some(waiter));
        if let Err(error) = &queued {
            report(&self.options, &self.status, error, true);
        }
        async move {
            queued?;
            // The sender is dropped if librdkafka did not tell what became of the record.
            let ended = || Err(ProduceError::NotStored("the producer has ended".to_owned()));
            stored.await.unwrap_or_else(|_| ended())
        }
    }

    fn enqueue(
        &self,
        record: &NewRecord<'_>,
        waiter: Option<oneshot::Sender<Result<(), ProduceError>>>,
    ) -> Result<(), ProduceError> {
        let (bytes, bytes_max) = (record.value.len(), self.options.record_bytes_max);
        if bytes > bytes_max {
            return Err(ProduceError::TooLarge { bytes, bytes_max });
        }
        let mut client = self.lock();
        let failed = client.take_if(|client| client.client().fatal_error().is_some());
        if let Some(failed) = failed {
            end(failed, Duration::ZERO);
        }
        let client = match &mut *client {
            Some(client) => client,
            none => {
                let created = connect(&self.options, &self.status, &self.budget);
                none.insert(created.map_err(not_stored)?)
            }
        };
        let queue = &client.client().context().queue;
        // A caller that waits holds the value as well.
        let held_bytes = if waiter.is_some() {
            record.value.len()
        } else {
            0
        };
        let bytes = record.bytes() + held_bytes;
        queue.add(bytes)?;
        let ticket = Box::new(Ticket { bytes, waiter });
        let sent = BaseRecord::with_opaque_to(&self.options.topic, ticket)
            .key(record.key)
            .payload(record.value)
            .headers(record.to_headers());
        client.send(sent).map_err(|(error, _)| {
            queue.remove(bytes);
            not_stored(error)
        })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Client>> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        if let Some(client) = self.lock().take() {
            end(client, self.options.timeout.unwrap_or(END_MAX));
        }
    }
}

impl fmt::Debug for Producer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut producer = f.debug_struct("Producer");
        producer.field("options", &self.options);
        producer
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

impl NewRecord<'_> {
    /// Returns the approximate memory of the record, in bytes.
    fn bytes(&self) -> usize {
        let headers = self.headers.iter();
        let headers = headers.map(|(name, value)| HEADER_BYTES + name.len() + value.len());
        RECORD_BYTES + self.key.len() + self.value.len() + headers.sum::<usize>()
    }

    fn to_headers(&self) -> OwnedHeaders {
        let headers = OwnedHeaders::new_with_capacity(self.headers.len());
        self.headers.iter().fold(headers, |headers, (name, value)| {
            let value = Some(value);
            headers.insert(Header { key: name, value })
        })
    }
}

fn connect(
    options: &Arc<ProducerOptions>,
    status: &Arc<ProducerStatus>,
    budget: &Budget,
) -> Result<Client, KafkaError> {
    // A cluster that is down must not leave too little memory for clients.
    let share_bytes = budget
        .bytes_max()
        .map_or(u64::MAX, |bytes| bytes / BUDGET_SHARE);
    let share_bytes = usize::try_from(share_bytes).unwrap_or(usize::MAX);
    let limits = (options.queue_max, options.queue_bytes_max.min(share_bytes));
    let queue = Queue::new(limits, status.clone(), budget.lease(Consumer::Messages));
    let context = Context {
        options: options.clone(),
        status: status.clone(),
        queue,
    };
    Client::from_config_and_context(&config::producer(options), context)
}

/// Ends a client on a thread, because this waits: for `wait_max`, for what it has not written.
fn end(client: Client, wait_max: Duration) {
    let end = thread::Builder::new().name("kafka end".to_owned());
    // Without a thread, the client is dropped here.
    _ = end.spawn(move || {
        // What is not written then is counted when the client is dropped.
        _ = client.flush(wait_max);
    });
}

/// Counts a record that is not stored, and logs the first of them.
fn report(options: &ProducerOptions, status: &ProducerStatus, error: &ProduceError, is_told: bool) {
    if status.note_failed(is_told) {
        let (kafka, topic) = (&options.name, &options.topic);
        let (refused, dropped) = (status.refused(), status.dropped());
        tracing::warn!(%kafka, %topic, refused, dropped, %error, "records are not stored");
    }
}

fn not_stored(error: KafkaError) -> ProduceError {
    ProduceError::NotStored(error.to_string())
}

#[cfg(test)]
mod tests;
