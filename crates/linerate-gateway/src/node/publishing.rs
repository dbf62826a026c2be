//! Publications of clients and of the application, which may also be written to Kafka.

use std::sync::Arc;

use futures_util::future::try_join_all;
use linerate_broker::{BrokerError, Publish, Published};
use linerate_hub::ChannelName;
use linerate_kafka::ProduceError;

use super::Node;
use crate::producer::{Author, PublicationRecord, RunningProducer};

/// Why a publication is not accepted.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The broker is unavailable or refuses it.
    #[error(transparent)]
    Broker(#[from] BrokerError),
    /// The publication waits for Kafka, which has not stored it. It is not published.
    #[error(transparent)]
    Kafka(#[from] ProduceError),
}

impl Node {
    /// Publishes to a channel for a client or for the application, and writes the publication to
    /// Kafka if a producer wants it.
    ///
    /// # Errors
    /// The broker is unavailable or refuses the publication, or a producer that publications wait
    /// for has not stored it.
    pub(crate) async fn publish(
        self: &Arc<Self>,
        channel: &ChannelName,
        publish: Publish,
        author: Author<'_>,
    ) -> Result<Published, PublishError> {
        let producers = self.producers.find(channel, author);
        if producers.is_empty() {
            return Ok(self.publisher.publish(channel, publish).await?);
        }
        let record = PublicationRecord::new(channel.clone(), &publish, author);
        let producing = self.clone().produce(producers, record, publish);
        // The caller may stop waiting when a client leaves. The publication is then still both
        // written and published.
        match self.spawn_task(producing).await {
            Ok(published) => published,
            Err(_) => {
                let reason = "the node ends".to_owned();
                Err(BrokerError::Away { reason }.into())
            }
        }
    }

    async fn produce(
        self: Arc<Self>,
        producers: Vec<Arc<RunningProducer>>,
        record: PublicationRecord,
        publish: Publish,
    ) -> Result<Published, PublishError> {
        let (waiting, others): (Vec<_>, Vec<_>) = producers.into_iter().partition(|it| it.waits());
        try_join_all(waiting.iter().map(|it| it.store(&record))).await?;
        let published = self.publisher.publish(record.channel(), publish).await?;
        for producer in others {
            producer.queue(&record, published.position.as_ref());
        }
        Ok(published)
    }
}
