//! All metrics in the text format that Prometheus reads.

use std::{fmt, sync::Arc, time::Duration};

use linerate_broker::LinkState;
use linerate_budget::{Budget, Consumer};
use linerate_hub::{GapCause, hub::Totals};
use linerate_kafka::ProducerStatus;
use linerate_source::{SourceState, Status};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, text},
    registry::Registry,
};

use super::{
    deliveries,
    figure::{Figure, Kind, Labels, Value},
    process::Process,
};
use crate::{
    backend::{Backend, Backends},
    metrics::{Metrics, PublishDurations},
    node::{Node, Tally},
    server::Frontend,
    source::FeedStatus,
    webhook::WebhookCounts,
};

/// Prefix of all metric names.
const PREFIX: &str = "linerate";

/// A figure of each of several objects: its name, help text, kind and value.
type FigureOf<T> = (&'static str, &'static str, Kind, fn(&T) -> f64);

/// The counts of the node, its workers and its listeners at one moment.
#[derive(Debug)]
pub(crate) struct Snapshot {
    figures: Vec<Figure>,
    publishes: PublishDurations,
}

impl Snapshot {
    /// Collects the values from the node, its workers and listeners. A worker that is too busy to
    /// answer contributes its last known counts.
    pub(crate) async fn take(node: &Node, frontend: &Frontend) -> Self {
        let mut snapshot = Self {
            figures: Vec::new(),
            publishes: node.publisher.durations.clone(),
        };
        snapshot.add_frontend(frontend);
        snapshot.add_node(node);
        snapshot.add_memory(&node.budget);
        snapshot.add_broker(node);
        snapshot.add_webhooks(node);
        snapshot.add_producers(node);
        snapshot.add_hubs(node, node.tallies.all().await);
        snapshot
    }

    /// Returns these counts, those in `metrics` and those of the process in the OpenMetrics text
    /// format, which Prometheus reads.
    ///
    /// # Errors
    /// Never fails in practice, because writing to a string cannot fail.
    pub(crate) fn into_text(self, metrics: &Metrics) -> Result<String, fmt::Error> {
        let mut ours = Registry::with_prefix(PREFIX);
        metrics.register(&mut ours);
        self.publishes.register(&mut ours);
        ours.register_collector(Box::new(self));
        let mut process = Registry::default();
        process.register_collector(Box::new(Process::look()));
        let mut text = String::new();
        text::encode_registry(&mut text, &ours)?;
        text::encode_registry(&mut text, &process)?;
        text::encode_eof(&mut text)?;
        Ok(text)
    }

    /// Adds the state of the backends, if there are any.
    pub(crate) fn with_backends(mut self, backends: &Backends) -> Self {
        let of_each = |value: fn(&Backend) -> f64| {
            let all = backends.all().into_iter();
            all.map(move |backend| (backend.name().to_owned(), value(&backend)))
        };
        if of_each(|_| 0.0).next().is_none() {
            return self;
        }
        let help = "Requests to backends that are sent or wait";
        let requests = of_each(|backend| backend.open_requests() as f64);
        self.labelled("backend_requests", help, Kind::Gauge, "backend", requests);
        let help = "1 while a backend is not asked because it does not answer";
        let paused = of_each(|backend| f64::from(u8::from(backend.is_paused())));
        self.labelled("backend_paused", help, Kind::Gauge, "backend", paused);
        self
    }

    /// Adds what the sources have done, if there are any.
    pub(crate) fn with_sources(mut self, sources: &[(String, Arc<Status>)]) -> Self {
        if sources.is_empty() {
            return self;
        }
        let figures: [FigureOf<Arc<Status>>; 8] = [
            (
                "source_reading",
                "1 while this node reads a source",
                Kind::Gauge,
                |it| f64::from(u8::from(it.state() == SourceState::Reading)),
            ),
            (
                "source_failed",
                "1 while a source cannot be read",
                Kind::Gauge,
                |it| f64::from(u8::from(matches!(it.state(), SourceState::Failed(_)))),
            ),
            (
                "source_published",
                "Publications that this node has read from a source",
                Kind::Counter,
                |it| it.published() as f64,
            ),
            (
                "source_repeated",
                "Changes that were read again and not published again",
                Kind::Counter,
                |it| it.repeated() as f64,
            ),
            (
                "source_refused",
                "Changes that cannot be published",
                Kind::Counter,
                |it| it.refused() as f64,
            ),
            (
                "source_gaps",
                "Gaps of a source that subscribers were told of",
                Kind::Counter,
                |it| it.gaps() as f64,
            ),
            (
                "source_lag_bytes",
                "Log that the database has written and this node has not published",
                Kind::Gauge,
                |it| it.lag_bytes() as f64,
            ),
            (
                "source_lag_records",
                "Records of the partitions that this node reads and has not published",
                Kind::Gauge,
                |it| it.lag_records() as f64,
            ),
        ];
        self.add_figures("source", &figures, sources);
        self
    }

