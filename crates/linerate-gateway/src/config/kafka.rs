//! `[[kafka]]`: Kafka clusters whose records are published, and to which publications are written.

mod producer;

use std::{
    collections::{BTreeMap, HashSet},
    path::PathBuf,
    time::Duration,
};

use linerate_kafka::{Field, Mechanism};
use linerate_source::Template;
use serde::Deserialize;

use super::{
    Config, Secret,
    check::Check,
    endpoint::{check_name, check_tls},
    unit,
};
pub use producer::KafkaProducer;

/// Maximum number of sources: each is a label value in metrics, and has a thread.
const SOURCES_MAX: usize = 16;

/// Maximum number of servers, and of topics, of a source.
const SERVERS_MAX: usize = 64;
const TOPICS_MAX: usize = 1_000;

/// Maximum number of tags of a topic.
const TAGS_MAX: usize = 64;

/// Maximum length of the name of a topic and of a group, in bytes (a limit of Kafka for topics).
const NAME_BYTES_MAX: usize = 249;

/// A Kafka cluster whose records are published, or to which publications are written.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct KafkaOptions {
    /// The name in logs, metrics and idempotency keys. Nodes with the same name share the work.
    pub name: String,
    /// The addresses (`host:port`) of servers to begin with.
    pub servers: Vec<String>,
    /// The consumer group, which remembers what has been published.
    pub group: String,
    /// Where to begin in topics that the group has not read.
    pub start: KafkaStart,
    /// The topics that are published.
    #[serde(rename = "topic")]
    pub topics: Vec<KafkaTopic>,
    /// The topics to which publications are written.
    #[serde(rename = "producer")]
    pub producers: Vec<KafkaProducer>,
    /// Maximum size of a record and of its payload, in bytes.
    pub record_bytes_max: usize,
    /// Maximum size of records that are read ahead, in bytes.
    pub prefetch_bytes_max: usize,
    /// The time after which a node that does not answer Kafka loses its partitions.
    #[serde(rename = "session_timeout_s", with = "unit::seconds")]
    pub session_timeout: Duration,
    /// True if connections are encrypted.
    pub tls: bool,
    /// A PEM file with the certificate authorities to trust, instead of those of the system.
    pub tls_authorities: Option<PathBuf>,
    /// A PEM file with the certificate chain that this server presents.
    pub tls_certificate: Option<PathBuf>,
    /// A PEM file with the private key of that certificate.
    pub tls_key: Option<PathBuf>,
    /// How the password is proved: a SASL mechanism.
    pub sasl_mechanism: String,
    /// The user, if the servers require a password.
    pub user: Option<String>,
    /// The password.
    pub password: Option<Secret>,
}

/// How the records of a topic are published.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct KafkaTopic {
    /// The name.
    pub name: String,
    /// The channel, in which `{key}` and other fields stand for parts of the record.
    pub channel: String,
    /// The field with the payload, instead of the whole value.
    pub payload: Option<String>,
    /// The tags, and the fields with their values.
    pub tags: BTreeMap<String, String>,
}

/// Where to begin in a topic that the group has not read.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum KafkaStart {
    /// At the oldest record.
    Earliest,
    /// After the newest record.
    #[default]
    Latest,
}

impl Default for KafkaOptions {
    fn default() -> Self {
        Self {
            name: String::new(),
            servers: Vec::new(),
            group: "linerate".to_owned(),
            start: KafkaStart::default(),
            topics: Vec::new(),
            producers: Vec::new(),
            record_bytes_max: 1 << 20,
            prefetch_bytes_max: 8 << 20,
            session_timeout: Duration::from_secs(10),
            tls: false,
            tls_authorities: None,
            tls_certificate: None,
            tls_key: None,
            sasl_mechanism: Mechanism::ScramSha256.name().to_owned(),
            user: None,
            password: None,
        }
    }
}

impl KafkaOptions {
    /// Returns the SASL mechanism, or `None` if the name is unknown.
    pub(crate) fn mechanism(&self) -> Option<Mechanism> {
        let mut all = Mechanism::ALL.into_iter();
        all.find(|mechanism| mechanism.name() == self.sasl_mechanism)
    }

    fn check(&self, check: &mut Check) {
        check_name(&self.name, check);
        check.range("servers", self.servers.len(), 1..=SERVERS_MAX);
        for server in &self.servers {
            let port = server.rsplit_once(':').filter(|parts| !parts.0.is_empty());
            let port = port.and_then(|parts| parts.1.parse::<u16>().ok());
            if port.is_none() || server.contains([',', '/', ' ']) {
                check.refuse(
                    "servers",
                    server,
                    "must be a host and a port, such as kafka:9092",
                );
            }
        }
        if !is_name(&self.group) {
            check.refuse("group", &self.group, NOT_A_NAME);
        }
        check.range("record_bytes_max", self.record_bytes_max, 1_024..=64 << 20);
        let allowed = 64 << 10..=1 << 30;
        check.range("prefetch_bytes_max", self.prefetch_bytes_max, allowed);
        check.range("session_timeout_s", self.session_timeout.as_secs(), 6..=300);
        check_tls(&self.tls_certificate, &self.tls_key, check);
        let files = [&self.tls_authorities, &self.tls_certificate, &self.tls_key];
        if !self.tls && files.into_iter().any(Option::is_some) {
            check.refuse("tls", self.tls, "must be true if there are files for TLS");
        }
        self.check_login(check);
        self.check_topics(check);
    }

