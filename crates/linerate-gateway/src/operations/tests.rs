//! Tests of the exposition for Prometheus, and of the files that name metrics.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use linerate_broker::{BrokerOptions, Ingest, Publish, memory::Memory};
use linerate_hub::ChannelName;
use tokio::runtime::Handle;

use super::Snapshot;
use crate::{
    admin::TailEncoding,
    auth::TokenError,
    backend::Backends,
    config::{
        BackendOptions, Config, KafkaOptions, KafkaProducer, Namespaces, Secret, WebhookOptions,
    },
    metrics::{Metrics, TokenKind},
    node::{Dispatcher, Node, NodeOptions},
    producer::ProducerSetup,
    protocol,
    server::{Frontend, Hosts, Stop},
    webhook::Endpoint,
};

/// Returns a node without clients.
fn quiet_node() -> Arc<Node> {
    let (dispatcher, control) = Dispatcher::new(1);
    let ingest: Arc<dyn Ingest> = dispatcher.clone();
    let broker = Memory::new(&BrokerOptions::default(), ingest).unwrap();
    let options = NodeOptions {
        name: "test".into(),
        encodings: protocol::encoders(),
        tail_encoding: Arc::new(TailEncoding),
        namespaces: Namespaces::new(&Config::default()),
        seed: 0,
        linger: Duration::ZERO,
        revocations_max: 100,
        filter: Config::default().filter,
    };
    let runtime = Handle::current();
    Node::start(options, (dispatcher, control), Arc::new(broker), runtime)
}

/// Returns the metrics of a node without clients after one publication.
async fn text(metrics: &Metrics) -> String {
    let node = quiet_node();
    let channel = ChannelName::new("news").unwrap();
    let publish = Publish {
        payload: "1".into(),
        info: None,
        tags: Vec::new(),
        idempotency_key: None,
        options: node.namespaces.current().options(&channel).stream(),
    };
    node.publisher.publish(&channel, publish).await.unwrap();
    let (_stop, stopped) = Stop::new();
    let frontend = Frontend::new(
        &Config::default().server,
        Hosts::new(&Config::default()),
        1,
        stopped,
    )
    .unwrap();
    let backend = BackendOptions {
        name: "app".into(),
        url: "http://localhost/".into(),
        ..BackendOptions::default()
    };
    let backends = Backends::new(&[backend], None).unwrap();
    let secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
    let webhook = WebhookOptions {
        name: "app".into(),
        url: Secret::new("http://localhost/"),
        secret: Some(Secret::new(secret)),
        ..WebhookOptions::default()
    };
    let endpoint = Endpoint::new(&webhook, None).unwrap();
    node.replace_webhooks(&[Arc::new(endpoint)]);
    let kafka = KafkaOptions {
        name: "shop".to_owned(),
        servers: vec!["localhost:1".to_owned()],
        producers: vec![KafkaProducer {
            topic: "orders".to_owned(),
            ..KafkaProducer::default()
        }],
        ..KafkaOptions::default()
    };
    let producers = ProducerSetup::all_of(&kafka).unwrap();
    let producers: Vec<_> = producers.into_iter().map(Arc::new).collect();
    node.producers.replace(&producers);
    let snapshot = Snapshot::take(&node, &frontend).await;
    let snapshot = snapshot.with_backends(&backends);
    let source = ("shop".to_owned(), Arc::default());
    let snapshot = snapshot.with_sources(&[source]);
    let feed = ("channels".to_owned(), Arc::default());
    let snapshot = snapshot.with_feeds(&[feed]);
    snapshot.into_text(metrics).unwrap()
}

/// Returns the names that samples have or can have in an OpenMetrics text.
fn names(text: &str) -> BTreeSet<String> {
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let names = types.flat_map(|line| {
        let (name, kind) = line.split_once(' ').unwrap();
        let suffixes: &[&str] = match kind {
            "counter" => &["_total"],
            "gauge" => &[""],
            "histogram" => &["_bucket", "_count", "_sum"],
            _ => panic!("{line}"),
        };
        suffixes.iter().map(move |suffix| format!("{name}{suffix}"))
    });
    names.collect()
}

