//! `[[kafka.producer]]`: topics to which publications are written.

use std::{collections::HashSet, time::Duration};

use linerate_kafka::Compression;
use serde::Deserialize;

use super::{KafkaOptions, NOT_A_NAME, is_name};
use crate::config::{Config, check::Check, unit};

/// Maximum number of producers: each has threads, and is a label value in metrics.
const PRODUCERS_MAX: usize = 16;

/// Maximum number of patterns of a producer.
const PATTERNS_MAX: usize = 1_000;

/// A topic to which publications are written.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct KafkaProducer {
    /// The topic.
    pub topic: String,
    /// Patterns of the channels whose publications are written.
    pub channels: Vec<String>,
    /// True if what the application publishes is written, too.
    pub api: bool,
    /// True if a publication is published only after Kafka has stored its record.
    pub wait: bool,
    /// How long a publication waits.
    #[serde(rename = "timeout_ms", with = "unit::milliseconds")]
    pub timeout: Duration,
    /// Maximum number of records that Kafka has not stored yet.
    pub queue_max: usize,
    /// Maximum memory of these records, in bytes.
    pub queue_bytes_max: usize,
    /// How records are compressed.
    pub compression: Compression,
}

impl Default for KafkaProducer {
    fn default() -> Self {
        Self {
            topic: String::new(),
            channels: Vec::new(),
            api: false,
            wait: true,
            timeout: Duration::from_secs(5),
            queue_max: 100_000,
            queue_bytes_max: 32 << 20,
            compression: Compression::default(),
        }
    }
}

impl KafkaProducer {
    fn check(&self, check: &mut Check) {
        if !is_name(&self.topic) {
            check.refuse("topic", &self.topic, NOT_A_NAME);
        }
        check.range("channels", self.channels.len(), 1..=PATTERNS_MAX);
        if self.channels.iter().any(String::is_empty) {
            let because = "must not be empty; * stands for any text";
            check.refuse("channels", "\"\"", because);
        }
        let timeout_ms = self.timeout.as_millis() as u64;
        check.range("timeout_ms", timeout_ms, 100..=300_000);
        check.range("queue_max", self.queue_max, 1..=10_000_000);
        check.range("queue_bytes_max", self.queue_bytes_max, 65_536..=1 << 30);
    }
}

impl KafkaOptions {
    /// Checks the producers of this cluster, which is one of `config`.
    pub(super) fn check_producers(&self, config: &Config, check: &mut Check) {
        let mut topics = HashSet::new();
        for (index, producer) in self.producers.iter().enumerate() {
            check.section(&format!("producer[{index}]"), |check| {
                producer.check(check);
                let topic = producer.topic.as_str();
                if !topics.insert(topic) {
                    check.refuse("topic", topic, "is used by two producers");
                }
                if let Some(reader) = config.kafka.iter().find(|it| it.reads(topic, self)) {
                    let name = &reader.name;
                    let because = format!(
                        "is read by kafka {name}, so that clients would receive each publication twice"
                    );
                    check.refuse("topic", topic, &because);
                }
            });
        }
    }

    /// Returns whether records of a topic of `other` are published, as far as the addresses of
    /// servers tell whether the clusters are the same.
    fn reads(&self, topic: &str, other: &Self) -> bool {
        let is_shared = |server: &String| {
            let mut others = other.servers.iter();
            others.any(|other| other.eq_ignore_ascii_case(server))
        };
        self.topics.iter().any(|it| it.name == topic) && self.servers.iter().any(is_shared)
    }
}

/// Checks how many producers all clusters have.
pub(super) fn check_count(config: &Config, check: &mut Check) {
    let count = config.kafka.iter().map(|it| it.producers.len()).sum();
    check.range("kafka.producer", count, 0..=PRODUCERS_MAX);
}

#[cfg(test)]
mod tests {
    use crate::config::Loader;

    const PRODUCER: &str = "[[kafka.producer]]\ntopic = \"chat\"\nchannels = [\"chat:*\"]\n";

    fn load(text: &str) -> Result<(), String> {
        let begin = "[[kafka]]\nname = \"shop\"\nservers = [\"kafka:9092\", \"other:9092\"]\n";
        let text = format!("{begin}{text}\n");
        let loaded = Loader::new().with_text("test.toml", &text).load();
        loaded.map(drop).map_err(|error| error.to_string())
    }

    fn reader(server: &str) -> String {
        format!(
            "[[kafka]]\nname = \"b\"\nservers = [\"{server}\"]\n\
             [[kafka.topic]]\nname = \"chat\"\nchannel = \"a\"\n"
        )
    }

    #[test]
    fn producers_that_cannot_work_are_refused() {
        for (text, message) in [
            (
                "[[kafka.producer]]\ntopic = \"a b\"",
                "kafka[0].producer[0].topic = a b must be 1 to 249 letters",
            ),
            (
                "[[kafka.producer]]\ntopic = \"a\"",
                "kafka[0].producer[0].channels = 0 must be between 1 and 1000",
            ),
            (
                "[[kafka.producer]]\ntopic = \"a\"\nchannels = [\"\"]",
                "kafka[0].producer[0].channels = \"\" must not be empty",
            ),
            (
                &format!("{PRODUCER}timeout_ms = 99"),
                "kafka[0].producer[0].timeout_ms = 99 must be between 100 and 300000",
            ),
            (
                &format!("{PRODUCER}queue_max = 0"),
                "kafka[0].producer[0].queue_max = 0 must be between 1 and 10000000",
            ),
            (
                &format!("{PRODUCER}queue_bytes_max = 1"),
                "kafka[0].producer[0].queue_bytes_max = 1 must be between 65536 and 1073741824",
            ),
            (
                &format!("{PRODUCER}compression = \"best\""),
                "unknown variant `best`",
            ),
            (
                &PRODUCER.repeat(2),
                "kafka[0].producer[1].topic = chat is used by two producers",
            ),
            (
                &PRODUCER.repeat(17),
                "kafka.producer = 17 must be between 0 and 16",
            ),
        ] {
            let error = load(text).unwrap_err();
            assert!(error.contains(message), "{text}: {error}");
        }
        assert_eq!(load(PRODUCER), Ok(()));
    }

    #[test]
    fn a_topic_is_not_both_read_and_written() {
        let same = "[[kafka.topic]]\nname = \"chat\"\nchannel = \"a\"\n";
        let error = load(&format!("{PRODUCER}{same}")).unwrap_err();
        let message = "kafka[0].producer[0].topic = chat is read by kafka shop, so that clients";
        assert!(error.contains(message), "{error}");
        let error = load(&format!("{PRODUCER}{}", reader("Other:9092"))).unwrap_err();
        let message = "kafka[0].producer[0].topic = chat is read by kafka b, so that clients";
        assert!(error.contains(message), "{error}");
        assert_eq!(
            load(&format!("{PRODUCER}{}", reader("elsewhere:9092"))),
            Ok(())
        );
    }
}
