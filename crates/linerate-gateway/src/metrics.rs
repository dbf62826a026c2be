//! Metrics of events that happen once per connection, subscription or request.
//!
//! Frequent events are counted by each worker separately and summed on request. The number of
//! label values is bounded: channels, users and addresses are never labels.

mod durations;

use std::time::Duration;

use prometheus_client::{
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use crate::auth::TokenError;
use durations::Durations;
pub(crate) use durations::PublishDurations;

/// Disconnect codes that get their own label value: those of Centrifugo's protocol.
const CODES: std::ops::Range<u32> = 3_000..3_600;

type Labels<const N: usize> = [(&'static str, &'static str); N];

/// Metrics that sessions and the server API record.
#[derive(Debug)]
pub(crate) struct Metrics {
    api_seconds: Durations<[(&'static str, String); 1]>,
    command_seconds: Durations<Labels<1>>,
    backend_seconds: Durations<([(&'static str, String); 1], Labels<2>)>,
    auth: Family<Labels<2>, Counter>,
    disconnects: Family<[(&'static str, u32); 1], Counter>,
    recoveries: Family<Labels<1>, Counter>,
    takeovers: Family<Labels<1>, Counter>,
}

/// The purpose of a token.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TokenKind {
    /// A connection.
    Connection,
    /// A subscription.
    Subscription,
}

/// The result of checking a key of the server API, of `/admin` or for logs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum KeyResult {
    /// The key is wrong.
    Invalid,
    /// The key was not checked, because too many keys from the same address were wrong.
    Limited,
    /// The key is right.
    Ok,
}

impl KeyResult {
    const ALL: [Self; 3] = [Self::Invalid, Self::Limited, Self::Ok];

    const fn label(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Limited => "limited",
            Self::Ok => "ok",
        }
    }
}

/// The progress of a takeover, on either side.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TakeoverResult {
    /// It failed, and the old process continues.
    Failed,
    /// It began.
    Started,
    /// The new process is responsible.
    Succeeded,
}

impl TakeoverResult {
    const ALL: [Self; 3] = [Self::Failed, Self::Started, Self::Succeeded];

    const fn label(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Started => "started",
            Self::Succeeded => "succeeded",
        }
    }
}

impl Metrics {
    /// Counts a takeover.
    pub(crate) fn count_takeover(&self, result: TakeoverResult) {
        let labels = [("result", result.label())];
        self.takeovers.get_or_create(&labels).inc();
    }

    /// Counts a key that was presented.
    pub(crate) fn count_key(&self, kind: &'static str, result: KeyResult) {
        let labels = [("kind", kind), ("result", result.label())];
        self.auth.get_or_create(&labels).inc();
    }

    /// Counts a token that was verified.
    pub(crate) fn count_token<T>(&self, kind: TokenKind, judged: &Result<T, TokenError>) {
        let kind = match kind {
            TokenKind::Connection => "connection",
            TokenKind::Subscription => "subscription",
        };
        let result = match judged {
            Ok(_) => "ok",
            Err(error) => error.label(),
        };
        let labels = [("kind", kind), ("result", result)];
        self.auth.get_or_create(&labels).inc();
    }

    /// Counts a connection that the server closes.
    pub(crate) fn count_disconnect(&self, code: u32) {
        // Applications may choose any code, so that others share a label value.
        let code = if CODES.contains(&code) { code } else { 0 };
        self.disconnects.get_or_create(&[("code", code)]).inc();
    }

    /// Counts a subscriber that reconnected and asked for what it missed.
    pub(crate) fn count_recovery(&self, is_recovered: bool) {
        let result = if is_recovered { "ok" } else { "incomplete" };
        self.recoveries.get_or_create(&[("result", result)]).inc();
    }

    /// Counts a command of a client, and the time from its arrival to the reply.
    pub(crate) fn count_command(&self, method: &'static str, took: Duration) {
        let histogram = self.command_seconds.get_or_create(&[("method", method)]);
        histogram.observe(took.as_secs_f64());
    }

    /// Counts a question to a backend, and the time until the answer.
    pub(crate) fn count_question(
        &self,
        backend: &str,
        event: &'static str,
        result: &'static str,
        took: Duration,
    ) {
        let labels = (
            [("backend", backend.to_owned())],
            [("event", event), ("result", result)],
        );
        let histogram = self.backend_seconds.get_or_create(&labels);
        histogram.observe(took.as_secs_f64());
    }

    /// Counts a request to an existing method of the server API, and the time until the reply.
    pub(crate) fn count_request(&self, method: &str, took: Duration) {
        let labels = [("method", method.to_owned())];
        let histogram = self.api_seconds.get_or_create(&labels);
        histogram.observe(took.as_secs_f64());
    }

    /// Registers the metrics under their names, without the prefix.
    pub(crate) fn register(&self, registry: &mut Registry) {
        let help = "Duration of requests to the server API";
        registry.register("api_seconds", help, self.api_seconds.clone());
        let help = "Time from the arrival of a client's command to the reply";
        registry.register("command_seconds", help, self.command_seconds.clone());
        let help = "Time that backends took to answer, by backend, event and result";
        registry.register("backend_seconds", help, self.backend_seconds.clone());
        let help = "Tokens and keys checked, by kind and result";
        registry.register("auth", help, self.auth.clone());
        let help = "Sessions with commands that the server closed, by code; 0 for codes chosen by applications";
        registry.register("disconnects", help, self.disconnects.clone());
        let help = "Subscribers that reconnected and asked for missed publications, by result";
        registry.register("recoveries", help, self.recoveries.clone());
        let help = "Takeovers by or of this process that started, failed or succeeded";
        registry.register("takeovers", help, self.takeovers.clone());
    }
}

impl Default for Metrics {
    /// Creates all counters that alerts may depend on with the value 0, because Prometheus cannot
    /// see an increase to a counter's first value.
    fn default() -> Self {
        let metrics = Self {
            api_seconds: durations::durations(),
            command_seconds: durations::durations(),
            backend_seconds: durations::durations(),
            auth: Family::default(),
            disconnects: Family::default(),
            recoveries: Family::default(),
            takeovers: Family::default(),
        };
        for kind in ["connection", "subscription"] {
            for result in TokenError::LABELS.into_iter().chain(["ok"]) {
                let labels = [("kind", kind), ("result", result)];
                drop(metrics.auth.get_or_create(&labels));
            }
        }
        for kind in ["admin_key", "api_key", "logs_key", "pusher_secret"] {
            for result in KeyResult::ALL {
                let labels = [("kind", kind), ("result", result.label())];
                drop(metrics.auth.get_or_create(&labels));
            }
        }
        for result in ["incomplete", "ok"] {
            drop(metrics.recoveries.get_or_create(&[("result", result)]));
        }
        for result in TakeoverResult::ALL {
            drop(
                metrics
                    .takeovers
                    .get_or_create(&[("result", result.label())]),
            );
        }
        metrics
    }
}
