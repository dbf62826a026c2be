//! What can be set about a broker, and why the defaults are what they are.

use std::time::Duration;

use crate::sequencer::SequencerLimits;

/// How a broker behaves. All brokers take the same options; each says which it has no use for.
#[derive(Clone, Debug)]
pub struct BrokerOptions {
    /// How long publishing, subscribing or reading history may take. By default 5 s.
    pub command_timeout: Duration,
    /// After how long without a sign of life a link is given up and dialled anew. By default 10 s: a broker
    /// that was only paused goes on with the old link and nothing is lost, while a dead one is found out
    /// long before TCP does.
    pub dead_after: Duration,
    /// How long dialling, TLS and authentication may take together. By default 5 s.
    pub dial_timeout: Duration,
    /// How long idempotency keys are remembered. By default 5 minutes.
    pub idempotency_ttl: Duration,
    /// How long a durable stream's newest position is remembered without a publication. By default 7 days.
    pub meta_ttl: Duration,
    /// The most bytes of a payload. By default 16 MiB; longer ones are skipped, counted and told as a gap.
    pub payload_bytes_max: usize,
    /// Stands before each name of a channel in the broker. By default empty: names are the same on both sides.
    pub prefix: String,
    /// How often a loopback publication is sent. By default each second.
    pub probe_interval: Duration,
    /// How long a loopback publication may take before the link counts as deaf. By default 2 s.
    pub probe_timeout: Duration,
    /// The longest wait before dialling again, jittered by half. By default 5 s.
    pub reconnect_delay_max: Duration,
    /// The shortest wait before dialling again, doubled each time. By default 100 ms.
    pub reconnect_delay_min: Duration,
    /// Limits of what this node keeps of plain channels.
    pub sequencer: SequencerLimits,
    /// The most bytes of a durable channel's stream; the oldest publications give way. By default 64 MiB, which is also
    /// what is read of a stream at most. NATS only: Redis counts publications.
    pub stream_bytes_max: u64,
    /// On how many servers of a cluster a durable channel's stream is kept, 1 to 5. By default 1. NATS only.
    pub stream_replicas: u8,
    /// Certificates of the authorities to trust, as PEM, in place of the system's.
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
            reconnect_delay_max: Duration::from_secs(5),
            reconnect_delay_min: Duration::from_millis(100),
            sequencer: SequencerLimits::default(),
            stream_bytes_max: 64 << 20,
            stream_replicas: 1,
            tls_authorities: None,
        }
    }
}
