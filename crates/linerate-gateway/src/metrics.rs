//! Counters, and how Prometheus reads them.
//!
//! What is counted often is counted by each worker for itself and summed when somebody asks ([`Snapshot`]); what
//! happens once a connection or subscription is counted in [`Metrics`]. Labels are bounded: no channel, user or
//! address is one.

mod deliveries;
mod durations;
mod figure;
mod process;
mod snapshot;

use std::{fmt, time::Duration};

use prometheus_client::{
    encoding::text,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use crate::auth::TokenError;
use durations::Durations;
pub(crate) use durations::PublishDurations;
pub use snapshot::Snapshot;

/// What stands before each name.
const PREFIX: &str = "linerate";
/// The codes of disconnects that have labels of their own: those of Centrifugo's protocol.
const CODES: std::ops::Range<u32> = 3_000..3_600;

type Labels<const N: usize> = [(&'static str, &'static str); N];

/// What sessions count.
#[derive(Debug)]
pub struct Metrics {
    api_seconds: Durations<[(&'static str, String); 1]>,
    command_seconds: Durations<Labels<1>>,
    auth: Family<Labels<2>, Counter>,
    disconnects: Family<[(&'static str, u32); 1], Counter>,
    recoveries: Family<Labels<1>, Counter>,
}

/// What a token was shown for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TokenKind {
    /// A connection.
    Connection,
    /// A subscription.
    Subscription,
}

/// How a key of the server API, of `/admin` or for logs was judged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum KeyResult {
    /// It is wrong.
    Invalid,
    /// It was not looked at, because too many from the same address were wrong.
    Limited,
    /// It is right.
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

impl Metrics {
    /// Counts a key that was shown.
    pub(crate) fn count_key(&self, kind: &'static str, result: KeyResult) {
        let labels = [("kind", kind), ("result", result.label())];
        self.auth.get_or_create(&labels).inc();
    }

    /// Counts a token that was judged.
    pub fn count_token<T>(&self, kind: TokenKind, judged: &Result<T, TokenError>) {
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

    /// Counts a connection that the server ends.
    pub fn count_disconnect(&self, code: u32) {
        // Applications may choose any code.
        let code = if CODES.contains(&code) { code } else { 0 };
        self.disconnects.get_or_create(&[("code", code)]).inc();
    }

    /// Counts a subscriber who came back for what it missed.
    pub fn count_recovery(&self, is_recovered: bool) {
        let result = if is_recovered { "ok" } else { "incomplete" };
        self.recoveries.get_or_create(&[("result", result)]).inc();
    }

    /// Counts a command of a client that was answered, and how long that took since it came.
    pub fn count_command(&self, method: &'static str, took: Duration) {
        let histogram = self.command_seconds.get_or_create(&[("method", method)]);
        histogram.observe(took.as_secs_f64());
    }

    /// Counts a request to a method of the server API that exists, and how long the answer took.
    pub fn count_request(&self, method: &str, took: Duration) {
        let labels = [("method", method.to_owned())];
        let histogram = self.api_seconds.get_or_create(&labels);
        histogram.observe(took.as_secs_f64());
    }

    /// Returns everything in the text format of OpenMetrics, which Prometheus reads.
    ///
    /// # Errors
    /// None that happens: a text takes whatever is written to it.
    pub fn to_text(&self, snapshot: Snapshot) -> Result<String, fmt::Error> {
        let mut ours = Registry::with_prefix(PREFIX);
        let help = "How long requests to the server API took";
        ours.register("api_seconds", help, self.api_seconds.clone());
        let help = "How long clients waited for the answers to their commands";
        ours.register("command_seconds", help, self.command_seconds.clone());
        let help =
            "How long the broker took to publish what came by the server API or from clients";
        ours.register("publish_seconds", help, snapshot.publishes.0.clone());
        ours.register("auth", "Tokens and keys judged", self.auth.clone());
        let help = "Sessions with commands that the server has ended, by code; 0 for codes of applications";
        ours.register("disconnects", help, self.disconnects.clone());
        let help = "Subscribers who came back for what they missed";
        ours.register("recoveries", help, self.recoveries.clone());
        ours.register_collector(Box::new(snapshot));
        let mut process = Registry::default();
        process.register_collector(Box::new(process::Process::look()));
        let mut text = String::new();
        text::encode_registry(&mut text, &ours)?;
        text::encode_registry(&mut text, &process)?;
        text::encode_eof(&mut text)?;
        Ok(text)
    }
}

impl Default for Metrics {
    /// What an alert may wait for begins at 0, because Prometheus takes no notice of a counter's first value.
    fn default() -> Self {
        let metrics = Self {
            api_seconds: durations::durations(),
            command_seconds: durations::durations(),
            auth: Family::default(),
            disconnects: Family::default(),
            recoveries: Family::default(),
        };
        for kind in ["connection", "subscription"] {
            for result in TokenError::LABELS.into_iter().chain(["ok"]) {
                let labels = [("kind", kind), ("result", result)];
                drop(metrics.auth.get_or_create(&labels));
            }
        }
        for kind in ["admin_key", "api_key", "logs_key"] {
            for result in KeyResult::ALL {
                let labels = [("kind", kind), ("result", result.label())];
                drop(metrics.auth.get_or_create(&labels));
            }
        }
        for result in ["incomplete", "ok"] {
            drop(metrics.recoveries.get_or_create(&[("result", result)]));
        }
        metrics
    }
}

#[cfg(test)]
mod tests;
