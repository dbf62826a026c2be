//! Publications are written to topics of a real Kafka server.

use std::time::Duration;

use linerate_testkit::server::KAFKA_LOGIN;
use rdkafka::{
    ClientConfig, Message, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
    message::Headers,
};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::Kafka;
use crate::{
    pusher::{APP, api::post, client::Pusher},
    support::{Gateway, Json, config, error, in_time},
};

const OPEN: &str = "[channel]\nallow_publish = true\nhistory_size = 100\nhistory_ttl_s = 600\n";

/// How many publications a client makes while the server is started again.
const COUNT: usize = 200;

/// A record as another application reads it.
#[derive(Debug)]
struct Read {
    partition: i32,
    key: String,
    value: String,
    headers: Vec<(String, String)>,
}

impl Kafka {
    /// Returns the configuration of a gateway that writes to the topic `orders`.
    fn writer(&self, rest: &str) -> String {
        let server = self.server.address();
        format!(
            "{OPEN}[[kafka]]\nname = \"shop\"\nservers = [\"{server}\"]\n\
             [[kafka.producer]]\ntopic = \"orders\"\nchannels = [\"chat:*\"]\n{rest}"
        )
    }

    /// Reads all records of the topic, of which there must be `count`.
    async fn read(&self, count: usize) -> Vec<Read> {
        let mut client = ClientConfig::new();
        client.set("bootstrap.servers", self.server.address());
        client.set("group.id", "tests");
        client.set("enable.auto.commit", "false");
        let consumer: BaseConsumer = client.create().unwrap();
        let mut partitions = TopicPartitionList::new();
        for partition in 0..2 {
            let added = partitions.add_partition_offset("orders", partition, Offset::Beginning);
            added.unwrap();
        }
        consumer.assign(&partitions).unwrap();
        let read = async {
            let mut records = Vec::new();
            while records.len() < count {
                match consumer.poll(Duration::ZERO) {
                    Some(Ok(message)) => records.push(Read::of(&message)),
                    _ => sleep(Duration::from_millis(10)).await,
                }
            }
            records
        };
        let records = in_time(read).await;
        let more = tokio::task::block_in_place(|| consumer.poll(Duration::from_millis(500)));
        let more = more.and_then(Result::ok).map(|more| Read::of(&more));
        assert!(more.is_none(), "{more:?}");
        records
    }
}

impl Read {
    fn of(message: &impl Message) -> Self {
        let text = |bytes: Option<&[u8]>| String::from_utf8(bytes.unwrap().to_vec()).unwrap();
        let headers = message.headers().into_iter().flat_map(Headers::iter);
        let header = headers.map(|header| (header.key.to_owned(), text(header.value)));
        Self {
            partition: message.partition(),
            key: text(message.key()),
            value: text(message.payload()),
            headers: header.collect(),
        }
    }

    fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(key, _)| key == &format!("linerate-{name}"));
        found.map(|(_, value)| value.as_str())
    }
}

/// Returns the values of the records with this key, in order.
fn values<'a>(records: &'a [Read], key: &str) -> Vec<&'a str> {
    let of_key = records.iter().filter(|record| record.key == key);
    of_key.map(|record| record.value.as_str()).collect()
}

impl Gateway {
    /// Returns the value of a metric of the producer.
    async fn producer_metric(&self, name: &str) -> Option<f64> {
        let answer = crate::http::request(self.address, "GET /metrics", "", b"").await;
        let line = format!("linerate_producer_{name}{{kafka=\"shop\",topic=\"orders\"}} ");
        let text = answer.text().await;
        let found = text.lines().find_map(|it| it.strip_prefix(&line));
        found.map(|value| value.parse().unwrap())
    }

