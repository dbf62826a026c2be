//! What the tests publish into.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use linerate_broker::{
    Answer, BoxFuture, Broker, BrokerOptions, Event, History, HistoryRequest, Ingest, Memory,
    Publish, Published, StreamOptions,
};
use linerate_hub::ChannelName;
use linerate_source::Sink;
use linerate_testkit::PATIENCE;
use rustls::{ClientConfig, RootCertStore};

struct Ignore;

impl Ingest for Ignore {
    fn ingest(&self, _: Vec<Event>) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

/// The embedded broker, with a record of the gaps.
pub(crate) struct Recorder {
    broker: Memory,
    gaps: Mutex<Vec<Vec<String>>>,
}

impl Recorder {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            broker: Memory::new(&BrokerOptions::default(), Arc::new(Ignore)).unwrap(),
            gaps: Mutex::default(),
        })
    }

    /// Returns the patterns of each gap.
    pub(crate) fn gaps(&self) -> Vec<Vec<String>> {
        self.gaps.lock().unwrap().clone()
    }

    /// Waits until a channel has `count` publications, and returns their payloads.
    pub(crate) async fn wait(&self, channel: &str, count: usize) -> Vec<String> {
        let (channel, since) = (ChannelName::new(channel).unwrap(), Instant::now());
        loop {
            let options = self.options(&channel);
            let history = self
                .broker
                .history(&channel, options, HistoryRequest::default());
            let publications = history.await.unwrap().publications;
            let late = since.elapsed() > PATIENCE;
            if publications.len() >= count || late {
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                let payloads: Vec<_> = publications.iter().map(|it| text(it.payload())).collect();
                assert_eq!(payloads.len(), count, "{payloads:?}");
                return payloads;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Sink for Recorder {
    fn options(&self, _: &ChannelName) -> StreamOptions {
        StreamOptions {
            is_durable: true,
            size_max: 10_000,
            ttl: Duration::from_secs(600),
        }
    }

    fn publish<'a>(&'a self, channel: &'a ChannelName, publish: Publish) -> Answer<'a, Published> {
        self.broker.publish(channel, publish)
    }

    fn history<'a>(
        &'a self,
        channel: &'a ChannelName,
        options: StreamOptions,
        request: HistoryRequest,
    ) -> Answer<'a, History> {
        self.broker.history(channel, options, request)
    }

    fn probe_write(&self) -> Answer<'_, ()> {
        self.broker.probe_write()
    }

    fn report_gap(&self, patterns: Vec<String>) -> BoxFuture<'_, ()> {
        self.gaps.lock().unwrap().push(patterns);
        Box::pin(async {})
    }
}

/// Returns a configuration that trusts no certificate.
pub(crate) fn tls() -> Arc<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    Arc::new(tls)
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < PATIENCE, "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
