//! What sessions share: the configuration as it is now, and what was made of it.

use std::{net::IpAddr, sync::Arc, time::Instant};

use arc_swap::{ArcSwap, Guard};
use linerate_hub::{ChannelName, channel::ChannelNameError};

use crate::{
    api::attempts::{Attempts, KeyRefusal},
    auth::{AuthSetupError, Authenticator, Origins},
    config::{ChannelOptions, Config, Namespaces},
    filter::Filters,
    metrics::{KeyResult, Metrics},
    protocol::centrifuge::ClientError,
    quiet::Quiet,
};

static WRONG_KEYS: Quiet = Quiet::new();

/// What all sessions of a node share.
#[derive(Debug)]
pub struct Shared {
    settings: ArcSwap<Settings>,
    metrics: Metrics,
    attempts: Attempts,
}

/// What is configured, and what was made of it.
#[derive(Debug)]
pub struct Settings {
    /// Everything that is configured.
    pub config: Config,
    /// The options of channels.
    pub namespaces: Namespaces,
    /// Judges tokens.
    pub authenticator: Authenticator,
    /// Judges pages.
    pub origins: Origins,
    /// Compiles what subscribers filter by.
    pub filters: Filters,
}

/// Who may upload logs, and look at those that the server follows.
///
/// Complete: a client is let in, asked for a key, or turned away.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LogsAccess {
    /// No client: the server is not open, and neither `auth.logs_key` nor `auth.admin_key` is configured.
    Closed,
    /// Clients that show a key.
    Key,
    /// Each client: the server is open.
    Open,
}

impl Shared {
    /// Starts with these settings.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings: ArcSwap::from_pointee(settings),
            metrics: Metrics::default(),
            attempts: Attempts::default(),
        }
    }

    /// Uses other settings from now on; what stands already is not taken back.
    pub fn replace(&self, settings: Settings) {
        self.settings.store(Arc::new(settings));
    }

    /// Returns what sessions count.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Judges a key for logs that an address shows: `auth.logs_key` or `auth.admin_key`.
    ///
    /// # Errors
    /// It is wrong, or too many from this address were.
    pub fn judge_logs_key(&self, key: &[u8], address: IpAddr) -> Result<(), KeyRefusal> {
        let settings = self.settings_full();
        self.judge_key("logs_key", Some(address), || {
            settings.authenticator.is_logs_key(key)
        })
    }

    /// Judges a key of this kind, unless too many keys that its address has shown were wrong. What comes of it is counted,
    /// and wrong keys are logged.
    pub(crate) fn judge_key(
        &self,
        kind: &'static str,
        address: Option<IpAddr>,
        is_right: impl FnOnce() -> bool,
    ) -> Result<(), KeyRefusal> {
        let now = Instant::now();
        let count = |result| self.metrics.count_key(kind, result);
        if let Some(wait) = address.and_then(|address| self.attempts.wait(address, now)) {
            count(KeyResult::Limited);
            return Err(KeyRefusal::Limited(wait));
        }
        if is_right() {
            count(KeyResult::Ok);
            return Ok(());
        }
        count(KeyResult::Invalid);
        if let Some(address) = address {
            self.attempts.note_wrong(address, now);
        }
        if let Some(count) = WRONG_KEYS.ask(now) {
            tracing::warn!(count, ?address, kind, "wrong key was shown");
        }
        Err(KeyRefusal::Wrong)
    }

    /// Returns the settings as they are now.
    pub fn settings(&self) -> Guard<Arc<Settings>> {
        self.settings.load()
    }

    /// Returns the settings as they are now, for as long as somebody needs them.
    pub fn settings_full(&self) -> Arc<Settings> {
        self.settings.load_full()
    }
}

impl Settings {
    /// Reads keys and origins. What was fetched is kept from `previous`.
    ///
    /// # Errors
    /// A key or an origin is none.
    pub fn new(config: Config, previous: Option<&Self>) -> Result<Self, AuthSetupError> {
        let authenticator = match previous {
            None => Authenticator::new(&config.auth)?,
            Some(previous) => Authenticator::renew(&config.auth, &previous.authenticator)?,
        };
        Ok(Self {
            namespaces: Namespaces::new(&config),
            origins: Origins::new(&config.server.origins)?,
            filters: Filters::new(config.filter.clone()),
            authenticator,
            config,
        })
    }

    /// Returns who may upload and follow logs.
    pub fn logs_access(&self) -> LogsAccess {
        let has_own_key = self.authenticator.has_logs_key();
        if self.config.is_open() && !has_own_key {
            return LogsAccess::Open;
        }
        match has_own_key || self.authenticator.has_admin_key() {
            true => LogsAccess::Key,
            false => LogsAccess::Closed,
        }
    }

    /// Returns the options of a channel.
    pub fn channel(&self, channel: &ChannelName) -> &ChannelOptions {
        self.namespaces.options(channel)
    }

    /// Checks the name of a channel that a client gives.
    pub(crate) fn channel_name(&self, name: &str) -> Result<ChannelName, ClientError> {
        let bytes_max = self.config.client.channel_name_bytes_max;
        if name.len() > bytes_max {
            let bytes = name.len();
            return Err(refused(ChannelNameError::TooLong { bytes, bytes_max }));
        }
        ChannelName::new(name).map_err(refused)
    }
}

fn refused(error: ChannelNameError) -> ClientError {
    ClientError::BAD_REQUEST.with_message(error.to_string())
}
