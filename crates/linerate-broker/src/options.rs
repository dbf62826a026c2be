//! The options of a broker, and the reasons for their defaults.

use std::time::Duration;

use tokio::runtime::Handle;

use crate::sequencer::SequencerLimits;

/// Options of a broker. All brokers take the same options; each documents those that it does not
/// use.
#[derive(Clone, Debug)]
pub struct BrokerOptions {
    /// The maximum time for publishing, subscribing or reading history. By default 5 s.
    pub command_timeout: Duration,
    /// A link that has received nothing for this long is closed and dialled again. By default 10 s:
    /// if the broker was only paused, the old link continues and nothing is lost, and a dead broker
    /// is detected long before TCP would notice.
    pub dead_after: Duration,
    /// The maximum time for dialling, the TLS handshake and authentication together. By default
    /// 5 s.
    pub dial_timeout: Duration,
    /// How long idempotency keys are remembered. By default 5 minutes.
    pub idempotency_ttl: Duration,
    /// How long the newest position of a durable stream is remembered without a publication. By
    /// default 7 days.
    pub meta_ttl: Duration,
    /// The maximum size of a payload in bytes. By default 16 MiB. A larger payload is skipped,
    /// counted and reported as a gap.
    pub payload_bytes_max: usize,
    /// A prefix for every channel name in the broker. Empty by default, so that names are the same
    /// on both sides.
    pub prefix: String,
    /// The interval between loopback publications. By default 1 s.
    pub probe_interval: Duration,
    /// How long a loopback publication may take before the link counts as deaf. By default 2 s.
    pub probe_timeout: Duration,
    /// The runtime of the only worker, on which subscribing connections are then read, so that a
    /// publication wakes one thread instead of two. By default, the broker reads on its own thread.
    /// Ignored by brokers that cannot read elsewhere.
    pub reader: Option<Handle>,
    /// The longest delay before dialling again, shortened at random by up to half. By default 5 s.
    pub reconnect_delay_max: Duration,
    /// The first delay before dialling again, which doubles with each attempt. By default 100 ms.
    pub reconnect_delay_min: Duration,
    /// Limits on what this node stores for plain channels.
    pub sequencer: SequencerLimits,
    /// The maximum size in bytes of each stream of durable channels, which may share it; the oldest
    /// publications are removed first. By default 64 MiB, which is also the most that is read from
    /// a stream at once. Ignored by brokers whose streams are limited by the number of publications
    /// alone.
    pub stream_bytes_max: u64,
    /// The number of servers of a cluster that store each stream of durable channels, from 1 to 5.
    /// By default 1. Ignored by brokers that replicate all their data in the same way.
    pub stream_replicas: u8,
    /// CA certificates to trust instead of those of the system, as PEM.
    pub tls_authorities: Option<Vec<u8>>,
}

impl Default for BrokerOptions {
    fn default() -> Self {
        Self {
            command_timeout: Duration::from_secs(5),
            dead_after: Duration::from_secs(10),
            dial_timeout: Duration::from_secs(5),
            idempotency_ttl: Duration::from_secs(5 * 60),
            meta_ttl: Duration::from_secs(7 * 24 * 60 * 60),
            payload_bytes_max: 16 << 20,
            prefix: String::new(),
            probe_interval: Duration::from_secs(1),
            probe_timeout: Duration::from_secs(2),
            reader: None,
            reconnect_delay_max: Duration::from_secs(5),
            reconnect_delay_min: Duration::from_millis(100),
            sequencer: SequencerLimits::default(),
            stream_bytes_max: 64 << 20,
            stream_replicas: 1,
            tls_authorities: None,
        }
    }
}
