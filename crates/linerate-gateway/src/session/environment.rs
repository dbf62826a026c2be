//! State shared by sessions: the current configuration, and what is derived from it.

use std::{net::IpAddr, sync::Arc};

use arc_swap::{ArcSwap, Guard};
use linerate_hub::{ChannelName, channel::ChannelNameError};

use crate::{
    auth::{Attempts, AuthSetupError, Authenticator, KeyRefusal, Origins, PusherApp},
    backend::Backends,
    clock::now,
    config::{ChannelOptions, Config, Namespaces},
    endpoint_error::EndpointError,
    filter::Filters,
    log_limiter::LogLimiter,
    metrics::{KeyResult, Metrics},
    producer::ProducerSetup,
    protocol::codes::ClientError,
    source::{RedisSetup, SourceSetup},
    webhook::Endpoint,
};

static WRONG_KEYS: LogLimiter = LogLimiter::new();

/// The state that all sessions of a node share.
#[derive(Debug)]
pub(crate) struct SessionEnvironment {
    settings: ArcSwap<Settings>,
    metrics: Metrics,
    attempts: Attempts,
}

/// The configuration, and what is derived from it.
#[derive(Debug)]
pub(crate) struct Settings {
    /// The complete configuration.
    pub config: Config,
    /// The options of channels.
    pub namespaces: Namespaces,
    /// Verifies tokens and keys.
    pub authenticator: Authenticator,
    /// The application's backends.
    pub backends: Backends,
    /// Checks the `Origin` of requests.
    pub origins: Origins,
    /// Compiles the filters of subscribers.
    pub filters: Filters,
    /// The topics of Kafka to which publications are written.
    pub producers: Vec<Arc<ProducerSetup>>,
    /// The databases and Kafka clusters whose changes and records are published.
    pub sources: Vec<Arc<SourceSetup>>,
    /// The Redis in which Socket.IO's own server and emitter publish, if it is read.
    pub socketio_redis: Option<Arc<RedisSetup>>,
    /// The URLs that are told what happens to clients.
    pub webhooks: Vec<Arc<Endpoint>>,
    /// Verifies the signatures of the Pusher app; `None` if its protocol is switched off.
    pub pusher: Option<PusherApp>,
}

/// Reads the options of the sources.
fn sources(config: &Config) -> Result<Vec<Arc<SourceSetup>>, EndpointError> {
    let databases = config.postgres.iter().map(SourceSetup::postgres);
    let clusters = config.kafka.iter().map(SourceSetup::kafka);
    let sources = databases.chain(clusters.filter_map(Result::transpose));
    sources.map(|setup| setup.map(Arc::new)).collect()
}

/// Reads the options of the producers.
fn producers(config: &Config) -> Result<Vec<Arc<ProducerSetup>>, EndpointError> {
    let all = config.kafka.iter().map(ProducerSetup::all_of);
    let all = all.collect::<Result<Vec<_>, _>>()?;
    Ok(all.into_iter().flatten().map(Arc::new).collect())
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// A key or an origin is invalid.
    #[error(transparent)]
    Auth(#[from] AuthSetupError),
    /// A backend, a webhook or a database cannot be used.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
}

impl SessionEnvironment {
    /// Creates the shared state with these settings.
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings: ArcSwap::from_pointee(settings),
            metrics: Metrics::default(),
            attempts: Attempts::default(),
        }
    }

    /// Replaces the settings. Existing connections and subscriptions stay as they are.
    pub(crate) fn replace(&self, settings: Settings) {
        self.settings.store(Arc::new(settings));
    }

    /// Returns the metrics that sessions update.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Checks a key of the given kind, unless its address has presented too many wrong keys. The
    /// result is counted, and wrong keys are logged.
    pub(crate) fn judge_key(
        &self,
        kind: &'static str,
        address: Option<IpAddr>,
        is_right: impl FnOnce() -> bool,
    ) -> Result<(), KeyRefusal> {
        let now = now();
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
            tracing::warn!(count, ?address, kind, "wrong key presented");
        }
        Err(KeyRefusal::Wrong)
    }

    /// Returns a short-lived guard for the current settings.
    pub(crate) fn settings(&self) -> Guard<Arc<Settings>> {
        self.settings.load()
    }

    /// Returns an owned reference to the current settings, which may be kept.
    pub(crate) fn settings_full(&self) -> Arc<Settings> {
        self.settings.load_full()
    }
}

impl Settings {
    /// Reads keys and origins, and prepares backends. Fetched keys, and what is known of backends,
    /// are kept from `previous`.
    ///
    /// # Errors
    /// A key or an origin is invalid, or a backend cannot be used.
    pub(crate) fn new(config: Config, previous: Option<&Self>) -> Result<Self, SettingsError> {
        let authenticator = match previous {
            None => Authenticator::new(&config.auth)?,
            Some(previous) => Authenticator::renew(&config.auth, &previous.authenticator)?,
        };
        let pusher = match config.protocols.pusher {
            true => PusherApp::read(&config.pusher)?,
            false => None,
        };
        let webhooks = config.webhooks.iter();
        let webhooks = webhooks.map(|it| Endpoint::new(it, pusher.as_ref()).map(Arc::new));
        Ok(Self {
            sources: sources(&config)?,
            producers: producers(&config)?,
            socketio_redis: RedisSetup::new(&config)?.map(Arc::new),
            webhooks: webhooks.collect::<Result<_, _>>()?,
            pusher,
            namespaces: Namespaces::new(&config),
            origins: Origins::new(&config.server.origins)?,
            filters: Filters::new(config.filter.clone()),
            backends: Backends::new(
                &config.backends,
                previous.map(|previous| &previous.backends),
            )?,
            authenticator,
            config,
        })
    }

    /// Returns the options of a channel.
    pub(crate) fn channel(&self, channel: &ChannelName) -> &ChannelOptions {
        self.namespaces.options(channel)
    }

    /// Checks a channel name given by a client.
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