/// Returns the name under which a sample is documented. Histograms have three kinds of samples.
fn family(name: &str) -> &str {
    let suffixes = ["_bucket", "_count", "_sum"];
    let mut families = suffixes
        .iter()
        .filter_map(|suffix| name.strip_suffix(suffix));
    families.next().unwrap_or(name)
}

/// Returns metrics in which everything was counted at least once.
fn used() -> Metrics {
    let metrics = Metrics::default();
    metrics.count_token(TokenKind::Connection, &Ok(()));
    metrics.count_token::<()>(TokenKind::Subscription, &Err(TokenError::Expired));
    metrics.count_disconnect(3_008);
    metrics.count_disconnect(4_711);
    metrics.count_recovery(true);
    metrics.count_command("publish", Duration::from_millis(3));
    metrics.count_request("info", Duration::from_secs(11));
    metrics.count_question("app", "subscribe", "ok", Duration::from_millis(3));
    metrics
}

#[tokio::test]
async fn what_was_counted_is_read() {
    let text = text(&used()).await;
    for line in [
        "# TYPE linerate_connections gauge",
        "linerate_connections 0.0",
        "linerate_broker_link_up 1.0",
        "linerate_auth_total{kind=\"subscription\",result=\"expired\"} 1",
        "linerate_auth_total{kind=\"connection\",result=\"keys_unavailable\"} 0",
        "linerate_disconnects_total{code=\"3008\"} 1",
        "linerate_disconnects_total{code=\"0\"} 1",
        "linerate_recoveries_total{result=\"ok\"} 1",
        "linerate_dropped_total{reason=\"ring_evicted\"} 0.0",
        "linerate_gaps_sent_total{reason=\"link_lost\"} 0.0",
        "linerate_command_seconds_bucket{le=\"0.0025\",method=\"publish\"} 0",
        "linerate_command_seconds_bucket{le=\"0.005\",method=\"publish\"} 1",
        "linerate_publish_seconds_count{namespace=\"\",result=\"ok\"} 1",
        "linerate_command_seconds_count{method=\"publish\"} 1",
        "linerate_api_seconds_bucket{le=\"10.0\",method=\"info\"} 0",
        "linerate_api_seconds_bucket{le=\"+Inf\",method=\"info\"} 1",
        "linerate_backend_paused{backend=\"app\"} 0.0",
        "linerate_webhook_waiting{webhook=\"app\"} 0.0",
        "linerate_producer_stored_total{kafka=\"shop\",topic=\"orders\"} 0.0",
        "# EOF",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert!(
        names(&text).contains("process_resident_memory_bytes"),
        "{text}"
    );
}

#[tokio::test]
async fn every_metric_in_the_packaging_and_the_documentation_exists() {
    let known = names(&text(&used()).await);
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    for file in [
        "packaging/grafana/linerate.json",
        "packaging/prometheus/alerts.yml",
        "docs/gateway/operating.md",
    ] {
        let content = std::fs::read_to_string(format!("{root}/{file}")).unwrap();
        let is_part = |char: char| char.is_ascii_lowercase() || char == '_';
        let words = content.split(|char| !is_part(char));
        let named: BTreeSet<&str> = words.filter(|word| word.starts_with("linerate_")).collect();
        assert!(named.len() > 5, "{file} names metrics");
        // The name of a crate, as used in log levels, is not the name of a metric.
        for name in named.into_iter().filter(|name| *name != "linerate_gateway") {
            let is_known = |sample: &String| sample == name || family(sample) == name;
            assert!(known.iter().any(is_known), "{file} names {name}");
        }
    }
}

#[tokio::test]
async fn every_metric_is_documented() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let content = std::fs::read_to_string(format!("{root}/docs/gateway/operating.md")).unwrap();
    for name in names(&text(&used()).await) {
        assert!(
            content.contains(&format!("`{}`", family(&name))),
            "{name} is not documented"
        );
    }
}