    /// Adds what was read in Redis for Socket.IO, if anything is.
    pub(crate) fn with_feeds(mut self, feeds: &[(String, Arc<FeedStatus>)]) -> Self {
        if feeds.is_empty() {
            return self;
        }
        let figures: [FigureOf<Arc<FeedStatus>>; 6] = [
            (
                "socketio_feed_up",
                "1 while what is published in Redis for Socket.IO arrives",
                Kind::Gauge,
                |it| f64::from(u8::from(it.is_up())),
            ),
            (
                "socketio_feed_events",
                "Events from Redis for rooms with clients on this node, or for any rooms",
                Kind::Counter,
                |it| it.events() as f64,
            ),
            (
                "socketio_feed_requests",
                "Requests from Redis to move or to disconnect clients",
                Kind::Counter,
                |it| it.requests() as f64,
            ),
            (
                "socketio_feed_ignored",
                "Packets from Redis that concern only servers of Socket.IO",
                Kind::Counter,
                |it| it.ignored() as f64,
            ),
            (
                "socketio_feed_refused",
                "Packets from Redis that are malformed or exceed a limit",
                Kind::Counter,
                |it| it.refused() as f64,
            ),
            (
                "socketio_feed_gaps",
                "How often events from Redis may have been missed, and clients were told",
                Kind::Counter,
                |it| it.gaps() as f64,
            ),
        ];
        self.add_figures("feed", &figures, feeds);
        self
    }

    /// Adds the numbers of the webhooks, if there are any.
    fn add_webhooks(&mut self, node: &Node) {
        let all = node.webhooks.all();
        if all.is_empty() {
            return;
        }
        let counts = all
            .iter()
            .map(|webhook| (webhook.name().to_owned(), webhook.counts()));
        let counts: Vec<_> = counts.collect();
        let figures: [FigureOf<WebhookCounts>; 5] = [
            (
                "webhook_delivered",
                "Events delivered to webhooks",
                Kind::Counter,
                |it| it.delivered as f64,
            ),
            (
                "webhook_dropped",
                "Events for webhooks dropped because their queue was full",
                Kind::Counter,
                |it| it.dropped as f64,
            ),
            (
                "webhook_retries",
                "Failed attempts to send a batch to a webhook",
                Kind::Counter,
                |it| it.retries as f64,
            ),
            (
                "webhook_waiting",
                "Events that wait for a webhook or are being sent",
                Kind::Gauge,
                |it| it.waiting as f64,
            ),
            (
                "webhook_waiting_bytes",
                "Memory of the events that wait for a webhook",
                Kind::Gauge,
                |it| it.bytes as f64,
            ),
        ];
        self.add_figures("webhook", &figures, &counts);
        let help = "Channels and members on this node whose occupancy webhooks are told";
        self.gauge("webhook_places", help, node.occupancy.count() as f64);
    }

    /// Adds the numbers of the producers, if there are any.
    fn add_producers(&mut self, node: &Node) {
        let producers = node.producers.statuses();
        if producers.is_empty() {
            return;
        }
        let figures: [FigureOf<ProducerStatus>; 5] = [
            (
                "producer_stored",
                "Records that Kafka has stored",
                Kind::Counter,
                |it| it.stored() as f64,
            ),
            (
                "producer_refused",
                "Publications refused because Kafka has not stored their records",
                Kind::Counter,
                |it| it.refused() as f64,
            ),
            (
                "producer_dropped",
                "Publications whose records Kafka has not stored",
                Kind::Counter,
                |it| it.dropped() as f64,
            ),
            (
                "producer_waiting",
                "Records that Kafka has not stored yet",
                Kind::Gauge,
                |it| it.waiting() as f64,
            ),
            (
                "producer_waiting_bytes",
                "Memory of the records that Kafka has not stored yet",
                Kind::Gauge,
                |it| it.waiting_bytes() as f64,
            ),
        ];
        for (name, help, kind, value) in figures {
            let values = producers.iter().map(|([kafka, topic], status)| {
                let labels = vec![("kafka", kafka.clone()), ("topic", topic.clone())];
                (labels, Value::Number(value(status)))
            });
            let values = values.collect();
            self.push(Figure {
                name,
                help,
                kind,
                values,
            });
        }
    }

