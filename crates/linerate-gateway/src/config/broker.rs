//! `[broker]`: the message broker that carries publications.

use std::{path::PathBuf, time::Duration};

use linerate_broker::{BROKERS, BrokerKind};
use serde::Deserialize;

use super::{check::Check, unit};

/// The message broker that carries publications.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct BrokerOptions {
    /// The URL of one of [`BROKERS`].
    pub url: super::Secret,
    /// Prefix for channel names in the broker.
    pub prefix: String,
    /// A PEM file with the certificate authorities to trust, instead of those of the system.
    pub tls_authorities: Option<PathBuf>,
    /// Maximum time that the broker may take to answer.
    #[serde(rename = "request_timeout_ms", with = "unit::milliseconds")]
    pub request_timeout: Duration,
    /// Interval between loopback publications that probe the link.
    #[serde(rename = "probe_interval_ms", with = "unit::milliseconds")]
    pub probe_interval: Duration,
    /// Time without a returned probe after which the link is considered deaf.
    #[serde(rename = "probe_timeout_ms", with = "unit::milliseconds")]
    pub probe_timeout: Duration,
    /// Maximum size of the stream of a durable channel in bytes, if the broker counts bytes.
    pub stream_bytes_max: u64,
    /// Number of servers in a cluster that store the stream of a durable channel, if the broker
    /// lets nodes choose it.
    pub stream_replicas: u8,
    /// Maximum wait between two attempts to connect.
    #[serde(rename = "reconnect_wait_max_ms", with = "unit::milliseconds")]
    pub reconnect_wait_max: Duration,
}

impl BrokerOptions {
    /// Returns the scheme of the URL, such as `redis`; `None` if the file that has the URL cannot
    /// be read.
    pub fn scheme(&self) -> Option<String> {
        let url = self.url.read().ok()?;
        let (scheme, _) = url.split_once(':')?;
        Some(scheme.to_owned())
    }

    pub(super) fn check(&self, check: &mut Check) {
        if BrokerKind::find(BROKERS, self.url.expose()).is_err() {
            let because = format!("must begin with {}", BrokerKind::schemes_of(BROKERS));
            check.refuse("url", shown(self.url.expose()), &because);
        }
        check.range("prefix", self.prefix.len(), 0..=256);
        let millis = |duration: Duration| duration.as_millis() as u64;
        check.range(
            "request_timeout_ms",
            millis(self.request_timeout),
            10..=60_000,
        );
        check.range(
            "probe_interval_ms",
            millis(self.probe_interval),
            10..=60_000,
        );
        check.range("probe_timeout_ms", millis(self.probe_timeout), 10..=60_000);
        check.range("stream_bytes_max", self.stream_bytes_max, 1_024..=64 << 20);
        check.range("stream_replicas", self.stream_replicas, 1..=5);
        let wait = millis(self.reconnect_wait_max);
        check.range("reconnect_wait_max_ms", wait, 10..=600_000);
    }
}

/// Returns the scheme of a URL. The rest may have a password, and so may a text without a scheme.
fn shown(url: &str) -> String {
    let is_of_scheme = |char: char| char.is_ascii_alphanumeric() || "+-.".contains(char);
    match url.split_once("://") {
        Some((scheme, _)) if scheme.chars().all(is_of_scheme) => format!("{scheme}://…"),
        _ => "(secret)".to_owned(),
    }
}
