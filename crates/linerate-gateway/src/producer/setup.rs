//! What `[[kafka.producer]]` says, ready to be used.

use linerate_hub::ChannelName;
use linerate_kafka::ProducerOptions;

use super::Author;
use crate::{
    channel_pattern::matches_any,
    config::{KafkaOptions, KafkaProducer},
    endpoint_error::EndpointError,
    kafka_cluster::KafkaCluster,
};

/// A producer that can be started.
#[derive(Debug)]
pub(crate) struct ProducerSetup {
    channels: Vec<String>,
    with_api: bool,
    waits: bool,
    /// True if there are files, which may have changed.
    has_files: bool,
    options: ProducerOptions,
}

impl ProducerSetup {
    /// Reads the producers of a cluster.
    ///
    /// # Errors
    /// A file cannot be read, or what it contains cannot be used.
    pub(crate) fn all_of(options: &KafkaOptions) -> Result<Vec<Self>, EndpointError> {
        if options.producers.is_empty() {
            return Ok(Vec::new());
        }
        let cluster = KafkaCluster::read(options);
        let cluster = cluster.map_err(|problem| problem.of("kafka", &options.name))?;
        let producers = options.producers.iter();
        let setup = |producer| Self::new(options, producer, &cluster);
        Ok(producers.map(setup).collect())
    }

    fn new(options: &KafkaOptions, producer: &KafkaProducer, cluster: &KafkaCluster) -> Self {
        Self {
            channels: producer.channels.clone(),
            with_api: producer.api,
            waits: producer.wait,
            has_files: cluster.has_files,
            options: ProducerOptions {
                name: options.name.clone(),
                cluster: cluster.options.clone(),
                topic: producer.topic.clone(),
                compression: producer.compression,
                record_bytes_max: options.record_bytes_max,
                timeout: producer.wait.then_some(producer.timeout),
                queue_max: producer.queue_max,
                queue_bytes_max: producer.queue_bytes_max,
            },
        }
    }

    pub(super) const fn options(&self) -> &ProducerOptions {
        &self.options
    }

    pub(super) const fn waits(&self) -> bool {
        self.waits
    }

    /// Returns whether a publication in this channel is written.
    pub(super) fn wants(&self, channel: &ChannelName, author: Author<'_>) -> bool {
        let is_of_client = matches!(author, Author::Client(_));
        (is_of_client || self.with_api) && matches_any(&self.channels, channel.as_str())
    }

    /// Returns whether both write to the same topic.
    pub(super) fn has_topic_of(&self, other: &Self) -> bool {
        self.options.name == other.options.name && self.options.topic == other.options.topic
    }

    /// Returns whether a client of Kafka can continue with these options.
    pub(super) fn is_same_client(&self, other: &Self) -> bool {
        !self.has_files && self.options == other.options
    }
}
