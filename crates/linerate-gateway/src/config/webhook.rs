//! `[[webhook]]`: where the application is told what happens to clients.

use std::{
    collections::{BTreeMap, HashSet},
    path::PathBuf,
    time::Duration,
};

use serde::Deserialize;

use super::{
    Config, Secret,
    check::Check,
    endpoint::{check_headers, check_name, check_tls, check_url},
    unit,
};

/// Maximum number of webhooks: each is a label value in metrics.
const WEBHOOKS_MAX: usize = 16;

/// The events that are sent unless others are configured.
const STANDARD_EVENTS: &[WebhookEvent] = &[
    WebhookEvent::Connected,
    WebhookEvent::Disconnected,
    WebhookEvent::Subscribed,
    WebhookEvent::Unsubscribed,
];

/// The prefix of the headers with which batches are signed.
const SIGNING: &str = "webhook-";

/// A kind of event that a webhook can be told.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WebhookEvent {
    /// A Pusher client has subscribed to a cache channel without an event.
    CacheMiss,
    /// A client was admitted.
    Connected,
    /// A client has left.
    Disconnected,
    /// A user is present in a channel, on any node.
    MemberAdded,
    /// A user is no longer present in a channel, on any node.
    MemberRemoved,
    /// A channel has a subscriber, on any node.
    Occupied,
    /// A client has published in a channel.
    Published,
    /// A client has subscribed to a channel.
    Subscribed,
    /// A subscription has ended.
    Unsubscribed,
    /// A channel has no more subscribers, on any node.
    Vacated,
}

/// A URL that is told what happens to clients.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct WebhookOptions {
    /// The name in logs and metrics.
    pub name: String,
    /// The URL that batches are sent to.
    pub url: String,
    /// The kinds of events to send; see [`events`](Self::events).
    pub events: Option<Vec<WebhookEvent>>,
    /// Patterns of the channels whose events are sent; all if empty.
    pub channels: Vec<String>,
    /// Headers that each request has.
    pub headers: BTreeMap<String, Secret>,
    /// The secret with which batches are signed.
    pub secret: Option<Secret>,
    /// Maximum time until a batch is accepted.
    #[serde(rename = "timeout_ms", with = "unit::milliseconds")]
    pub timeout: Duration,
    /// Maximum number of events in a batch.
    pub batch_max: usize,
    /// How long to wait for more events before a batch is sent.
    #[serde(rename = "batch_delay_ms", with = "unit::milliseconds")]
    pub batch_delay: Duration,
    /// Maximum number of events that wait.
    pub queue_max: usize,
    /// Maximum memory of events that wait, in bytes.
    pub queue_bytes_max: usize,
    /// Maximum pause between attempts.
    #[serde(rename = "retry_pause_max_ms", with = "unit::milliseconds")]
    pub retry_pause_max: Duration,
    /// A PEM file with the certificate authorities to trust, instead of those of the system.
    pub tls_authorities: Option<PathBuf>,
    /// A PEM file with the certificate chain that this server presents.
    pub tls_certificate: Option<PathBuf>,
    /// A PEM file with the private key of that certificate.
    pub tls_key: Option<PathBuf>,
}

impl Default for WebhookOptions {
    fn default() -> Self {
        Self {
            name: String::new(),
            url: String::new(),
            events: None,
            channels: Vec::new(),
            headers: BTreeMap::new(),
            secret: None,
            timeout: Duration::from_secs(5),
            batch_max: 100,
            batch_delay: Duration::from_millis(100),
            queue_max: 100_000,
            queue_bytes_max: 32 << 20,
            retry_pause_max: Duration::from_secs(30),
            tls_authorities: None,
            tls_certificate: None,
            tls_key: None,
        }
    }
}

impl WebhookOptions {
    /// Returns the kinds of events to send.
    pub fn events(&self) -> &[WebhookEvent] {
        self.events.as_deref().unwrap_or(STANDARD_EVENTS)
    }

    fn check(&self, check: &mut Check) {
        check_name(&self.name, check);
        // Some applications put a secret into the path.
        check_url(&self.url, "(not shown)", "must not contain a user", check);
        if self.secret.is_none() {
            check.refuse("secret", "(none)", "is required to sign batches");
        }
        check.range("channels", self.channels.len(), 0..=1_000);
        check_headers(&self.headers, check);
        let signing = |name: &&String| name.to_ascii_lowercase().starts_with(SIGNING);
        for name in self.headers.keys().filter(signing) {
            check.refuse("headers", name, "has a prefix that the signature uses");
        }
        check_tls(&self.tls_certificate, &self.tls_key, check);
        let millis = |duration: Duration| duration.as_millis() as u64;
        check.range("timeout_ms", millis(self.timeout), 10..=60_000);
        check.range("batch_max", self.batch_max, 1..=1_000);
        check.range("batch_delay_ms", millis(self.batch_delay), 0..=60_000);
        check.range("queue_max", self.queue_max, 1..=10_000_000);
        check.range("queue_bytes_max", self.queue_bytes_max, 65_536..=1 << 30);
        let pause = millis(self.retry_pause_max);
        check.range("retry_pause_max_ms", pause, 200..=600_000);
    }
}

/// Checks the webhooks.
pub(super) fn check(config: &Config, check: &mut Check) {
    check.range("webhook", config.webhooks.len(), 0..=WEBHOOKS_MAX);
    let mut names = HashSet::new();
    for (index, webhook) in config.webhooks.iter().enumerate() {
        check.section(&format!("webhook[{index}]"), |check| {
            webhook.check(check);
            if !names.insert(webhook.name.as_str()) {
                check.refuse("name", &webhook.name, "is used by two webhooks");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Loader;

    #[test]
    fn webhooks_that_cannot_work_are_refused() {
        let url = "url = \"http://localhost/\"\nsecret = \"x\"\n";
        for (webhook, message) in [
            (
                "",
                "webhook[0].url = (not shown) must be an https:// or http:// URL",
            ),
            (
                "url = \"http://me:key@localhost/\"",
                "webhook[0].url = (with a user) must not contain a user",
            ),
            (
                "url = \"http://localhost/\"",
                "webhook[0].secret = (none) is required",
            ),
            (
                &format!("{url}batch_max = 0"),
                "webhook[0].batch_max = 0 must be between 1 and 1000",
            ),
            (
                &format!("{url}queue_bytes_max = 1"),
                "webhook[0].queue_bytes_max = 1 must be between 65536 and 1073741824",
            ),
            (
                &format!("{url}headers = {{ Webhook-Id = \"x\" }}"),
                "webhook[0].headers = Webhook-Id has a prefix that the signature uses",
            ),
            (
                &format!("{url}tls_key = \"a.pem\""),
                "webhook[0].tls_key = a.pem requires both tls_certificate and tls_key",
            ),
            (&format!("{url}events = [\"slept\"]"), "slept"),
            (
                &format!("{url}[[webhook]]\nname = \"app\"\n{url}"),
                "webhook[1].name = app is used by two webhooks",
            ),
        ] {
            let text = format!("[[webhook]]\nname = \"app\"\n{webhook}\n");
            let error = Loader::new().with_text("test.toml", &text).load();
            let error = error.unwrap_err().to_string();
            assert!(error.contains(message), "{webhook}: {error}");
        }
    }
}
