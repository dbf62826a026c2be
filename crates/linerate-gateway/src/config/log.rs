//! `[log]`: log level and format.

use serde::Deserialize;

use super::check::Check;

/// Log level and format. Logs go to standard error.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct LogOptions {
    /// `error`, `warn`, `info`, `debug` or `trace`, also for single modules:
    /// `warn,linerate_gateway=debug`.
    pub level: String,
    /// The format of a line.
    pub format: LogFormat,
}

/// The format of a log line.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum LogFormat {
    /// Text for people.
    Human,
    /// For programs: one JSON object per line.
    Json,
}

impl LogOptions {
    pub(super) fn check(&self, check: &mut Check) {
        check.range("level", self.level.len(), 1..=1_024);
    }
}
