//! The stage for faults: a broker, two nodes, publishers, subscribers, and the networks between
//! them.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use linerate::tls::rustls::pki_types::ServerName;
use tokio::{net::TcpStream, time::sleep};
use tokio_rustls::TlsConnector;

use super::{
    backend::{Backend, Behavior},
    certificates::Certificates,
    clock::Clock,
    database::Database,
    fault::Fault,
    ledger::{Published, Verdict},
    node::{self, Node, Readiness},
    proxy::Proxy,
    publisher::{Publisher, Way, number},
    sdk::Sdk,
    servers::{self, BrokerServer, Kind},
    subscriber::{Access, Journal, Protocol, Reader, Subscriber},
    webhook::Receiver,
};
use crate::kafka::Kafka;

/// How long subscribers may take to start, and to receive what is outstanding after a fault is
/// repaired.
const SETTLE_MAX: Duration = Duration::from_secs(60);

/// Minimum number of publications before and after a fault.
const PUBLICATIONS_MIN: u64 = 50;

/// How long a node may take to present a new certificate.
const ROTATED_MAX: Duration = Duration::from_secs(10);

/// Interval for polling.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Bytes per second of a slow link and of a slow reader.
const SLOW_LINK: usize = 8 << 10;
const SLOW_READER: usize = 64 << 10;

/// One channel of each kind: with default settings, with history in the node, with history in the
/// broker, and with very little history in the broker.
pub(crate) const CHANNELS: [&str; 4] = ["default:1", "historied:1", "durable:1", "short:1"];

const SDKS: [Protocol; 2] = [Protocol::JavaScript, Protocol::Python];
const READERS: [Protocol; 2] = [Protocol::EventStream, Protocol::Raw];

/// A broker, a node for the publishers, and the node under test with its subscribers.
pub(crate) struct Stage {
    fault: Fault,
    pub(crate) broker: BrokerServer,
    /// The server that replaces the broker.
    heir: Option<BrokerServer>,
    backend: Option<Backend>,
    certificates: Option<Certificates>,
    clock: Option<Clock>,
    database: Option<Database>,
    /// The Kafka server whose records are published.
    kafka: Option<Kafka>,
    /// The Kafka server to which publications are written.
    written: Option<Kafka>,
    /// The network from publishers and their node to the broker.
    road: Proxy,
    /// The network from the node under test to the broker.
    link: Proxy,
    /// The network from clients to the node under test.
    access: Proxy,
    unharmed: Node,
    node: Node,
    publishers: Vec<Publisher>,
    subscribers: Vec<Subscriber>,
    readers: Vec<Reader>,
    bystanders: Vec<Reader>,
    sdks: Vec<Sdk>,
    readiness: [Readiness; 2],
    webhook: Option<Receiver>,
}

/// The verdict on one subscriber.
pub(crate) struct Judged {
    pub(crate) channel: String,
    pub(crate) protocol: Protocol,
    pub(crate) is_bystander: bool,
    /// Number of acknowledged publications, and of those with an unknown result.
    pub(crate) published: [u64; 2],
    pub(crate) verdict: Verdict,
}

/// The outcome of a fault.
pub(crate) struct Outcome {
    pub(crate) judged: Vec<Judged>,
    /// Time until a node was no longer ready, and time until all nodes were ready again.
    pub(crate) red: Option<Duration>,
    pub(crate) green: Option<Duration>,
    /// Events of SDKs other than publications, and the node's log.
    pub(crate) told: String,
    /// What is wrong with the events of the webhook, and with the records that were written.
    pub(crate) mistakes: Vec<String>,
}

