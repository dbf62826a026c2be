//! `[[webhook]]`: where the application is told what happens to clients and channels.

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

/// The events that are sent in Pusher's format unless others are configured.
const PUSHER_EVENTS: &[WebhookEvent] = &[
    WebhookEvent::Occupied,
    WebhookEvent::Vacated,
    WebhookEvent::MemberAdded,
    WebhookEvent::MemberRemoved,
];

/// The prefixes of the headers with which batches are signed.
const SIGNING: [&str; 2] = ["webhook-", "x-pusher-"];

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

/// How the batches of a webhook are encoded and signed.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WebhookFormat {
    /// As Pusher does.
    Pusher,
    /// Our own events, signed as Standard Webhooks prescribe.
    #[default]
    Standard,
}

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
        let default = match self.format {
            WebhookFormat::Pusher => PUSHER_EVENTS,
            WebhookFormat::Standard => STANDARD_EVENTS,
        };
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

impl WebhookEvent {
    /// Returns the name, as in the configuration.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::CacheMiss => "cache_miss",
            Self::Connected => "connected",
            Self::Disconnected => "disconnected",
            Self::MemberAdded => "member_added",
            Self::MemberRemoved => "member_removed",
            Self::Occupied => "occupied",
            Self::Published => "published",
            Self::Subscribed => "subscribed",
            Self::Unsubscribed => "unsubscribed",
            Self::Vacated => "vacated",
        }
    }

    /// Returns whether the webhooks of Pusher have such an event.
    const fn is_of_pusher(self) -> bool {
        !matches!(
            self,
            Self::Connected | Self::Disconnected | Self::Subscribed | Self::Unsubscribed
        )
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
                "webhook[0].url = (not shown) must be an https://, http://, redis://, rediss://, nats:// or tls:// URL",
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
                &format!("{url}batch_bytes_max = 1"),
                "webhook[0].batch_bytes_max = 1 must be between 1024 and 16777216",
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
                &format!("{url}headers = {{ X-Pusher-Key = \"x\" }}"),
                "webhook[0].headers = X-Pusher-Key has a prefix that the signature uses",
            ),
            (
                "url = \"http://localhost/\"\nformat = \"pusher\"",
                "webhook[0].format = pusher requires protocols.pusher, and app_id, key and secret",
            ),
            (
                &format!("{url}format = \"pusher\""),
                "webhook[0].secret = (secret) is only for the format standard over HTTP",
            ),
            (
                "url = \"http://localhost/\"\nformat = \"pusher\"\nevents = [\"connected\"]",
                "webhook[0].events = connected is not an event of the format pusher",
            ),
            (
                "url = \"redis://localhost\"",
                "webhook[0].stream =  must be the key of a Redis Stream",
            ),
            (
                "url = \"nats://localhost\"\nsubject = \"a.*\"",
                "webhook[0].subject = a.* must be a NATS subject without wildcards",
            ),
            (
                "url = \"nats://localhost\"\nsubject = \"a\"\nformat = \"pusher\"",
                "webhook[0].format = pusher is only for https:// and http:// URLs",
            ),
            (
                "url = \"redis://localhost\"\nstream = \"a\"\nheaders = { A = \"b\" }",
                "webhook[0].headers = A is only for https:// and http:// URLs",
            ),
            (
                &format!("{url}stream = \"a\""),
                "webhook[0].stream = a is only for redis:// URLs",
            ),
            (
                "url = \"redis://:hunter2@localhost\"\nstream = \"a\"\nstream_length_max = 0",
                "webhook[0].stream_length_max = 0 must be between 1 and 1000000000",
            ),
            (
                &format!("{url}[[webhook]]\nname = \"app\"\n{url}"),
                "webhook[1].name = app is used by two webhooks",
            ),
        ] {
            let text = format!("[[webhook]]\nname = \"app\"\n{webhook}\n");
            let error = Loader::new().with_text("test.toml", &text).load();
            let error = error.unwrap_err().to_string();
            assert!(error.contains(message), "{webhook}: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
