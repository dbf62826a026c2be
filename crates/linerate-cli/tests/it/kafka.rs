//! Records of Kafka reach clients once, although Kafka and nodes that read it are killed.

use std::{
    fs,
    time::{Duration, Instant},
};

use linerate_testkit::{
    server::{KafkaServer, RedisServer},
    skip,
};
use rdkafka::{
    ClientConfig, Message, Offset, TopicPartitionList,
    admin::{AdminClient, AdminOptions, NewTopic, TopicReplication},
    client::DefaultClientContext,
    consumer::{BaseConsumer, Consumer},
    producer::{FutureProducer, FutureRecord},
};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use crate::{
    brokers::start_nats,
    support::{PATIENCE, Server},
};

/// The topic of the tests.
const TOPIC: &str = "records";

/// The topic to which nodes write publications.
const WRITTEN: &str = "written";

/// How long no further record must arrive until all records of a topic are read.
const QUIET: Duration = Duration::from_secs(5);

/// The number of partitions of each topic.
const PARTITIONS: usize = 2;

/// How many records are written to each partition before each fault.
const RECORDS: usize = 200;

/// A Kafka server with a topic that the nodes publish, and one to which they write publications.
pub(crate) struct Kafka {
    server: KafkaServer,
    producer: FutureProducer,
}

impl Kafka {
    /// Starts a server. Returns `None` if Kafka is not installed, or the program cannot read it.
    pub(crate) async fn start() -> Option<Self> {
        if !cfg!(feature = "kafka") {
            skip("linerate is built without the feature `kafka`");
            return None;
        }
        let server = KafkaServer::start()?;
        let mut client = ClientConfig::new();
        client.set("bootstrap.servers", server.address());
        let admin: AdminClient<DefaultClientContext> = client.create().unwrap();
        for name in [TOPIC, WRITTEN] {
            let topic = NewTopic::new(name, PARTITIONS as i32, TopicReplication::Fixed(1));
            let created = admin.create_topics([&topic], &AdminOptions::new());
            created.await.unwrap().remove(0).unwrap();
        }
        client.set("enable.idempotence", "true");
        client.set("reconnect.backoff.max.ms", "500");
        let producer = client.create().unwrap();
        Some(Self { server, producer })
    }

    /// Returns the part of the configuration of a node that publishes the topic.
    pub(crate) fn toml(&self, channel: &str) -> String {
        let server = self.server.address();
        format!(
            "[[kafka]]\nname = \"records\"\nservers = [\"{server}\"]\nsession_timeout_s = 6\n\
             start = \"earliest\"\n\
             [[kafka.topic]]\nname = \"{TOPIC}\"\nchannel = \"{channel}\"\n"
        )
    }

    /// Returns the part of the configuration of a node that writes what is published in these
    /// channels.
    pub(crate) fn producer_toml(&self, channels: &[&str]) -> String {
        let server = self.server.address();
        format!(
            "[[kafka]]\nname = \"written\"\nservers = [\"{server}\"]\n\
             [[kafka.producer]]\ntopic = \"{WRITTEN}\"\nchannels = {channels:?}\napi = true\n"
        )
    }

    /// Reads the keys and values of the records that nodes have written, in the order of each key.
    pub(crate) async fn written(&self) -> Vec<(String, String)> {
        let mut client = ClientConfig::new();
        client.set("bootstrap.servers", self.server.address());
        client.set("group.id", "tests");
        client.set("enable.auto.commit", "false");
        let consumer: BaseConsumer = client.create().unwrap();
        let mut all = TopicPartitionList::new();
        for partition in 0..PARTITIONS {
            let added = all.add_partition_offset(WRITTEN, partition as i32, Offset::Beginning);
            added.unwrap();
        }
        consumer.assign(&all).unwrap();
        let text = |bytes: Option<&[u8]>| String::from_utf8(bytes.unwrap().to_vec()).unwrap();
        let (mut records, mut newest) = (Vec::new(), Instant::now());
        while newest.elapsed() < QUIET {
            match consumer.poll(Duration::ZERO) {
                Some(Ok(record)) => {
                    records.push((text(record.key()), text(record.payload())));
                    newest = Instant::now();
                }
                _ => sleep(Duration::from_millis(10)).await,
            }
        }
        records
    }

    /// Returns a client that writes records.
    pub(crate) fn producer(&self) -> FutureProducer {
        self.producer.clone()
    }

    /// Kills the server, and starts it again after a moment.
    pub(crate) async fn crash(&mut self) {
        self.server.kill();
        sleep(Duration::from_millis(500)).await;
        self.server.restart();
    }
}

