//! Records of a real Kafka server reach clients, and publications become records.

mod producers;

use std::time::Duration;

use linerate::Client;
use linerate_testkit::server::{KAFKA_LOGIN, KafkaServer};
use rdkafka::{
    ClientConfig, Offset, TopicPartitionList,
    admin::{AdminClient, AdminOptions, NewPartitions, NewTopic, TopicReplication},
    client::DefaultClientContext,
    message::{Header, OwnedHeaders},
    producer::{FutureProducer, FutureRecord, Producer},
};
use serde_json::json;
use tempfile::TempDir;
use tokio::time::sleep;

use crate::support::{Gateway, Json, config, in_time, message};

const TOPIC: &str = "[[kafka.topic]]\nname = \"orders\"\nchannel = \"orders:{key}\"\n";

/// A client that creates topics and writes records.
struct Kafka {
    server: KafkaServer,
    admin: AdminClient<DefaultClientContext>,
    producer: FutureProducer,
}

impl Kafka {
    /// Starts a server with the topic `orders`, which has two partitions.
    async fn start() -> Option<Self> {
        Some(Self::of(KafkaServer::start()?).await)
    }

    /// Starts a server that also accepts TLS and passwords. Its certificate is in the file
    /// `authorities.pem` of the folder.
    async fn start_secure() -> Option<(Self, TempDir)> {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let server = KafkaServer::start_tls(&certificate, &key)?;
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("authorities.pem"), certificate).unwrap();
        Some((Self::of(server).await, directory))
    }

    async fn of(server: KafkaServer) -> Self {
        let mut client = ClientConfig::new();
        client.set("bootstrap.servers", server.address());
        client.set("reconnect.backoff.max.ms", "500");
        let kafka = Self {
            admin: client.create().unwrap(),
            producer: client.create().unwrap(),
            server,
        };
        kafka.create_topic().await;
        kafka
    }

    async fn create_topic(&self) {
        let topic = NewTopic::new("orders", 2, TopicReplication::Fixed(1));
        let created = self.admin.create_topics([&topic], &AdminOptions::new());
        created.await.unwrap().remove(0).unwrap();
    }

    async fn write(&self, partition: i32, key: &str, value: &str) {
        let headers = OwnedHeaders::new().insert(Header {
            key: "kind",
            value: Some("paid"),
        });
        let record = FutureRecord::to("orders").key(key).payload(value);
        let record = record.partition(partition).headers(headers);
        let written = self.producer.send(record, Duration::from_secs(20)).await;
        written.unwrap();
    }

    /// Deletes the records of a partition, as the retention does.
    async fn delete_records(&self, partition: i32) {
        let mut before = TopicPartitionList::new();
        let all = before.add_partition_offset("orders", partition, Offset::End);
        all.unwrap();
        let deleted = self.admin.delete_records(&before, &AdminOptions::new());
        deleted.await.unwrap();
    }

    fn source(&self, rest: &str) -> String {
        let server = self.server.address();
        format!(
            "{DURABLE}[[kafka]]\nname = \"shop\"\nservers = [\"{server}\"]\nsession_timeout_s = 6\n{rest}"
        )
    }
}

/// Channels with a history that outlives the node's own, as far as the embedded broker has one.
const DURABLE: &str =
    "[channel]\nhistory_size = 100\nhistory_ttl_s = 600\nrecover = true\npositioned = true\n";