impl Stage {
    /// Starts everything, and waits until publications arrive. Returns `None` if a requirement is
    /// not installed.
    pub(crate) async fn set(fault: Fault, kind: Kind) -> Option<Self> {
        let is_small = matches!(fault, Fault::BrokerFull | Fault::BrokerDiskFull);
        let clock = (fault == Fault::ClockStepped).then(Clock::new);
        let certificates = (fault == Fault::CertificateRotated).then(Certificates::new);
        let special = servers::Special {
            clock: clock.as_ref(),
            has_disk: fault == Fault::BrokerDiskFull,
            is_small,
            copies: None,
        };
        let broker = BrokerServer::start(kind, &special)?;
        let copies = Some(broker.port());
        let heir = servers::Special {
            copies,
            ..servers::Special::default()
        };
        let heir = match fault {
            Fault::BrokerReplaced => Some(BrokerServer::start(kind, &heir)?),
            _ => None,
        };
        let road = Proxy::start(broker.port()).await;
        let link = Proxy::start(broker.port()).await;
        let backend = match fault.behavior() {
            Some(_) => Some(Backend::start().await),
            None => None,
        };
        let database = match fault.needs_database() {
            true => Some(Database::start(fault == Fault::DatabaseReplaced)?),
            false => None,
        };
        let kafka = match fault.needs_kafka() {
            true => Some(Kafka::start().await?),
            false => None,
        };
        let written = match fault.writes_kafka() {
            true => Some(Kafka::start().await?),
            false => None,
        };
        let webhook = match fault {
            Fault::WebhookDown => Some(Receiver::start().await),
            _ => None,
        };
        let special = node::Special {
            backend: None,
            database: database.as_ref(),
            kafka: kafka.as_ref(),
            written: written.as_ref(),
            webhook: None,
            clock: clock.as_ref(),
            has_small_broker: is_small,
            certificates: None,
        };
        let unharmed = Node::start(&kind.url(road.port()), &special).await;
        let special = node::Special {
            backend: backend.as_ref(),
            webhook: webhook.as_ref(),
            certificates: certificates.as_ref(),
            ..special
        };
        let node = Node::start(&kind.url(link.port()), &special).await;
        let mut stage = Self {
            fault,
            readiness: [unharmed.watch(), node.watch()],
            heir,
            road,
            link,
            access: Proxy::start(node.address.port()).await,
            unharmed,
            node,
            publishers: Vec::new(),
            subscribers: Vec::new(),
            readers: Vec::new(),
            bystanders: Vec::new(),
            sdks: Vec::new(),
            backend,
            broker,
            certificates,
            clock,
            database,
            kafka,
            written,
            webhook,
        };
        stage.subscribe();
        stage.publish();
        stage.flow().await;
        Some(stage)
    }

    fn subscribe(&mut self) {
        let address = self.access.address();
        let tls = self.certificates.as_ref().map(Certificates::client_config);
        self.start_readers(&Access { address, tls }, false);
        let scheme = if self.certificates.is_some() {
            "wss"
        } else {
            "ws"
        };
        let endpoint = format!("{scheme}://{address}/connection/websocket");
        let authority = self.certificates.as_ref().map(Certificates::authority);
        for protocol in SDKS {
            let of_sdk = self.add_subscribers(protocol, false);
            let sdk = Sdk::start(protocol, &endpoint, authority.as_deref(), of_sdk);
            match sdk {
                Some(sdk) => self.sdks.push(sdk),
                None => self
                    .subscribers
                    .retain(|subscriber| subscriber.protocol != protocol),
            }
        }
        if self.fault.harms_clients_only() {
            let (address, tls) = (self.node.address, None);
            self.start_readers(&Access { address, tls }, true);
        }
    }

    fn start_readers(&mut self, access: &Access, is_bystander: bool) {
        for protocol in READERS {
            for (channel, journal) in self.add_subscribers(protocol, is_bystander) {
                let reader = Reader::start(access.clone(), &channel, protocol, journal);
                if is_bystander {
                    self.bystanders.push(reader);
                } else {
                    self.readers.push(reader);
                }
            }
        }
    }

    /// Adds a subscriber for each channel, and returns their channels and journals.
    fn add_subscribers(
        &mut self,
        protocol: Protocol,
        is_bystander: bool,
    ) -> Vec<(String, Arc<Journal>)> {
        let added = CHANNELS.map(|channel| (channel.to_owned(), Arc::default()));
        self.subscribers
            .extend(added.iter().map(|(channel, journal)| Subscriber {
                channel: channel.clone(),
                protocol,
                is_bystander,
                journal: Arc::clone(journal),
            }));
        added.into()
    }

