//! `[log]`: what is logged, and how.

use serde::Deserialize;

use super::check::Check;

/// What is logged, and how. Logs go to standard error.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct LogOptions {
    /// `error`, `warn`, `info`, `debug` or `trace`, also for a module: `warn,linerate_gateway=debug`.
    pub level: String,
    /// How a line looks.
    pub format: LogFormat,
}

/// How a line of the log looks.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum LogFormat {
    /// For people.
    #[default]
    Human,
    /// For machines: an object each line.
    Json,
}

impl LogOptions {
    pub(super) fn check(&self, check: &mut Check) {
        check.range("level", self.level.len(), 1..=1_024);
    }
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            level: "info".into(),
            format: LogFormat::default(),
        }
    }
}