#[tokio::test(flavor = "multi_thread")]
async fn records_reach_subscribers_and_a_reload_adds_and_removes_the_source() {
    let Some(kafka) = Kafka::start().await else {
        return;
    };
    kafka.write(0, "7", "before the group began").await;
    let toml = kafka.source(TOPIC);
    let gateway = Gateway::open(&toml).await;
    gateway.wait_for_source("reading", "1.0").await;
    gateway.wait_for_source("gaps_total", "1.0").await;
    let mut client = gateway.raw(&Client::new(), "channel=orders:7").await;
    kafka.write(0, "7", "{\"n\": 1}").await;
    let text = message(&mut client).await;
    assert_eq!(text.as_text(), Some("{\"n\": 1}"));
    gateway.reload(config(DURABLE));
    kafka.write(1, "7", "2").await;
    assert_eq!(gateway.source_metric("reading").await, None);
    gateway.reload(config(&toml));
    assert_eq!(message(&mut client).await.as_text(), Some("2"));
    kafka.write(0, "7", "3").await;
    assert_eq!(message(&mut client).await.as_text(), Some("3"));
    gateway.wait_for_source("lag_records", "0.0").await;
    assert_eq!(gateway.source_metric("gaps_total").await.unwrap(), "0.0");
    assert_eq!(gateway.source_metric("refused_total").await.unwrap(), "0.0");
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_of_records_are_published_and_records_that_cannot_be_are_counted() {
    let Some(kafka) = Kafka::start().await else {
        return;
    };
    let topic = "record_bytes_max = 1024\n[[kafka.topic]]\nname = \"orders\"\n\
        channel = \"{header.kind}:{value.customer.id}\"\npayload = \"value.order\"\n\
        tags = { state = \"value.state\" }";
    let gateway = Gateway::open(&kafka.source(topic)).await;
    gateway.wait_for_source("reading", "1.0").await;
    let mut client = Json::connect(&gateway).await;
    client.subscribe("paid:42").await;
    let order = |state: &str| {
        let value = json!({"customer": {"id": 42}, "order": {"n": state}, "state": state});
        value.to_string()
    };
    kafka.write(0, "a", &order("closed")).await;
    kafka.write(0, "a", "not JSON").await;
    kafka.write(0, "a", &order(&"x".repeat(2_000))).await;
    kafka.write(0, "a", &order("open")).await;
    for state in ["closed", "open"] {
        let push = client.next().await;
        let publication = &push["push"]["pub"];
        assert_eq!(publication["data"], json!({"n": state}), "{push}");
        assert_eq!(publication["tags"]["state"], state, "{push}");
    }
    gateway.wait_for_source("refused_total", "2.0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn subscribers_are_told_of_records_that_kafka_deleted_before_they_were_read() {
    let Some(kafka) = Kafka::start().await else {
        return;
    };
    let toml = kafka.source(TOPIC);
    let gateway = Gateway::open(&toml).await;
    gateway.wait_for_source("reading", "1.0").await;
    gateway.wait_for_source("gaps_total", "1.0").await;
    kafka.write(0, "7", "1").await;
    gateway.wait_for_source("published_total", "1.0").await;
    gateway.reload(config(DURABLE));
    let mut client = Json::connect(&gateway).await;
    client.subscribe("orders:7").await;
    kafka.write(0, "7", "lost").await;
    kafka.delete_records(0).await;
    gateway.reload(config(&toml));
    let push = client.next().await;
    assert_eq!(push["push"]["unsubscribe"]["code"], 2500, "{push}");
    gateway.wait_for_source("gaps_total", "1.0").await;
    let mut client = gateway.raw(&Client::new(), "channel=orders:7").await;
    kafka.write(0, "7", "2").await;
    assert_eq!(message(&mut client).await.as_text(), Some("2"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_added_partition_is_read_from_its_first_record() {
    let Some(kafka) = Kafka::start().await else {
        return;
    };
    let gateway = Gateway::open(&kafka.source(TOPIC)).await;
    gateway.wait_for_source("gaps_total", "1.0").await;
    let mut client = gateway.raw(&Client::new(), "channel=orders:7").await;
    let three = NewPartitions::new("orders", 3);
    let added = kafka
        .admin
        .create_partitions([&three], &AdminOptions::new());
    added.await.unwrap();
    in_time(async {
        let partitions = || {
            let of_topic = kafka
                .producer
                .client()
                .fetch_metadata(Some("orders"), Duration::from_secs(5));
            of_topic.unwrap().topics()[0].partitions().len()
        };
        while tokio::task::block_in_place(partitions) < 3 {
            sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    kafka.write(2, "7", "1").await;
    assert_eq!(message(&mut client).await.as_text(), Some("1"));
    assert_eq!(gateway.source_metric("gaps_total").await.unwrap(), "1.0");
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_verified_and_passwords_are_required() {
    let Some((kafka, directory)) = Kafka::start_secure().await else {
        return;
    };
    let authorities = directory.path().join("authorities.pem");
    let [user, secret] = KAFKA_LOGIN;
    let server = kafka.server.secure_address();
    let toml = |password: &str, rest: &str| {
        format!(
            "[[kafka]]\nname = \"shop\"\nservers = [\"{server}\"]\ntls = true\n\
             user = \"{user}\"\npassword = \"{password}\"\n{rest}\n{TOPIC}"
        )
    };
    let trusted = format!("tls_authorities = {authorities:?}");
    for (password, rest) in [(secret, ""), ("wrong", &*trusted)] {
        let gateway = Gateway::open(&toml(password, rest)).await;
        gateway.wait_for_source("failed", "1.0").await;
    }
    for mechanism in ["SCRAM-SHA-256", "PLAIN"] {
        let rest = format!("{trusted}\nsasl_mechanism = \"{mechanism}\"");
        let gateway = Gateway::open(&toml(secret, &rest)).await;
        gateway.wait_for_source("reading", "1.0").await;
        let mut client = gateway.raw(&Client::new(), "channel=orders:7").await;
        kafka.write(0, "7", mechanism).await;
        assert_eq!(message(&mut client).await.as_text(), Some(mechanism));
    }
}

#[tokio::test]
async fn a_cluster_that_is_down_is_reported_and_clients_are_served() {
    let down = linerate_testkit::server::free_port();
    let source = format!("[[kafka]]\nname = \"shop\"\nservers = [\"127.0.0.1:{down}\"]\n{TOPIC}");
    let gateway = Gateway::open(&source).await;
    gateway.wait_for_source("failed", "1.0").await;
    let mut client = gateway.raw(&Client::new(), "channel=a").await;
    gateway.publish("a", "1").await;
    assert_eq!(message(&mut client).await.as_text(), Some("1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_server_loses_and_repeats_nothing() {
    let Some(mut kafka) = Kafka::start().await else {
        return;
    };
    let gateway = Gateway::open(&kafka.source(TOPIC)).await;
    gateway.wait_for_source("gaps_total", "1.0").await;
    gateway.wait_for_source("reading", "1.0").await;
    let mut client = gateway.raw(&Client::new(), "channel=orders:7").await;
    for round in ["1", "2", "3"] {
        kafka.write(0, "7", round).await;
        assert_eq!(message(&mut client).await.as_text(), Some(round));
        if round != "3" {
            kafka.server.crash();
        }
    }
    assert_eq!(gateway.source_metric("gaps_total").await.unwrap(), "1.0");
}