    /// Starts publishers: directly to the broker for the default channel, and through the database
    /// or Kafka, if there is one, or else through the unharmed node for the others.
    fn publish(&mut self) {
        let padding = self.fault.row().padding;
        for channel in CHANNELS {
            let way = match &self.database {
                _ if channel.starts_with("default:") => {
                    Way::Broker(self.broker.kind, self.road.port())
                }
                Some(database) => Way::Database(Box::new(database.config())),
                None => match &self.kafka {
                    Some(kafka) => Way::Kafka(kafka.producer()),
                    None => Way::Api(self.unharmed.address),
                },
            };
            self.publishers
                .push(Publisher::start(channel, way, padding));
        }
    }

    /// Waits until more publications have been made in each channel, and each subscriber has seen
    /// at least one of them.
    async fn flow(&self) {
        let counts: Vec<u64> = self.publishers.iter().map(Publisher::len).collect();
        let start = Instant::now();
        for (publisher, before) in self.publishers.iter().zip(counts) {
            while publisher.len() < before + PUBLICATIONS_MIN {
                let channel = &publisher.channel;
                assert!(start.elapsed() < SETTLE_MAX, "no publications in {channel}");
                sleep(LOOK_INTERVAL).await;
            }
        }
        for subscriber in &self.subscribers {
            while subscriber.journal.newest().is_none() {
                let (channel, protocol) = (&subscriber.channel, subscriber.protocol);
                assert!(
                    start.elapsed() < SETTLE_MAX,
                    "{protocol:?}: no publications arrive in {channel}"
                );
                sleep(LOOK_INTERVAL).await;
            }
        }
    }

