//! `[phoenix]`: the limits of Phoenix clients.

use std::time::Duration;

use serde::Deserialize;

use super::{check::Check, unit};

/// The limits of Phoenix clients.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PhoenixOptions {
    /// How long a client may send nothing.
    #[serde(rename = "heartbeat_timeout_s", with = "unit::seconds")]
    pub heartbeat_timeout: Duration,
}

impl PhoenixOptions {
    pub(super) fn check(&self, check: &mut Check) {
        let timeout = self.heartbeat_timeout.as_secs();
        check.range("heartbeat_timeout_s", timeout, 2..=86_400);
    }
}