    fn add_frontend(&mut self, frontend: &Frontend) {
        let admission = &frontend.admission;
        self.gauge("connections", "Open connections", admission.open() as f64);
        let help = "Connections accepted, including those refused afterwards";
        self.counter("connections_accepted", help, admission.accepted() as f64);
        let help = "Connections refused because a limit was reached or memory was short";
        self.counter("connections_refused", help, admission.refused() as f64);
    }

    fn add_node(&mut self, node: &Node) {
        let info = node.status.info();
        self.push(Figure {
            name: "clients",
            help: "Connected clients",
            kind: Kind::Gauge,
            values: dialects(node),
        });
        self.gauge("users", "Distinct connected users", info.users as f64);
        self.gauge(
            "channels",
            "Channels with subscribers",
            info.channels as f64,
        );
        self.gauge(
            "nodes",
            "Known nodes, including this one",
            node.cluster.nodes_count() as f64,
        );
        let is_draining = *node.draining().borrow();
        self.gauge(
            "draining",
            "1 while the node is draining",
            f64::from(u8::from(is_draining)),
        );
        self.gauge(
            "uptime_seconds",
            "Time since the start",
            node.status.uptime().as_secs_f64(),
        );
        let version = vec![("version", env!("CARGO_PKG_VERSION").into())];
        self.push(Figure {
            name: "build_info",
            help: "Constant 1, with the version as a label",
            kind: Kind::Gauge,
            values: vec![(version, Value::Number(1.0))],
        });
    }

    fn add_memory(&mut self, budget: &Budget) {
        let help = "Size of the memory budget; 0 if it is unlimited";
        let bytes_max = budget.bytes_max().unwrap_or(0);
        self.gauge("memory_budget_bytes", help, bytes_max as f64);
        let help = "State of the memory budget: 0 normal, 1 tight, 2 critical";
        self.gauge("memory_budget_state", help, f64::from(budget.state() as u8));
        let by_consumer = |value: fn(&Budget, Consumer) -> u64| {
            let values = Consumer::ALL.into_iter();
            values.map(move |consumer| (consumer.name(), value(budget, consumer) as f64))
        };
        let help = "Bytes of the memory budget in use";
        let used = by_consumer(Budget::used);
        self.labelled("memory_used_bytes", help, Kind::Gauge, "consumer", used);
        let help = "Times that something was closed to free memory";
        let sheds = by_consumer(Budget::sheds);
        self.labelled("memory_sheds", help, Kind::Counter, "consumer", sheds);
        let help = "Times that a request for memory was refused";
        let refusals = by_consumer(Budget::refusals);
        self.labelled("memory_refusals", help, Kind::Counter, "consumer", refusals);
    }

    fn add_broker(&mut self, node: &Node) {
        let dispatcher = &node.dispatcher;
        let arrived = dispatcher.arrived();
        let messages = arrived.publications as f64;
        self.counter("broker_messages", "Publications from the broker", messages);
        self.counter(
            "broker_bytes",
            "Payload bytes of the publications from the broker",
            arrived.bytes as f64,
        );
        let help = "Bursts in which publications arrived from the broker";
        self.counter("broker_bursts", help, arrived.bursts as f64);
        let help = "Publications discarded because a worker did not keep up";
        let overflowed = arrived.overflowed as f64;
        self.counter("broker_overflowed_messages", help, overflowed);
        let help = "Publications from the broker queued for the workers";
        self.gauge("broker_waiting_messages", help, dispatcher.waiting() as f64);
        let help = "Durable publications that the broker refused";
        let refused = node.publisher.writes.refused() as f64;
        self.counter("broker_writes_refused", help, refused);
        let help = "1 while the broker refuses durable publications";
        let are_refused = f64::from(u8::from(node.publisher.writes.are_refused()));
        self.gauge("broker_refuses_writes", help, are_refused);
        let (is_up, round_trip) = match node.broker.link() {
            LinkState::Up { round_trip } => (1.0, round_trip),
            LinkState::Deaf => (0.0, Duration::ZERO),
        };
        self.gauge(
            "broker_link_up",
            "1 if the last loopback publication came back in time",
            is_up,
        );
        let help = "Round-trip time of the last loopback publication; 0 while nothing arrives";
        self.gauge(
            "broker_probe_latency_seconds",
            help,
            round_trip.as_secs_f64(),
        );
        let (gaps, lasted) = dispatcher.timeline.gaps();
        self.counter(
            "broker_gaps",
            "Gaps during which publications may have been missed",
            gaps as f64,
        );
        self.counter(
            "broker_gap_seconds",
            "Maximum total duration of these gaps",
            lasted.as_secs_f64(),
        );
    }

