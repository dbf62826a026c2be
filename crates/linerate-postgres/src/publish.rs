//! Publishes batches: in the order of commits within a channel, several channels at once.

use std::{collections::hash_map::Entry, sync::Arc, time::Duration};

use foldhash::{HashMap, HashMapExt};
use futures_util::{StreamExt, stream};
use linerate_broker::{BrokerError, HistoryRequest, Publish};
use linerate_hub::ChannelName;
use tokio::{sync::Mutex, time::sleep};

use crate::{
    lsn::Lsn,
    position::{POSITION_TAG, Position, SOURCE_TAG},
    rows::Row,
    sink::Sink,
    status::{Status, count},
};

/// The number of channels in which a batch is published at the same time.
const CHANNELS_AT_ONCE: usize = 32;

/// The number of newest publications of a channel in which the last one of the source is searched.
const SEARCHED: usize = 100;

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
pub(crate) async fn insist<F>(
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

/// Publishes rows in the broker, each of them once.
pub(crate) struct Publisher {
    pub(crate) source: String,
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) status: Arc<Status>,
    pub(crate) row_bytes_max: usize,
    /// Transactions up to here may have been published by an earlier reader of the slot.
    pub(crate) suspect: Lsn,
    /// The newest position of this source in channels, while transactions are suspect.
    pub(crate) newest: Mutex<HashMap<ChannelName, Option<Position>>>,
}

impl Publisher {
    /// Publishes rows. Completes when the broker has accepted all of them, however long it takes.
    pub(crate) async fn publish(&self, rows: Vec<Row>) {
        let mut channels: HashMap<ChannelName, Vec<Row>> = HashMap::new();
        for row in rows {
            channels.entry(row.channel.clone()).or_default().push(row);
        }
        let channels = stream::iter(channels.into_values());
        let publish = async |rows: Vec<Row>| {
            for row in rows {
                self.publish_row(row).await;
            }
        };
        channels
            .for_each_concurrent(CHANNELS_AT_ONCE, publish)
            .await;
    }

    async fn publish_row(&self, row: Row) {
        let (bytes, bytes_max) = (row.payload.len(), self.row_bytes_max);
        let published = match bytes > bytes_max {
            true => Err(BrokerError::PayloadTooLarge { bytes, bytes_max }),
            false => insist(&*self.sink, &self.source, || self.attempt(&row)).await,
        };
        if let Err(error) = published {
            self.refuse(&row, &error);
        }
    }

    async fn attempt(&self, row: &Row) -> Result<(), BrokerError> {
        let options = self.sink.options(&row.channel);
        let has_stream = options.is_durable && options.size_max > 0;
        if has_stream && row.position.commit <= self.suspect && self.is_published(row).await? {
            count(&self.status.repeated);
            return Ok(());
        }
        let mut tags = row.tags.clone();
        if has_stream {
            tags.retain(|(name, _)| name != SOURCE_TAG && name != POSITION_TAG);
            tags.push((SOURCE_TAG.to_owned(), self.source.clone()));
            tags.push((POSITION_TAG.to_owned(), row.position.to_string()));
        }
        let (id, at) = row.transaction;
        let key = match &row.key {
            Some(key) => format!("{}:key:{key}", self.source),
            None => format!("{}:{}:{id}:{at}", self.source, row.position),
        };
        let publish = Publish {
            payload: row.payload.clone(),
            info: None,
            tags,
            idempotency_key: Some(key),
            options,
        };
        self.sink.publish(&row.channel, publish).await?;
        count(&self.status.published);
        Ok(())
    }

    /// Returns whether an earlier reader has published a row, according to the history of its
    /// channel.
    async fn is_published(&self, row: &Row) -> Result<bool, BrokerError> {
        let known = self.newest.lock().await.get(&row.channel).copied();
        let newest = match known {
            Some(newest) => newest,
            None => {
                let newest = self.read_newest(&row.channel).await?;
                let mut channels = self.newest.lock().await;
                match channels.entry(row.channel.clone()) {
                    Entry::Occupied(entry) => *entry.get(),
                    Entry::Vacant(entry) => *entry.insert(newest),
                }
            }
        };
        Ok(newest.is_some_and(|newest| newest.includes(&row.position)))
    }

    async fn read_newest(&self, channel: &ChannelName) -> Result<Option<Position>, BrokerError> {
        let request = HistoryRequest {
            since: None,
            limit: Some(SEARCHED),
            is_reverse: true,
        };
        let options = self.sink.options(channel);
        let history = self.sink.history(channel, options, request).await?;
        let position = |tags: &[(String, String)]| {
            let tag = |name| tags.iter().find(|tag| tag.0 == name).map(|tag| &*tag.1);
            let is_ours = tag(SOURCE_TAG) == Some(&*self.source);
            tag(POSITION_TAG)
                .filter(|_| is_ours)
                .and_then(Position::parse)
        };
        let mut publications = history.publications.iter();
        Ok(publications.find_map(|publication| position(publication.tags())))
    }

    fn refuse(&self, row: &Row, error: &BrokerError) {
        let (channel, position) = (&row.channel, row.position);
        if let Some(refused) = self.status.note_refused() {
            tracing::warn!(source = %self.source, %channel, %position, %error, refused, "changes cannot be published; skipped");
        }
    }
}