    /// Inflicts the fault for the duration `outage`, then repairs it. Returns when it began.
    pub(crate) async fn inflict(&mut self, outage: Duration) -> Instant {
        let mut broken = Instant::now();
        let end = broken + outage;
        match self.fault {
            Fault::BackendDeaf | Fault::BackendSlow | Fault::BackendWrong => {
                let backend = self.backend.as_ref().expect("a backend");
                backend.behave(self.fault.behavior().expect("a behavior"));
                self.let_clients_reconnect(end).await;
                backend.behave(Behavior::Right);
            }
            Fault::BrokerDiskFull => {
                self.broker.fill_disk();
                broken = Instant::now();
                sleep(outage).await;
                self.broker.empty_disk();
            }
            Fault::BrokerEvicting => {
                while Instant::now() < end {
                    self.broker.evict().await;
                    self.link.cut();
                    self.access.cut();
                    sleep(Duration::from_millis(300)).await;
                    self.link.mend();
                    self.access.mend();
                    sleep(Duration::from_millis(1_200)).await;
                }
                self.broker.keep();
            }
            Fault::BrokerFull => {
                self.broker.fill().await;
                broken = Instant::now();
                sleep(outage).await;
                self.broker.empty().await;
            }
            Fault::BrokerKilled => {
                self.broker.kill();
                sleep(outage).await;
                self.broker.restart();
            }
            Fault::BrokerReplaced => {
                self.broker.kill();
                sleep(outage).await;
                let heir = self.heir.as_ref().expect("a server that takes over");
                heir.promote();
                self.road.lead_to(heir.port());
                self.link.lead_to(heir.port());
            }
            Fault::BrokerRestarted => {
                self.broker.terminate();
                sleep(outage).await;
                self.broker.restart();
            }
            Fault::BrokerStopped => {
                self.broker.pause();
                sleep(outage).await;
                self.broker.resume();
            }
            Fault::CertificateRotated => self.rotate_certificates(end).await,
            Fault::ClientsCut => {
                cut_repeatedly(&self.access).await;
                sleep(outage).await;
                self.access.mend();
            }
            Fault::ClientsSilent => {
                self.access.silence();
                sleep(outage).await;
                self.access.cut();
                sleep(Duration::from_millis(300)).await;
                self.access.mend();
            }
            Fault::ClockStepped => {
                let clock = self.clock.as_ref().expect("a clock");
                for seconds in [3_600, -3_600, 0] {
                    clock.step(seconds);
                    sleep(outage / 3).await;
                }
            }
            Fault::DatabaseCrashed => {
                let database = self.database.as_mut().expect("a database");
                while Instant::now() < end {
                    database.crash().await;
                    sleep(Duration::from_secs(1)).await;
                }
            }
            Fault::DatabaseReplaced => {
                let database = self.database.as_mut().expect("a database");
                database.kill();
                sleep(outage).await;
                database.promote();
            }
            Fault::DatabaseSlotDropped => {
                let database = self.database.as_ref().expect("a database");
                while Instant::now() < end {
                    database.drop_slot();
                    sleep(Duration::from_secs(2)).await;
                }
            }
            Fault::KafkaCrashed => {
                let kafka = self.kafka.as_mut().expect("a Kafka server");
                while Instant::now() < end {
                    kafka.crash().await;
                    sleep(Duration::from_secs(1)).await;
                }
            }
            Fault::KafkaRebalanced => {
                let special = node::Special {
                    kafka: self.kafka.as_ref(),
                    ..node::Special::default()
                };
                let url = self.broker.kind.url(self.broker.port());
                while Instant::now() < end {
                    let mut guest = Node::start(&url, &special).await;
                    sleep(Duration::from_secs(2)).await;
                    guest.terminate().await;
                    let mut guest = Node::start(&url, &special).await;
                    sleep(Duration::from_secs(2)).await;
                    guest.kill();
                }
            }
            Fault::KafkaWrittenCrashed => {
                let kafka = self.written.as_mut().expect("a Kafka server");
                while Instant::now() < end {
                    kafka.crash().await;
                    sleep(Duration::from_secs(1)).await;
                }
            }
            Fault::LinkCut => {
                cut_repeatedly(&self.link).await;
                sleep(outage).await;
                self.link.mend();
            }
            Fault::LinkFlapping => {
                while Instant::now() < end {
                    self.link.cut();
                    sleep(Duration::from_millis(150)).await;
                    self.link.mend();
                    sleep(Duration::from_millis(350)).await;
                }
            }
            Fault::LinkHalfClosed => {
                while Instant::now() < end {
                    self.link.half_close();
                    sleep(outage / 3).await;
                }
            }
            Fault::LinkSilent => {
                self.link.silence();
                sleep(outage).await;
                self.link.mend();
            }
            Fault::LinkSlow => {
                self.link.slow_down(SLOW_LINK);
                sleep(outage).await;
                self.link.mend();
            }
            Fault::NodeDrained => {
                self.access.lead_new_to(self.unharmed.address.port());
                self.node.terminate().await;
                sleep(outage).await;
                self.node.restart().await;
                self.access.lead_to(self.node.address.port());
            }
            Fault::NodeKilled => {
                while Instant::now() < end {
                    self.node.kill();
                    sleep(Duration::from_millis(500)).await;
                    self.node.restart().await;
                    sleep(Duration::from_secs(1)).await;
                }
            }
            Fault::NodeReloaded => {
                let mut ttl = 300;
                while Instant::now() < end {
                    ttl += 1;
                    self.node.configure_ttl(ttl);
                    self.node.signal("-HUP");
                    sleep(Duration::from_millis(200)).await;
                }
            }
            Fault::NodeRestarted => {
                while Instant::now() < end {
                    self.node.terminate().await;
                    self.node.restart().await;
                    sleep(Duration::from_secs(1)).await;
                }
            }
            Fault::NodeStopped => {
                self.node.signal("-STOP");
                sleep(outage).await;
                self.node.signal("-CONT");
            }
            Fault::ReadersSlow => {
                self.access.slow_down(SLOW_READER);
                sleep(outage).await;
                self.access.mend();
            }
            Fault::ReadersStopped => {
                self.let_read(false);
                sleep(outage).await;
                self.let_read(true);
            }
            Fault::WebhookDown => {
                self.webhook.as_ref().expect("a webhook").go_down();
                self.let_clients_reconnect(end).await;
                self.webhook.as_mut().expect("a webhook").come_up().await;
            }
        }
        broken
    }

    /// Cuts the connections of clients every two seconds until `end`.
    async fn let_clients_reconnect(&self, end: Instant) {
        while Instant::now() < end {
            self.access.cut();
            self.access.mend();
            sleep(Duration::from_secs(2)).await;
        }
    }

