//! Tests with the mock cluster of librdkafka.

use std::{sync::Arc, time::Duration};

use linerate_budget::Budget;
use rdkafka::{
    mocking::MockCluster,
    producer::DefaultProducerContext,
    types::{RDKafkaApiKey, RDKafkaRespErr},
};
use tokio::time::{sleep, timeout};

use super::{NewRecord, ProduceError, Producer, ProducerStatus};
use crate::options::{ClusterOptions, Compression, ProducerOptions};

type Cluster = MockCluster<'static, DefaultProducerContext>;

fn cluster() -> Cluster {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic("chat", 1, 1).unwrap();
    cluster
}

fn start(cluster: &Cluster, record_timeout: Option<Duration>) -> (Producer, Arc<ProducerStatus>) {
    let status = Arc::<ProducerStatus>::default();
    let options = options(cluster, record_timeout);
    let producer = Producer::new(options, status.clone(), Budget::unbounded());
    (producer, status)
}

fn options(cluster: &Cluster, record_timeout: Option<Duration>) -> ProducerOptions {
    ProducerOptions {
        name: "shop".to_owned(),
        cluster: ClusterOptions {
            servers: vec![cluster.bootstrap_servers()],
            tls: None,
            login: None,
        },
        topic: "chat".to_owned(),
        compression: Compression::Lz4,
        record_bytes_max: 100,
        timeout: record_timeout,
        queue_max: 1,
        queue_bytes_max: 1 << 20,
    }
}

fn record(value: &[u8]) -> NewRecord<'_> {
    NewRecord {
        key: "room",
        value,
        headers: &[],
    }
}

async fn store(producer: &Producer, value: &[u8]) -> Result<(), ProduceError> {
    let stored = timeout(Duration::from_secs(30), producer.store(&record(value)));
    stored.await.unwrap()
}

/// Waits until a counter has reached `expected`.
async fn reach(count: impl Fn() -> u64, expected: u64) {
    let reached = async {
        while count() < expected {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(30), reached).await.unwrap();
}

#[tokio::test]
async fn a_client_that_has_failed_for_good_is_replaced() {
    let cluster = cluster();
    let (producer, status) = start(&cluster, Some(Duration::from_secs(5)));
    assert_eq!(store(&producer, b"1").await, Ok(()));
    let lost = RDKafkaRespErr::RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER;
    cluster.request_errors(RDKafkaApiKey::Produce, &[lost]);
    let error = store(&producer, b"2").await.unwrap_err();
    assert!(matches!(error, ProduceError::NotStored(_)), "{error}");
    assert_eq!(store(&producer, b"3").await, Ok(()));
    assert_eq!((status.stored(), status.refused()), (2, 1));
    assert_eq!((status.waiting(), status.waiting_bytes()), (0, 0));
}

#[tokio::test]
async fn a_record_that_is_not_stored_in_time_is_refused() {
    let cluster = cluster();
    let (producer, status) = start(&cluster, Some(Duration::from_secs(1)));
    cluster.broker_down(1).unwrap();
    let error = store(&producer, b"1").await.unwrap_err();
    let message = "Kafka has not stored the record: MessageTimedOut (Local: Message timed out)";
    assert_eq!(error.to_string(), message);
    cluster.broker_up(1).unwrap();
    assert_eq!(status.refused(), 1);
}

#[tokio::test]
async fn a_record_that_cannot_be_queued_is_refused_or_counted() {
    let cluster = cluster();
    let (producer, status) = start(&cluster, None);
    let error = store(&producer, &[0; 101]).await.unwrap_err();
    let message = "payload has 101 bytes; at most 100 are allowed in Kafka";
    assert_eq!(error.to_string(), message);
    cluster.broker_down(1).unwrap();
    producer.queue(&record(&[0; 100]));
    producer.queue(&record(b"2"));
    assert_eq!((status.waiting(), status.dropped()), (1, 1));
    cluster.broker_up(1).unwrap();
    reach(|| status.stored(), 1).await;
    assert_eq!((status.refused(), status.dropped()), (1, 1));
}

#[tokio::test]
async fn records_that_wait_use_at_most_a_quarter_of_the_memory_budget() {
    let cluster = cluster();
    let options = ProducerOptions {
        queue_max: 10_000,
        ..options(&cluster, None)
    };
    cluster.broker_down(1).unwrap();
    let status = Arc::<ProducerStatus>::default();
    let producer = Producer::new(options, status.clone(), Budget::new(1 << 20));
    for _ in 0..1_000 {
        producer.queue(&record(b"1"));
    }
    assert!(status.dropped() > 100, "{status:?}");
    let bytes = status.waiting_bytes();
    assert!((200 << 10..=256 << 10).contains(&bytes), "{bytes}");
    cluster.broker_up(1).unwrap();
}

#[tokio::test]
async fn a_producer_that_is_dropped_writes_what_waits_or_counts_it() {
    let cluster = cluster();
    let (producer, status) = start(&cluster, Some(Duration::from_secs(10)));
    producer.queue(&record(b"1"));
    drop(producer);
    reach(|| status.stored(), 1).await;
    let (producer, status) = start(&cluster, Some(Duration::from_secs(1)));
    cluster.broker_down(1).unwrap();
    producer.queue(&record(b"2"));
    drop(producer);
    reach(|| status.dropped(), 1).await;
    assert_eq!(status.waiting(), 0);
}