    fn check_login(&self, check: &mut Check) {
        if self.user.is_some() != self.password.is_some() {
            let user = self.user.as_deref().unwrap_or("(none)");
            check.refuse("user", user, "requires both user and password");
        }
        let name = &self.sasl_mechanism;
        match self.mechanism() {
            None => {
                let because = "must be SCRAM-SHA-256, SCRAM-SHA-512 or PLAIN";
                check.refuse("sasl_mechanism", name, because);
            }
            Some(Mechanism::Plain) if self.user.is_some() && !self.tls => {
                let because = "requires tls = true, because it sends the password";
                check.refuse("sasl_mechanism", name, because);
            }
            Some(_) => {}
        }
    }

    fn check_topics(&self, check: &mut Check) {
        let topics_min = usize::from(self.producers.is_empty());
        check.range("topic", self.topics.len(), topics_min..=TOPICS_MAX);
        let mut names = HashSet::new();
        for (index, topic) in self.topics.iter().enumerate() {
            check.section(&format!("topic[{index}]"), |check| {
                topic.check(check);
                if !names.insert(topic.name.as_str()) {
                    check.refuse("name", &topic.name, "is used by two topics");
                }
            });
        }
    }
}

const NOT_A_NAME: &str = "must be 1 to 249 letters, digits, hyphens, underscores or dots";

fn is_name(name: &str) -> bool {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_legal)
}

impl KafkaTopic {
    fn check(&self, check: &mut Check) {
        if !is_name(&self.name) {
            check.refuse("name", &self.name, NOT_A_NAME);
        }
        match Template::new(&self.channel) {
            Err(error) => check.refuse("channel", &self.channel, &format!("is invalid: {error}")),
            Ok(channel) => {
                for name in channel.names() {
                    check_field("channel", name, check);
                }
            }
        }
        if let Some(payload) = &self.payload {
            check_field("payload", payload, check);
        }
        check.range("tags", self.tags.len(), 0..=TAGS_MAX);
        for field in self.tags.values() {
            check_field("tags", field, check);
        }
    }
}

fn check_field(key: &str, name: &str, check: &mut Check) {
    if let Err(error) = name.parse::<Field>() {
        check.refuse(key, name, &error.to_string());
    }
}

/// Checks the Kafka clusters.
pub(super) fn check(config: &Config, check: &mut Check) {
    check.range("kafka", config.kafka.len(), 0..=SOURCES_MAX);
    producer::check_count(config, check);
    let databases = config.postgres.iter().map(|source| source.name.as_str());
    let mut names: HashSet<_> = databases.collect();
    for (index, source) in config.kafka.iter().enumerate() {
        check.section(&format!("kafka[{index}]"), |check| {
            source.check(check);
            source.check_producers(config, check);
            if !names.insert(source.name.as_str()) {
                check.refuse("name", &source.name, "is used by two sources");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Loader;

    const TOPIC: &str = "[[kafka.topic]]\nname = \"orders\"\nchannel = \"orders:{key}\"\n";

    fn load(source: &str) -> Result<(), String> {
        let begin = "[[kafka]]\nname = \"shop\"\n";
        let text = format!("{begin}{source}\n");
        let loaded = Loader::new().with_text("test.toml", &text).load();
        loaded.map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn sources_that_cannot_work_are_refused() {
        let server = "servers = [\"kafka:9092\"]\n";
        for (source, message) in [
            ("", "kafka[0].servers = 0 must be between 1 and 64"),
            ("", "kafka[0].topic = 0 must be between 1 and 1000"),
            (
                "servers = [\"kafka\"]",
                "kafka[0].servers = kafka must be a host and a port",
            ),
            (
                "group = \"a b\"",
                "kafka[0].group = a b must be 1 to 249 letters",
            ),
            (
                "record_bytes_max = 1",
                "kafka[0].record_bytes_max = 1 must be between 1024 and",
            ),
            (
                "prefetch_bytes_max = 1",
                "kafka[0].prefetch_bytes_max = 1 must be between 65536",
            ),
            (
                "session_timeout_s = 5",
                "kafka[0].session_timeout_s = 5 must be between 6 and 300",
            ),
            (
                "tls_authorities = \"a\"",
                "kafka[0].tls = false must be true if there are files",
            ),
            (
                "user = \"u\"",
                "kafka[0].user = u requires both user and password",
            ),
            (
                "sasl_mechanism = \"X\"",
                "kafka[0].sasl_mechanism = X must be SCRAM-SHA-256,",
            ),
            (
                "user = \"u\"\npassword = \"p\"\nsasl_mechanism = \"PLAIN\"",
                "kafka[0].sasl_mechanism = PLAIN requires tls = true",
            ),
            (
                &format!("{TOPIC}{TOPIC}"),
                "kafka[0].topic[1].name = orders is used by two topics",
            ),
            (
                "[[kafka.topic]]\nname = \"^a\"",
                "kafka[0].topic[0].name = ^a must be 1 to 249 letters",
            ),
            (
                "[[kafka.topic]]\nname = \"a\"\nchannel = \"{id}\"",
                "kafka[0].topic[0].channel = id must be key, topic, partition,",
            ),
            (
                "[[kafka.topic]]\nname = \"a\"\nchannel = \"a\"\npayload = \"value\"",
                "kafka[0].topic[0].payload = value must be key, topic, partition,",
            ),
            (
                &format!("{server}{TOPIC}[[postgres]]\nname = \"shop\""),
                "kafka[0].name = shop is used by two sources",
            ),
        ] {
            let error = load(source).unwrap_err();
            assert!(error.contains(message), "{source}: {error}");
        }
        assert_eq!(load(&format!("{server}{TOPIC}")), Ok(()));
    }
}