    fn add_hubs(&mut self, node: &Node, tallies: Vec<Tally>) {
        let (totals, given): (Vec<_>, Vec<_>) = tallies
            .into_iter()
            .map(|tally| (tally.totals, tally.deliveries))
            .unzip();
        self.figures
            .extend(deliveries::figures(node, given.into_iter().flatten()));
        self.add_totals(&totals);
    }

    fn add_totals(&mut self, totals: &[Totals]) {
        let sum = |count: fn(&Totals) -> u64| totals.iter().map(count).sum::<u64>() as f64;
        for (name, help, count) in [
            (
                "blocks_built",
                "Encoded blocks, each shared by many subscribers",
                sum(|it| it.frozen_blocks),
            ),
            (
                "blocks_built_bytes",
                "Bytes of encoded blocks",
                sum(|it| it.frozen_bytes),
            ),
            (
                "conflated",
                "Publications replaced by newer ones",
                sum(|it| it.conflated),
            ),
            (
                "slow_disconnects",
                "Clients disconnected because they were too slow",
                sum(|it| it.slow_disconnects),
            ),
        ] {
            self.counter(name, help, count);
        }
        let reasons = [
            ("duplicate", sum(|it| it.dropped_duplicate)),
            ("ring_evicted", sum(|it| it.dropped_evicted)),
            ("unencodable", sum(|it| it.unencodable)),
        ];
        let help = "Publications that were not delivered to subscribers";
        self.labelled("dropped", help, Kind::Counter, "reason", reasons);
        let causes = GapCause::ALL.into_iter().enumerate();
        let causes = causes.map(|(index, cause)| {
            let told = totals.iter().map(|it| it.gaps[index]).sum::<u64>();
            (cause.as_str(), told as f64)
        });
        self.labelled(
            "gaps_sent",
            "Gaps reported to subscribers",
            Kind::Counter,
            "reason",
            causes,
        );
    }

    fn gauge(&mut self, name: &'static str, help: &'static str, value: f64) {
        self.single(name, help, Kind::Gauge, value);
    }

    fn counter(&mut self, name: &'static str, help: &'static str, value: f64) {
        self.single(name, help, Kind::Counter, value);
    }

    fn single(&mut self, name: &'static str, help: &'static str, kind: Kind, value: f64) {
        let values = vec![(Vec::new(), Value::Number(value))];
        self.push(Figure {
            name,
            help,
            kind,
            values,
        });
    }

    /// Adds figures of each object, with its name as the value of `label`.
    fn add_figures<T>(
        &mut self,
        label: &'static str,
        figures: &[FigureOf<T>],
        objects: &[(String, T)],
    ) {
        for (name, help, kind, value) in figures {
            let values = objects.iter().map(|(name, it)| (name.clone(), value(it)));
            self.labelled(name, help, *kind, label, values);
        }
    }

    fn labelled(
        &mut self,
        name: &'static str,
        help: &'static str,
        kind: Kind,
        label: &'static str,
        values: impl IntoIterator<Item = (impl Into<Arc<str>>, f64)>,
    ) {
        let values = values.into_iter();
        let values = values
            .map(|(value, count)| (vec![(label, value.into())], Value::Number(count)))
            .collect();
        self.push(Figure {
            name,
            help,
            kind,
            values,
        });
    }

    fn push(&mut self, figure: Figure) {
        self.figures.push(figure);
    }
}

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut figures = self.figures.iter();
        figures.try_for_each(|figure| figure.encode(&mut encoder))
    }
}

/// Returns the number of clients by protocol and transport.
fn dialects(node: &Node) -> Vec<(Labels, Value)> {
    let dialects = node.counts.dialects().into_iter();
    dialects
        .map(|((protocol, transport), clients)| {
            let labels = vec![
                ("protocol", protocol.into()),
                ("transport", transport.into()),
            ];
            (labels, Value::Number(clients as f64))
        })
        .collect()
}
