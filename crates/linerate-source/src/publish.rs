//! Publishes batches: in their order within a channel, several channels at once.

use std::{fmt, sync::Arc, time::Duration};

use foldhash::{HashMap, HashMapExt};
use futures_util::{StreamExt, stream};
use linerate_broker::{BrokerError, HistoryRequest, Publish};
use linerate_hub::ChannelName;
use tokio::{sync::Mutex, time::sleep};

use crate::{
    record::{Position, Record, SOURCE_TAG},
    sink::Sink,
    status::Status,
};

/// The number of channels in which a batch is published at the same time.
const CHANNELS_AT_ONCE: usize = 32;

/// The number of newest publications of a channel in which the last one of the source is searched.
const SEARCHED: usize = 100;

/// The number of channels whose newest positions are remembered. Beyond it, they are read again.
const CHANNELS_MAX: usize = 10_000;

/// The number of attempts after which a publication that the broker refuses is skipped, if the
/// broker accepts other writes.
const ATTEMPTS_MAX: u32 = 3;

/// The delays between attempts.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Publishes until the broker accepts it.
///
/// # Errors
/// The broker refuses this publication, although it accepts others.
pub async fn insist<F>(
    sink: &dyn Sink,
    source: &str,
    attempt: impl Fn() -> F,
) -> Result<(), BrokerError>
where
    F: Future<Output = Result<(), BrokerError>>,
{
    let (mut pause, mut attempts) = (PAUSE_MIN, 0);
    loop {
        let Err(error) = attempt().await else {
            return Ok(());
        };
        attempts += 1;
        match &error {
            BrokerError::PayloadTooLarge { .. } => return Err(error),
            // A broker that refuses everything, such as one without memory, will recover.
            BrokerError::Refused { .. }
                if attempts >= ATTEMPTS_MAX && sink.probe_write().await.is_ok() =>
            {
                return Err(error);
            }
            _ => {}
        }
        if attempts == ATTEMPTS_MAX {
            tracing::warn!(source, %error, "the broker does not accept publications; trying again");
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Publishes records in the broker, each of them once.
pub struct Publisher<P> {
    source: String,
    sink: Arc<dyn Sink>,
    status: Arc<Status>,
    payload_bytes_max: usize,
    /// The newest positions of this source in channels in which records are suspect.
    newest: Mutex<HashMap<ChannelName, Vec<P>>>,
}

impl<P: Position> Publisher<P> {
    /// Creates a publisher for a source, which refuses payloads of more than `payload_bytes_max`
    /// bytes.
    ///
    /// It remembers what earlier readers have published, so there must be a new one when there may
    /// have been another reader.
    pub fn new(
        source: String,
        sink: Arc<dyn Sink>,
        status: Arc<Status>,
        payload_bytes_max: usize,
    ) -> Self {
        Self {
            source,
            sink,
            status,
            payload_bytes_max,
            newest: Mutex::new(HashMap::new()),
        }
    }

    /// Publishes records. Completes when the broker has accepted all of them, however long that
    /// takes.
    pub async fn publish(&self, records: Vec<Record<P>>) {
        let mut channels: HashMap<ChannelName, Vec<Record<P>>> = HashMap::new();
        for record in records {
            let of_channel = channels.entry(record.channel.clone()).or_default();
            of_channel.push(record);
        }
        let channels = stream::iter(channels.into_values());
        let publish = async |records: Vec<Record<P>>| {
            for record in records {
                self.publish_record(record).await;
            }
        };
        channels
            .for_each_concurrent(CHANNELS_AT_ONCE, publish)
            .await;
    }

    async fn publish_record(&self, record: Record<P>) {
        let (bytes, bytes_max) = (record.payload.len(), self.payload_bytes_max);
        let published = match bytes > bytes_max {
            true => Err(BrokerError::PayloadTooLarge { bytes, bytes_max }),
            false => insist(&*self.sink, &self.source, || self.attempt(&record)).await,
        };
        if let Err(error) = published {
            self.refuse(&record, &error);
        }
    }

    async fn attempt(&self, record: &Record<P>) -> Result<(), BrokerError> {
        let options = self.sink.options(&record.channel);
        let has_stream = options.is_durable && options.size_max > 0;
        if has_stream && record.is_suspect && self.is_published(record).await? {
            self.status.note_repeated();
            return Ok(());
        }
        let mut tags = record.tags.clone();
        if has_stream {
            tags.retain(|(name, _)| name != SOURCE_TAG && name != P::TAG);
            tags.push((SOURCE_TAG.to_owned(), self.source.clone()));
            tags.push((P::TAG.to_owned(), record.position.to_string()));
        }
        let publish = Publish {
            payload: record.payload.clone(),
            info: None,
            tags,
            idempotency_key: Some(format!("{}:{}", self.source, record.key)),
            options,
        };
        self.sink.publish(&record.channel, publish).await?;
        self.status.note_published();
        Ok(())
    }

    /// Returns whether an earlier reader has published a record, according to the history of its
    /// channel.
    async fn is_published(&self, record: &Record<P>) -> Result<bool, BrokerError> {
        let includes = |newest: &Vec<P>| newest.iter().any(|it| it.includes(&record.position));
        if let Some(newest) = self.newest.lock().await.get(&record.channel) {
            return Ok(includes(newest));
        }
        let newest = self.read_newest(&record.channel).await?;
        let is_published = includes(&newest);
        let mut channels = self.newest.lock().await;
        if channels.len() >= CHANNELS_MAX {
            channels.clear();
        }
        channels.insert(record.channel.clone(), newest);
        Ok(is_published)
    }

    /// Returns the positions of this source in the newest publications of a channel, without those
    /// that another one includes.
    async fn read_newest(&self, channel: &ChannelName) -> Result<Vec<P>, BrokerError> {
        let request = HistoryRequest {
            since: None,
            limit: Some(SEARCHED),
            is_reverse: true,
        };
        let options = self.sink.options(channel);
        let history = self.sink.history(channel, options, request).await?;
        let mut newest: Vec<P> = Vec::new();
        for publication in &history.publications {
            let tags = publication.tags();
            let tag = |name| tags.iter().find(|tag| tag.0 == name).map(|tag| &*tag.1);
            let position = match tag(SOURCE_TAG) == Some(&*self.source) {
                true => tag(P::TAG).and_then(|text| text.parse().ok()),
                false => None,
            };
            if let Some(position) = position
                && !newest.iter().any(|known| known.includes(&position))
            {
                newest.push(position);
            }
        }
        Ok(newest)
    }

    fn refuse(&self, record: &Record<P>, error: &BrokerError) {
        let (channel, position) = (&record.channel, &record.position);
        if let Some(refused) = self.status.note_refused() {
            tracing::warn!(source = %self.source, %channel, %position, %error, refused, "changes cannot be published; skipped");
        }
    }
}

impl<P> fmt::Debug for Publisher<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut publisher = f.debug_struct("Publisher");
        publisher
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}
