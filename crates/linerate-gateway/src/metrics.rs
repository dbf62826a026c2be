//! Counters, and how Prometheus reads them.
//!
//! What is counted often is counted by each worker for itself and summed when somebody asks ([`Snapshot`]); what
//! happens once a connection or subscription is counted in [`Metrics`]. Labels are bounded: no channel, user or
//! address is one.

mod process;
mod snapshot;

use std::fmt;

use prometheus_client::{
    encoding::text,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use crate::auth::TokenError;
pub use snapshot::Snapshot;

/// What stands before each name.
const PREFIX: &str = "linerate";
/// The codes of disconnects that have labels of their own: those of Centrifugo's protocol.
const CODES: std::ops::Range<u32> = 3_000..3_600;

type Labels<const N: usize> = [(&'static str, &'static str); N];

/// What sessions count.
#[derive(Debug, Default)]
pub struct Metrics {
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

impl Metrics {
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

    /// Returns everything in the text format of OpenMetrics, which Prometheus reads.
    ///
    /// # Errors
    /// None that happens: a text takes whatever is written to it.
    pub fn to_text(&self, snapshot: Snapshot) -> Result<String, fmt::Error> {
        let mut ours = Registry::with_prefix(PREFIX);
        ours.register("auth", "Tokens judged", self.auth.clone());
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

#[cfg(test)]
mod tests;
