//! `[[webhook]]`: where the application is told what happens to clients and channels.

mod event;

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
pub use event::{WebhookEvent, WebhookFormat};

/// Maximum number of webhooks: each is a label value in metrics.
const WEBHOOKS_MAX: usize = 16;

/// The prefixes of the headers with which batches are signed.
const SIGNING: [&str; 2] = ["webhook-", "x-pusher-"];

/// What the scheme of a webhook's URL says about its destination.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum WebhookScheme {
    /// A URL of the application.
    Http,
    /// A NATS subject.
    Nats,
    /// A Redis Stream.
    Redis,
}

impl WebhookScheme {
    /// What is expected of a URL.
    pub(crate) const EXPECTED: &'static str =
        "must be an https://, http://, redis://, rediss://, nats:// or tls:// URL";

    /// Returns the destination of a URL; `None` if its scheme is unknown.
    pub(crate) fn of(url: &str) -> Option<Self> {
        let (scheme, _) = url.split_once("://")?;
        match scheme
            .split_once('+')
            .map_or(scheme, |(service, _)| service)
        {
            "http" | "https" => Some(Self::Http),
            "nats" | "tls" => Some(Self::Nats),
            "redis" | "rediss" => Some(Self::Redis),
            _ => None,
        }
    }
}

/// A destination that is told what happens to clients and channels.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct WebhookOptions {
    /// The name in logs and metrics.
    pub name: String,
    /// The URL that batches are sent to, or that of a Redis or NATS service.
    pub url: Secret,
    /// The Redis Stream that events are appended to.
    pub stream: String,
    /// The number of entries of that stream, of which the oldest are removed.
    pub stream_length_max: u64,
    /// The NATS subject that events are published on.
    pub subject: String,
    /// How batches are encoded and signed.
    pub format: WebhookFormat,
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
    /// Maximum memory of the events in a batch, in bytes, unless it is only one.
    pub batch_bytes_max: usize,
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
            url: Secret::new(""),
            stream: String::new(),
            stream_length_max: 100_000,
            subject: String::new(),
            format: WebhookFormat::Standard,
            events: None,
            channels: Vec::new(),
            headers: BTreeMap::new(),
            secret: None,
            timeout: Duration::from_secs(5),
            batch_max: 100,
            batch_bytes_max: 262_144,
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
        let default = self.format.default_events();
        self.events.as_deref().unwrap_or(default)
    }

    fn check(&self, check: &mut Check) {
        check_name(&self.name, check);
        self.check_destination(check);
        for event in self.events() {
            if self.format == WebhookFormat::Pusher && !event.is_of_pusher() {
                let because = "is not an event of the format pusher";
                check.refuse("events", event.name(), because);
            }
        }
        check.range("channels", self.channels.len(), 0..=1_000);
        check_headers(&self.headers, check);
        let signing = |name: &&String| {
            let name = name.to_ascii_lowercase();
            SIGNING.iter().any(|prefix| name.starts_with(prefix))
        };
        for name in self.headers.keys().filter(signing) {
            check.refuse("headers", name, "has a prefix that the signature uses");
        }
        check_tls(&self.tls_certificate, &self.tls_key, check);
        let millis = |duration: Duration| duration.as_millis() as u64;
        check.range("timeout_ms", millis(self.timeout), 10..=60_000);
        check.range("batch_max", self.batch_max, 1..=1_000);
        check.range("batch_bytes_max", self.batch_bytes_max, 1_024..=16 << 20);
        check.range("batch_delay_ms", millis(self.batch_delay), 0..=60_000);
        check.range("queue_max", self.queue_max, 1..=10_000_000);
        check.range("queue_bytes_max", self.queue_bytes_max, 65_536..=1 << 30);
        let pause = millis(self.retry_pause_max);
        check.range("retry_pause_max_ms", pause, 200..=600_000);
    }

    /// Checks the URL and the options that depend on it.
    fn check_destination(&self, check: &mut Check) {
        let url = self.url.expose();
        let scheme = WebhookScheme::of(url);
        if self.url.is_file() {
            // The file is read when the webhook starts.
        } else if scheme == Some(WebhookScheme::Http) {
            // Some applications put a secret into the path.
            check_url(url, "(not shown)", "must not contain a user", check);
        } else if scheme.is_none() {
            check.refuse("url", "(not shown)", WebhookScheme::EXPECTED);
        }
        let is_http = match self.url.is_file() {
            true => self.stream.is_empty() && self.subject.is_empty(),
            false => scheme.is_none_or(|scheme| scheme == WebhookScheme::Http),
        };
        let is_standard = self.format == WebhookFormat::Standard;
        if is_http && is_standard && self.secret.is_none() {
            check.refuse("secret", "(none)", "is required to sign batches");
        } else if !(is_http && is_standard) && self.secret.is_some() {
            check.refuse(
                "secret",
                "(secret)",
                "is only for the format standard over HTTP",
            );
        }
        if !is_http {
            self.check_service(check);
        }
        self.check_place(scheme, check);
    }

    /// Checks options that are only for HTTP.
    fn check_service(&self, check: &mut Check) {
        let because = "is only for https:// and http:// URLs";
        if self.format == WebhookFormat::Pusher {
            check.refuse("format", "pusher", because);
        }
        if let Some(name) = self.headers.keys().next() {
            check.refuse("headers", name, because);
        }
        if let Some(path) = &self.tls_certificate {
            check.refuse("tls_certificate", path.display(), because);
        }
    }

    /// Checks the stream or the subject.
    fn check_place(&self, scheme: Option<WebhookScheme>, check: &mut Check) {
        let is_stream = (1..=512).contains(&self.stream.len());
        match scheme {
            Some(WebhookScheme::Redis) if !is_stream => {
                let because = "must be the key of a Redis Stream, with 1 to 512 bytes";
                check.refuse("stream", &self.stream, because);
            }
            Some(WebhookScheme::Nats) if !is_subject(&self.subject) => {
                let because = "must be a NATS subject without wildcards, with 1 to 256 bytes";
                check.refuse("subject", &self.subject, because);
            }
            _ => {}
        }
        if !self.stream.is_empty() && scheme.is_some_and(|it| it != WebhookScheme::Redis) {
            check.refuse("stream", &self.stream, "is only for redis:// URLs");
        }
        if !self.subject.is_empty() && scheme.is_some_and(|it| it != WebhookScheme::Nats) {
            check.refuse("subject", &self.subject, "is only for nats:// URLs");
        }
        let length_max = self.stream_length_max;
        check.range("stream_length_max", length_max, 1..=1_000_000_000);
    }
}