    /// Rotates the certificate repeatedly until `end`, and cuts connections so that clients see
    /// each new one.
    async fn rotate_certificates(&self, end: Instant) {
        let certificates = self.certificates.as_ref().expect("certificates");
        while Instant::now() < end {
            certificates.rotate();
            let start = Instant::now();
            while shown_certificate(self.node.address, certificates).await
                != Some(certificates.current().to_vec())
            {
                assert!(
                    start.elapsed() < ROTATED_MAX,
                    "the certificate was not replaced"
                );
                sleep(LOOK_INTERVAL).await;
            }
            self.access.cut();
            self.access.mend();
        }
    }

    fn let_read(&self, is_reading: bool) {
        self.readers
            .iter()
            .for_each(|reader| reader.read(is_reading));
        self.sdks.iter().for_each(|sdk| sdk.read(is_reading));
    }

    /// Waits until everything works again, and judges what each subscriber saw.
    pub(crate) async fn judge(mut self, broken: Instant) -> Outcome {
        for readiness in &self.readiness {
            readiness.ready().await;
        }
        self.flow().await;
        if self.database.is_some() {
            // What was committed before there was a slot again is not published, and may be most
            // of what has been committed since the fault.
            self.flow().await;
        }
        let mut published = Vec::new();
        for publisher in self.publishers.drain(..) {
            published.push((publisher.channel.clone(), publisher.end().await));
        }
        let mut judged = Vec::new();
        let settled = Instant::now() + SETTLE_MAX;
        for subscriber in &self.subscribers {
            let of_channel = published
                .iter()
                .find(|(channel, _)| *channel == subscriber.channel);
            let (_, published) = of_channel.expect("every channel has a publisher");
            settle(subscriber, published, settled).await;
            judged.push(Judged {
                channel: subscriber.channel.clone(),
                protocol: subscriber.protocol,
                is_bystander: subscriber.is_bystander,
                published: [published.len(), published.unknown()],
                verdict: published.judge(&subscriber.journal.seen()),
            });
        }
        self.sdks.iter_mut().for_each(Sdk::check);
        let first = self
            .readiness
            .iter()
            .filter_map(|of| of.after(broken, false));
        let green = self
            .readiness
            .iter()
            .filter_map(|of| of.green_after(broken));
        let mut mistakes = match &self.webhook {
            Some(webhook) => webhook.judge(&self.node).await,
            None => Vec::new(),
        };
        if let Some(kafka) = &self.written {
            mistakes.extend(judge_written(&kafka.written().await, &published));
        }
        let told = self.sdks.iter().flat_map(Sdk::told);
        let told = told.chain([self.node.log()]).collect::<Vec<_>>();
        Outcome {
            judged,
            red: first.min(),
            green: green.max(),
            told: told.join("\n"),
            mistakes,
        }
    }
}

/// Checks that Kafka has what was acknowledged in each channel but `default`.
fn judge_written(records: &[(String, String)], published: &[(String, Published)]) -> Vec<String> {
    let [_, channels @ ..] = CHANNELS;
    let of_written = published.iter();
    let of_written = of_written.filter(|(channel, _)| channels.contains(&channel.as_str()));
    let mistake = |(channel, published): &(String, Published)| {
        let of_channel = records.iter().filter(|(key, _)| key == channel);
        let stored = of_channel.filter_map(|(_, value)| number(value));
        let mistake = published.judge_stored(&stored.collect::<Vec<_>>());
        mistake.map(|mistake| format!("records of {channel}: {mistake}"))
    };
    of_written.filter_map(mistake).collect()
}

/// Cuts a network several times for a moment, and then until it is repaired.
async fn cut_repeatedly(way: &Proxy) {
    for _ in 0..3 {
        way.cut();
        way.mend();
        sleep(Duration::from_millis(300)).await;
    }
    way.cut();
}

async fn settle(subscriber: &Subscriber, published: &Published, until: Instant) {
    while subscriber.journal.newest() < published.newest() && Instant::now() < until {
        sleep(LOOK_INTERVAL).await;
    }
}

/// Returns the certificate that a server presents.
async fn shown_certificate(address: SocketAddr, certificates: &Certificates) -> Option<Vec<u8>> {
    let stream = TcpStream::connect(address).await.ok()?;
    let connector = TlsConnector::from(certificates.client_config());
    let stream = connector
        .connect(ServerName::from(address.ip()), stream)
        .await
        .ok()?;
    let (_, connection) = stream.get_ref();
    let shown = connection.peer_certificates()?.first()?;
    Some(shown.to_vec())
}
