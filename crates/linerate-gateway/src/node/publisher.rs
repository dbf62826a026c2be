//! Publishes to channels.

use std::sync::Arc;

use linerate_broker::{Broker, BrokerError, Publish, Published};
use linerate_hub::ChannelName;
use tokio::runtime::Handle;

use super::{namespaces::NamespaceTable, writes::Writes};
use crate::{clock::now, metrics::PublishDurations};

/// Publishes to channels, and measures how the broker takes it.
#[derive(Debug)]
pub(crate) struct Publisher {
    broker: Arc<dyn Broker>,
    namespaces: Arc<NamespaceTable>,
    /// The state of durable writes: whether the broker accepts them.
    pub(crate) writes: Arc<Writes>,
    /// How long the broker took to publish.
    pub(crate) durations: PublishDurations,
}

impl Publisher {
    pub(super) fn new(
        broker: Arc<dyn Broker>,
        namespaces: Arc<NamespaceTable>,
        runtime: Handle,
    ) -> Self {
        Self {
            writes: Writes::new(broker.clone(), runtime),
            broker,
            namespaces,
            durations: PublishDurations::default(),
        }
    }

    /// Publishes to a channel.
    ///
    /// # Errors
    /// The broker is unavailable or refuses the publication.
    pub(crate) async fn publish(
        &self,
        channel: &ChannelName,
        publish: Publish,
    ) -> Result<Published, BrokerError> {
        let since = now();
        let is_durable = publish.options.is_durable;
        let published = self.broker.publish(channel, publish).await;
        if let (true, Err(error)) = (is_durable, &published) {
            self.writes.failed(error);
        }
        let namespace = self.namespaces.name(self.namespaces.label_of(channel));
        self.durations
            .observe(namespace, published.is_ok(), now() - since);
        published
    }
}