/// Returns whether messages can be published on a subject.
fn is_subject(subject: &str) -> bool {
    let is_token = |token: &str| {
        let forbidden =
            |char: char| char.is_whitespace() || char.is_control() || "*>".contains(char);
        !token.is_empty() && !token.contains(forbidden)
    };
    (1..=256).contains(&subject.len()) && subject.split('.').all(is_token)
}

/// Checks the webhooks.
pub(super) fn check(config: &Config, check: &mut Check) {
    check.range("webhook", config.webhooks.len(), 0..=WEBHOOKS_MAX);
    let mut names = HashSet::new();
    for (index, webhook) in config.webhooks.iter().enumerate() {
        check.section(&format!("webhook[{index}]"), |check| {
            webhook.check(check);
            let is_pusher = webhook.format == WebhookFormat::Pusher;
            if is_pusher && !(config.protocols.pusher && config.pusher.is_complete()) {
                let because = "requires protocols.pusher, and app_id, key and secret of [pusher]";
                check.refuse("format", "pusher", because);
            }
            let counts = WebhookEvent::SubscriptionCount;
            if webhook.events().contains(&counts) && !config.tells_subscription_counts() {
                let because = "requires protocols.pusher, and subscription_counts of [pusher]";
                check.refuse("events", counts.name(), because);
            }
            if !names.insert(webhook.name.as_str()) {
                check.refuse("name", &webhook.name, "is used by two webhooks");
            }
        });
    }
}

#[cfg(test)]
mod tests;
