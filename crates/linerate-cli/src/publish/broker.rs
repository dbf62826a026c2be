//! Publishes directly to the broker, as any other client of it could.

use std::{sync::Arc, time::Duration};

use anyhow::bail;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use linerate_broker::{
    BROKERS, BoxFuture, Broker, BrokerKind, BrokerOptions, Event, Ingest, LinkState, Publish,
    StreamOptions,
};
use linerate_hub::{ChannelName, StreamPosition};
use tokio::{sync::watch, time::timeout};

/// Maximum number of publications in progress at the same time.
const AT_ONCE: usize = 64;

/// How long to wait for the link to the broker.
const LINK_MAX: Duration = Duration::from_secs(5);

/// A broker to publish to.
pub(super) struct BrokerTarget {
    broker: Arc<dyn Broker>,
    stream: StreamOptions,
    is_up: watch::Receiver<bool>,
}

/// Ignores all events except that the link is up.
struct LinkMonitor(watch::Sender<bool>);

impl Ingest for LinkMonitor {
    fn ingest(&self, events: Vec<Event>) -> BoxFuture<'_, ()> {
        let is_up = |event: &Event| matches!(event, Event::Link(LinkState::Up { .. }));
        if events.iter().any(is_up) {
            self.0.send_replace(true);
        }
        Box::pin(async {})
    }
}

impl BrokerTarget {
    pub(super) fn new(url: &str, prefix: &str, stream: StreamOptions) -> anyhow::Result<Self> {
        let kind = BrokerKind::find(BROKERS, url)?;
        if kind.is_embedded {
            bail!(
                "cannot publish directly to the embedded broker of a server; use --server instead"
            );
        }
        let options = BrokerOptions {
            prefix: prefix.to_owned(),
            command_timeout: Duration::from_secs(10),
            ..BrokerOptions::default()
        };
        let (link, is_up) = watch::channel(false);
        let broker = kind.connect(url, options, Arc::new(LinkMonitor(link)))?;
        Ok(Self {
            broker,
            stream,
            is_up,
        })
    }

    pub(super) async fn publish(
        &self,
        channel: &ChannelName,
        payloads: Vec<Bytes>,
    ) -> anyhow::Result<Option<StreamPosition>> {
        // A user who may publish but not subscribe never sees the link come up. So a timeout is
        // ignored and publishing is attempted anyway.
        _ = timeout(LINK_MAX, self.is_up.clone().wait_for(|is_up| *is_up)).await;
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
