//! Publishing straight into the broker, as any program may that knows Redis or NATS.

use std::{sync::Arc, time::Duration};

use anyhow::bail;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use linerate_broker::{BoxFuture, Broker, BrokerOptions, Event, Ingest, Publish, StreamOptions};
use linerate_hub::{ChannelName, StreamPosition};

/// Publications that are under way at a time.
const AT_ONCE: usize = 64;

/// A broker.
pub(super) struct BrokerTarget {
    broker: Arc<dyn Broker>,
    stream: StreamOptions,
}

/// Nobody listens here.
struct Nobody;

impl Ingest for Nobody {
    fn ingest(&self, _: Vec<Event>) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

impl BrokerTarget {
    pub(super) fn new(url: &str, prefix: &str, stream: StreamOptions) -> anyhow::Result<Self> {
        if url.starts_with("memory") {
            bail!("the embedded broker is inside of its server; publish with --server");
        }
        let options = BrokerOptions {
            prefix: prefix.to_owned(),
            command_timeout: Duration::from_secs(10),
            ..BrokerOptions::default()
        };
        let broker = linerate_broker::connect(url, options, Arc::new(Nobody))?;
        Ok(Self { broker, stream })
    }

    pub(super) async fn publish(
        &self,
        channel: &ChannelName,
        payloads: Vec<Bytes>,
    ) -> anyhow::Result<Option<StreamPosition>> {
        let publish = |payload| {
            let publish = Publish {
                payload,
                info: None,
                tags: Vec::new(),
                idempotency_key: None,
                options: self.stream,
            };
            self.broker.publish(channel, publish)
        };
        let mut published = stream::iter(payloads).map(publish).buffered(AT_ONCE);
        let mut newest = None;
        while let Some(published) = published.try_next().await? {
            newest = published.position;
        }
        Ok(newest)
    }

    pub(super) async fn close(self) {
        self.broker.shut_down().await;
    }
}
