//! The settings of librdkafka.

use rdkafka::config::{ClientConfig, RDKafkaLogLevel};

use crate::{
    job::JOB_MAX,
    options::{ClusterOptions, ProducerOptions, SourceOptions},
};

/// The time after which a node that does not poll loses its partitions, at least: longer than a job
/// and the questions that precede it.
const POLL_INTERVAL_MS_MIN: u128 = 3 * JOB_MAX.as_millis();

/// The maximum size of an answer, in bytes. A partition with a larger record could not be read any
/// further; the default limit of servers is 1 MiB.
const ANSWER_BYTES_MAX: usize = 100 << 20;

/// The maximum size of the key and the headers of a record that is written, in bytes.
const ENVELOPE_BYTES_MAX: usize = 128 << 10;

/// How long a record waits for others to be written with it, in milliseconds.
const LINGER_MS: u32 = 1;

/// Returns the settings of a consumer.
pub(crate) fn consumer(options: &SourceOptions) -> ClientConfig {
    let session_ms = options.session_timeout.as_millis();
    let fetch_bytes = options.prefetch_bytes_max.max(options.record_bytes_max);
    let mut config = client(&options.cluster);
    let mut set = |name: &str, value: &dyn ToString| {
        config.set(name, value.to_string());
    };
    set("group.id", &options.group);
    set("partition.assignment.strategy", &"cooperative-sticky");
    set("session.timeout.ms", &session_ms);
    set("heartbeat.interval.ms", &(session_ms / 3).min(3_000));
    set(
        "max.poll.interval.ms",
        &session_ms.max(POLL_INTERVAL_MS_MIN),
    );
    // An offset is stored once the broker has accepted the publications before it.
    set("enable.auto.offset.store", &false);
    set("enable.auto.commit", &true);
    set("auto.commit.interval.ms", &1_000);
    set("auto.offset.reset", &"error");
    // Servers send a record that is larger than these anyway, if it is the first one.
    set("fetch.message.max.bytes", &options.record_bytes_max);
    set("message.max.bytes", &options.record_bytes_max.max(1_000));
    set("fetch.max.bytes", &fetch_bytes);
    set(
        "receive.message.max.bytes",
        &(fetch_bytes + ANSWER_BYTES_MAX),
    );
    let prefetch_kbytes = (options.prefetch_bytes_max >> 10).max(1);
    set("queued.max.messages.kbytes", &prefetch_kbytes);
    config
}

/// Returns the settings of a producer.
pub(crate) fn producer(options: &ProducerOptions) -> ClientConfig {
    let mut config = client(&options.cluster);
    let mut set = |name: &str, value: &dyn ToString| {
        config.set(name, value.to_string());
    };
    // Includes `acks = all`. Attempts do not repeat or reorder the records of a partition.
    set("enable.idempotence", &true);
    // As clients in Java do, so that topics with the same keys have them in the same partitions.
    set("partitioner", &"murmur2_random");
    set("compression.type", &options.compression.name());
    set("linger.ms", &LINGER_MS);
    let timeout_ms = options.timeout.map_or(0, |timeout| timeout.as_millis());
    set("message.timeout.ms", &timeout_ms);
    let record_bytes = options.record_bytes_max + ENVELOPE_BYTES_MAX;
    set("message.max.bytes", &record_bytes);
    // The producer has a queue with limits; these only have to be higher.
    set("queue.buffering.max.messages", &0);
    set("queue.buffering.max.kbytes", &i32::MAX);
    config
}

/// Returns the settings of any client.
fn client(cluster: &ClusterOptions) -> ClientConfig {
    let mut config = ClientConfig::new();
    let mut set = |name: &str, value: &dyn ToString| {
        config.set(name, value.to_string());
    };
    set("bootstrap.servers", &cluster.servers.join(","));
    set("client.id", &"linerate");
    set("topic.metadata.refresh.interval.ms", &10_000);
    set("reconnect.backoff.max.ms", &1_000);
    set("socket.timeout.ms", &10_000);
    set("socket.keepalive.enable", &true);
    set("log.connection.close", &false);
    secure(&mut config, cluster);
    config.set_log_level(RDKafkaLogLevel::Warning);
    config
}

/// Adds TLS and authentication.
fn secure(config: &mut ClientConfig, cluster: &ClusterOptions) {
    let protocol = match (&cluster.tls, &cluster.login) {
        (None, None) => "plaintext",
        (None, Some(_)) => "sasl_plaintext",
        (Some(_), None) => "ssl",
        (Some(_), Some(_)) => "sasl_ssl",
    };
    config.set("security.protocol", protocol);
    if let Some(tls) = &cluster.tls {
        for (name, path) in [
            ("ssl.ca.location", &tls.authorities),
            ("ssl.certificate.location", &tls.certificate),
            ("ssl.key.location", &tls.key),
        ] {
            if let Some(path) = path {
                config.set(name, path.display().to_string());
            }
        }
    }
    if let Some(login) = &cluster.login {
        config.set("sasl.mechanism", login.mechanism.name());
        config.set("sasl.username", &login.user);
        config.set("sasl.password", &login.password);
    }
}