/// Writes a record, and waits until Kafka has it. Returns false if that is unknown.
pub(crate) async fn write(producer: &FutureProducer, key: &str, value: &str) -> bool {
    let record = FutureRecord::to(TOPIC).key(key).payload(value);
    producer.send(record, PATIENCE).await.is_ok()
}

async fn write_rows(producer: &FutureProducer, first: usize) {
    for number in first..first + RECORDS {
        for partition in 0..PARTITIONS {
            let value = number.to_string();
            let record = FutureRecord::<(), _>::to(TOPIC).payload(&value);
            let record = record.partition(partition as i32);
            producer.send(record, PATIENCE).await.unwrap();
        }
    }
}

async fn nothing_is_lost_or_repeated_on(broker: &str) {
    let Some(mut kafka) = Kafka::start().await else {
        return;
    };
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("linerate.toml").display().to_string();
    let channel = "[channel]\ndurable = true\nhistory_size = 10_000\nhistory_ttl_s = 600\n";
    let toml = format!("{channel}{}", kafka.toml("records:{partition}"));
    fs::write(&file, toml).unwrap();
    let plain = directory.path().join("plain.toml").display().to_string();
    fs::write(&plain, channel).unwrap();
    // A node that does not read, so that its clients stay.
    let server = Server::start_with(&["--broker", broker, "--config", &plain]);
    let mut clients = Vec::new();
    for partition in 0..PARTITIONS {
        let path = format!("/raw?channel=records:{partition}");
        clients.push(server.connect(&path).await);
    }
    let start = || Server::start_with(&["--broker", broker, "--config", &file]);
    let mut nodes = vec![start(), start()];
    all_read(&nodes).await;
    for round in 0..3 {
        let first = round * RECORDS;
        let producer = kafka.producer();
        let written = tokio::spawn(async move { write_rows(&producer, first).await });
        sleep(Duration::from_millis(50)).await;
        match round {
            0 => {
                let mut killed = nodes.remove(0);
                killed.child.kill().unwrap();
                killed.child.wait().unwrap();
            }
            1 => kafka.crash().await,
            // Another rebalance.
            _ => nodes.push(start()),
        }
        for number in first..first + RECORDS {
            for client in &mut clients {
                let message = timeout(PATIENCE, client.recv()).await.unwrap().unwrap();
                let text = message.unwrap();
                assert_eq!(text.as_text(), Some(&*number.to_string()));
            }
        }
        written.await.unwrap();
    }
}

/// Waits until all nodes read.
async fn all_read(nodes: &[Server]) {
    let reading = async {
        for node in nodes {
            let reads = "linerate_source_reading{source=\"records\"} 1.0";
            while !node.get("/metrics").await.text().contains(reads) {
                sleep(Duration::from_millis(20)).await;
            }
        }
    };
    timeout(PATIENCE, reading).await.unwrap();
}

#[tokio::test]
async fn records_are_published_once_on_redis() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    nothing_is_lost_or_repeated_on(&redis.url()).await;
}

#[tokio::test]
async fn records_are_published_once_on_nats() {
    let Some(nats) = start_nats() else {
        return;
    };
    nothing_is_lost_or_repeated_on(&format!("nats://{}", nats.address())).await;
}

#[tokio::test]
async fn a_node_that_ends_in_good_order_leaves_its_partitions_to_another_at_once() {
    let (Some(redis), Some(kafka)) = (RedisServer::start(), Kafka::start().await) else {
        return;
    };
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("linerate.toml").display().to_string();
    fs::write(&file, kafka.toml("records")).unwrap();
    let url = redis.url();
    let start = || Server::start_with(&["--broker", &url, "--config", &file]);
    let mut first = start();
    all_read(std::slice::from_ref(&first)).await;
    let second = start();
    let mut client = second.connect("/raw?channel=records").await;
    for number in 0..10 {
        assert!(write(&kafka.producer(), "key", &number.to_string()).await);
    }
    first.signal("-TERM");
    assert!(first.child.wait().unwrap().success());
    // Less than the time after which Kafka notices that a node has crashed.
    let read = async {
        for number in 0..10 {
            let message = client.recv().await.unwrap().unwrap();
            assert_eq!(message.as_text(), Some(&*number.to_string()));
        }
        assert!(write(&kafka.producer(), "key", "last").await);
        let message = client.recv().await.unwrap().unwrap();
        assert_eq!(message.as_text(), Some("last"));
    };
    timeout(Duration::from_secs(5), read).await.unwrap();
}