    async fn wait_for_producer(&self, name: &str, value: f64) {
        in_time(async {
            while self.producer_metric(name).await != Some(value) {
                sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
    }
}

async fn publish(client: &mut Json, channel: &str, data: &str) -> Value {
    let command = format!(r#"{{"id":9,"publish":{{"channel":"{channel}","data":{data}}}}}"#);
    client.ask(&command).await
}

#[tokio::test(flavor = "multi_thread")]
async fn publications_of_clients_are_records_with_their_channel_as_the_key() {
    let Some(kafka) = Kafka::start().await else {
        return;
    };
    let gateway = Gateway::open(&kafka.writer("")).await;
    let mut client = Json::connect(&gateway).await;
    for data in [r#"{"text": "ü"}"#, "2", "3"] {
        for channel in ["chat:1", "chat:2", "news"] {
            let reply = publish(&mut client, channel, data).await;
            assert!(reply["publish"].is_object(), "{reply}");
        }
    }
    // Without `api`, the publications of the application are not written.
    gateway.publish("chat:1", "4").await;
    let records = kafka.read(6).await;
    for channel in ["chat:1", "chat:2"] {
        assert_eq!(values(&records, channel), [r#"{"text": "ü"}"#, "2", "3"]);
        let mut partitions = records.iter().filter(|record| record.key == channel);
        let first = partitions.next().unwrap();
        assert!(partitions.all(|record| record.partition == first.partition));
        assert_eq!(first.header("channel"), Some(channel));
        assert!(first.header("client").is_some_and(|id| id.len() == 22));
        assert_eq!(first.header("user"), None);
    }
    gateway.wait_for_producer("stored_total", 6.0).await;
    assert_eq!(gateway.producer_metric("waiting").await, Some(0.0));
    assert_eq!(gateway.producer_metric("waiting_bytes").await, Some(0.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn publications_of_the_application_are_written_if_configured() {
    let Some(kafka) = Kafka::start().await else {
        return;
    };
    let gateway = Gateway::guarded(&kafka.writer("api = true\nwait = false")).await;
    let request = json!({
        "channel": "chat:1", "data": 7, "tags": {"kind": "a", "nul\u{0}": "b"},
        "idempotency_key": "k",
    });
    gateway.api("publish", &request).await;
    let broadcast = json!({"channels": ["chat:2", "news"], "data": {}});
    gateway.api("broadcast", &broadcast).await;
    gateway.publish_bytes("chat:3", b"\xff").await;
    gateway.wait_for_producer("stored_total", 3.0).await;
    gateway.reload(config(
        &kafka.writer("api = true\nwait = false\nqueue_max = 7"),
    ));
    gateway.publish("chat:1", "8").await;
    gateway.wait_for_producer("stored_total", 4.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_pusher_are_written_with_their_names_and_refused_if_kafka_is_down() {
    let Some(mut kafka) = Kafka::start().await else {
        return;
    };
    let toml = kafka.writer("api = true\ntimeout_ms = 5_000");
    let toml = format!("{APP}{}", toml.replace("chat:*", "private-*"));
    let gateway = Gateway::open(&toml).await;
    let mut client = Pusher::connect(&gateway).await;
    client.subscribe("private-a").await;
    let event = json!({"name": "paid", "channel": "private-a", "data": "1"});
    assert_eq!(post(&gateway, "events", &event).await.0, 200);
    assert_eq!(client.event("private-a", "paid").await, 1);
    client.trigger("private-a", "client-typing", json!(2)).await;
    let records = kafka.read(2).await;
    assert_eq!(values(&records, "private-a"), ["1", "2"]);
    let names = records.iter().map(|record| record.header("tag-event"));
    let expected = [Some("paid"), Some("client-typing")];
    assert_eq!(names.collect::<Vec<_>>(), expected);
    let clients = records
        .iter()
        .map(|record| record.header("client").is_some());
    assert_eq!(clients.collect::<Vec<_>>(), [false, true]);
    kafka.server.kill();
    let (status, text) = post(&gateway, "events", &event).await;
    assert_eq!(status, 503);
    assert!(
        text.starts_with("Kafka has not stored the record: "),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publication_that_kafka_does_not_store_in_time_is_refused_and_not_published() {
    let Some(mut kafka) = Kafka::start().await else {
        return;
    };
    let gateway = Gateway::open(&kafka.writer("timeout_ms = 5_000")).await;
    let mut client = Json::connect(&gateway).await;
    kafka.server.kill();
    let reply = publish(&mut client, "chat:1", "1").await;
    let refused = (100, "publication was not stored, try again later");
    assert_eq!(error(&reply), refused);
    assert_eq!(reply["error"]["temporary"], true);
    // Other channels are not affected.
    let reply = publish(&mut client, "news", "1").await;
    assert!(reply["publish"].is_object(), "{reply}");
    assert_eq!(gateway.producer_metric("refused_total").await, Some(1.0));
    assert_eq!(gateway.producer_metric("dropped_total").await, Some(0.0));
    kafka.server.restart();
    // The client may have been closed while the server started, because it did not answer pings.
    let mut client = Json::connect(&gateway).await;
    in_time(async { while publish(&mut client, "chat:1", "2").await["publish"].is_null() {} })
        .await;
    let request = json!({"channel": "chat:1", "limit": 10});
    let history = gateway.api("history", &request).await;
    let published = history["publications"].as_array().unwrap();
    let published = published.iter().map(|publication| &publication["data"]);
    assert_eq!(published.collect::<Vec<_>>(), [&json!(2)]);
    let records = kafka.read(1).await;
    assert_eq!(values(&records, "chat:1"), ["2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn publications_that_do_not_wait_are_queued_up_to_a_limit_and_the_others_counted() {
    let Some(mut kafka) = Kafka::start().await else {
        return;
    };
    let gateway = Gateway::open(&kafka.writer("wait = false\nqueue_max = 2")).await;
    let mut client = Json::connect(&gateway).await;
    kafka.server.kill();
    for data in ["1", "2", "3"] {
        let reply = publish(&mut client, "chat:1", data).await;
        assert!(reply["publish"].is_object(), "{reply}");
    }
    assert_eq!(gateway.producer_metric("waiting").await, Some(2.0));
    assert_eq!(gateway.producer_metric("dropped_total").await, Some(1.0));
    kafka.server.restart();
    gateway.wait_for_producer("stored_total", 2.0).await;
    let records = kafka.read(2).await;
    assert_eq!(values(&records, "chat:1"), ["1", "2"]);
    let offsets = records.iter().map(|record| record.header("offset"));
    assert_eq!(offsets.collect::<Vec<_>>(), [Some("1"), Some("2")]);
    assert!(records[0].header("epoch").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_that_is_too_large_for_kafka_is_refused() {
    let Some(kafka) = Kafka::start().await else {
        return;
    };
    let toml = kafka.writer("").replace(
        "[[kafka.producer]]",
        "record_bytes_max = 1_024\n[[kafka.producer]]",
    );
    let gateway = Gateway::open(&toml).await;
    let mut client = Json::connect(&gateway).await;
    let reply = publish(&mut client, "chat:1", &format!("\"{}\"", "x".repeat(1_023))).await;
    let message = "limit exceeded: payload has 1025 bytes; at most 1024 are allowed in Kafka";
    assert_eq!(error(&reply), (106, message));
    let reply = publish(&mut client, "chat:1", &format!("\"{}\"", "x".repeat(1_022))).await;
    assert!(reply["publish"].is_object(), "{reply}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_adds_and_removes_producers_and_their_channels() {
    let Some(kafka) = Kafka::start().await else {
        return;
    };
    let gateway = Gateway::open(OPEN).await;
    let mut client = Json::connect(&gateway).await;
    publish(&mut client, "chat:1", "0").await;
    assert_eq!(gateway.producer_metric("stored_total").await, None);
    gateway.reload(config(&kafka.writer("")));
    publish(&mut client, "chat:1", "1").await;
    let other = kafka.writer("").replace("chat:*", "other:*");
    gateway.reload(config(&other));
    publish(&mut client, "chat:1", "2").await;
    publish(&mut client, "other:1", "3").await;
    // The counters continue.
    assert_eq!(gateway.producer_metric("stored_total").await, Some(2.0));
    gateway.reload(config(OPEN));
    publish(&mut client, "other:1", "4").await;
    assert_eq!(gateway.producer_metric("stored_total").await, None);
    let records = kafka.read(2).await;
    assert_eq!(values(&records, "chat:1"), ["1"]);
    assert_eq!(values(&records, "other:1"), ["3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_ends_writes_what_waits() {
    let Some(mut kafka) = Kafka::start().await else {
        return;
    };
    let gateway = Gateway::open(&kafka.writer("wait = false")).await;
    let mut client = Json::connect(&gateway).await;
    kafka.server.kill();
    for number in 0..100 {
        publish(&mut client, "chat:1", &number.to_string()).await;
    }
    kafka.server.restart();
    drop(client);
    in_time(gateway.shut_down()).await;
    let records = kafka.read(100).await;
    let expected: Vec<_> = (0..100).map(|number| number.to_string()).collect();
    assert_eq!(values(&records, "chat:1"), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn records_are_written_over_tls_with_a_password() {
    let Some((kafka, directory)) = Kafka::start_secure().await else {
        return;
    };
    let authorities = directory.path().join("authorities.pem");
    let [user, password] = KAFKA_LOGIN;
    let toml = |password: &str| {
        let server = kafka.server.secure_address();
        format!(
            "{OPEN}[[kafka]]\nname = \"shop\"\nservers = [\"{server}\"]\ntls = true\n\
             tls_authorities = {authorities:?}\nuser = \"{user}\"\npassword = \"{password}\"\n\
             [[kafka.producer]]\ntopic = \"orders\"\nchannels = [\"*\"]\ntimeout_ms = 5_000\n\
             compression = \"zstd\"\n"
        )
    };
    let gateway = Gateway::open(&toml(password)).await;
    let mut client = Json::connect(&gateway).await;
    let reply = publish(&mut client, "chat:1", "1").await;
    assert!(reply["publish"].is_object(), "{reply}");
    gateway.reload(config(&toml("wrong")));
    let reply = publish(&mut client, "chat:1", "2").await;
    assert_eq!(error(&reply).0, 100);
    let records = kafka.read(1).await;
    assert_eq!(values(&records, "chat:1"), ["1"]);
}

/// Publishes while the server is killed and started again, and returns what was acknowledged.
async fn acknowledged(kafka: &mut Kafka, gateway: &Gateway) -> Vec<String> {
    let mut client = Json::connect(gateway).await;
    let publishing = tokio::spawn(async move {
        let mut acknowledged = Vec::new();
        for number in 0..COUNT {
            let number = number.to_string();
            if publish(&mut client, "chat:1", &number).await["publish"].is_object() {
                acknowledged.push(number);
            }
            sleep(Duration::from_millis(20)).await;
        }
        acknowledged
    });
    sleep(Duration::from_secs(1)).await;
    kafka.server.crash();
    publishing.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_acknowledged_while_the_server_restarts_is_stored_once_and_in_order() {
    let Some(mut kafka) = Kafka::start().await else {
        return;
    };
    let gateway = Gateway::open(&kafka.writer("timeout_ms = 30_000")).await;
    let acknowledged = acknowledged(&mut kafka, &gateway).await;
    assert_eq!(acknowledged.len(), COUNT);
    let records = kafka.read(COUNT).await;
    assert_eq!(values(&records, "chat:1"), acknowledged);
    gateway.reload(config(&kafka.writer("wait = false")));
    let queued = self::acknowledged(&mut kafka, &gateway).await;
    assert_eq!(queued.len(), COUNT);
    gateway
        .wait_for_producer("stored_total", 2.0 * COUNT as f64)
        .await;
    let records = kafka.read(2 * COUNT).await;
    let expected = [acknowledged, queued].concat();
    assert_eq!(values(&records, "chat:1"), expected);
    assert_eq!(gateway.producer_metric("dropped_total").await, Some(0.0));
}
