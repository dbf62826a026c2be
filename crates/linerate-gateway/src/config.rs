//! The configuration: defaults, overridden by a TOML file, the environment and flags, in this
//! order.
//!
//! Each section has its own struct. Keys for a time or a size end in their unit (`_s`, `_ms`,
//! `_bytes_max`). `default.toml` in this directory documents every key with its default; `linerate
//! config default` prints it.

mod auth;
mod backend;
mod broker;
mod channel;
mod check;
mod client;
mod compression;
mod endpoint;
mod error;
mod filter;
mod history;
mod kafka;
mod layer;
mod limits;
mod load;
mod log;
mod memory;
mod mistakes;
mod namespaces;
mod phoenix;
mod postgres;
mod protocols;
mod pusher;
mod secret;
mod section;
mod server;
mod settings;
mod socketio;
mod source;
mod suggest;
mod unit;
mod variants;
mod webhook;

use std::{collections::BTreeMap, sync::LazyLock};

use serde::Deserialize;

pub use auth::{AuthOptions, TokenOptions};
pub use backend::BackendOptions;
pub(crate) use backend::EVENT;
pub use broker::BrokerOptions;
pub use channel::{ChannelOptions, Conflation, Gaps, RecoveryMode, SlowPolicy};
pub use client::ClientOptions;
pub use compression::CompressionOptions;
pub use error::{ConfigError, Source};
pub use filter::FilterOptions;
pub use history::HistoryOptions;
pub use kafka::{KafkaOptions, KafkaProducer, KafkaStart, KafkaTopic};
pub use load::Loader;
pub use log::{LogFormat, LogOptions};
pub use namespaces::Namespace;
pub(crate) use namespaces::Namespaces;
pub use phoenix::PhoenixOptions;
pub use postgres::{PostgresOptions, PostgresTable};
pub use protocols::ProtocolOptions;
pub use pusher::PusherOptions;
pub(crate) use pusher::{PusherAccess, PusherKind};
pub use secret::Secret;
pub use section::Section;
pub use server::{DrainOptions, ServerOptions, TlsOptions};
pub(crate) use settings::Setting;
pub use socketio::{SocketIoOptions, SocketIoRedisOptions};
pub(crate) use webhook::WebhookScheme;
pub use webhook::{WebhookEvent, WebhookFormat, WebhookOptions};

use check::Check;
use layer::{Table, Value};

/// Every key of the gateway's sections with its default and its meaning, as a file.
const DEFAULT_TOML: &str = include_str!("config/default.toml");
/// The defaults, which every configuration starts from.
static DEFAULTS: LazyLock<Table> =
    LazyLock::new(|| layer::from_toml(DEFAULT_TOML.parse().expect("default.toml is valid")));

/// The complete configuration.
///
/// # Examples
/// ```
/// use linerate_gateway::config::Loader;
///
/// let config = Loader::new()
///     .with_text("example.toml", "[client]\nping_interval_s = 10")
///     .load()?;
/// assert_eq!(config.client.ping_interval.as_secs(), 10);
/// # Ok::<(), linerate_gateway::config::ConfigError>(())
/// ```
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Config {
    /// Who may connect, publish and administer.
    pub auth: AuthOptions,
    /// The backends of the application.
    #[serde(default, rename = "backend")]
    pub backends: Vec<BackendOptions>,
    /// The message broker that carries publications.
    pub broker: BrokerOptions,
    /// The options of channels without a namespace, and the defaults for all namespaces.
    pub channel: ChannelOptions,
    /// Limits and timeouts for each client.
    pub client: ClientOptions,
    /// Compression of WebSocket messages.
    pub compression: CompressionOptions,
    /// Limits on the size and number of filters.
    pub filter: FilterOptions,
    /// Limits on the history that this node keeps of channels that are not durable.
    pub history: HistoryOptions,
    /// The Kafka clusters whose records are published.
    #[serde(default)]
    pub kafka: Vec<KafkaOptions>,
    /// Log level and format.
    pub log: LogOptions,
    /// The channel namespaces.
    #[serde(default, rename = "namespace")]
    pub namespaces: Vec<Namespace>,
    /// The databases whose changes are published.
    #[serde(default)]
    pub postgres: Vec<PostgresOptions>,
    /// The client protocols that the server speaks.
    pub protocols: ProtocolOptions,
    /// The limits of Phoenix clients.
    pub phoenix: PhoenixOptions,
    /// The app of Pusher clients, and its limits.
    pub pusher: PusherOptions,
    /// Listening addresses, connection limits and TLS.
    pub server: ServerOptions,
    /// The URLs that are told what happens to clients.
    #[serde(default, rename = "webhook")]
    pub webhooks: Vec<WebhookOptions>,
    /// The namespaces of Socket.IO clients, and their limits.
    pub socketio: SocketIoOptions,
    /// The values that are set in the sections of the application.
    #[serde(skip)]
    sections: BTreeMap<&'static str, Value>,
    /// Every setting and its source, without secrets; empty if this was not loaded.
    #[serde(skip)]
    settings: Vec<Setting>,
}

impl Config {
    /// Returns whether the server is open. An open server asks for no keys: `[auth]` configures
    /// none, no backend decides who may connect, and either only this machine can connect or
    /// `auth.anonymous` allows it explicitly.
    ///
    /// On an open server, `open.toml` in this directory provides the channel defaults, and the
    /// server API accepts requests from this machine without a key.
    pub fn is_open(&self) -> bool {
        !self.judges_clients() && (self.auth.anonymous || self.server.is_local())
    }

    /// Returns whether a key is configured, or a backend that decides who may connect.
    fn judges_clients(&self) -> bool {
        self.auth.has_keys() || backend_name(&self.client.connect_backend).is_some()
    }

    /// Returns whether a client may connect without a token, and without being known to a backend.
    pub(crate) fn allows_anonymous(&self) -> bool {
        self.auth.anonymous || self.is_open()
    }

    /// Returns whether Pusher clients and webhooks are told how many subscriptions channels have.
    pub(crate) const fn tells_subscription_counts(&self) -> bool {
        self.protocols.pusher && self.pusher.subscription_counts
    }

    /// Returns the maximum payload bytes that this node keeps of all channels that are not durable:
    /// the limit in `[history]`, but at most a quarter of the memory budget. Histories can be
    /// trimmed without harm; they must not be the reason why clients are closed.
    pub(crate) fn history_budget_bytes(&self) -> u64 {
        let quarter = self.server.memory_budget_bytes() / 4;
        quarter.min(self.history.total_bytes_max as u64)
    }

    /// Returns the options of compression to negotiate; `None` disables compression.
    pub(crate) fn deflate(&self) -> Option<linerate::Deflate> {
        let mut channels = self.namespaces.iter().map(|namespace| &namespace.options);
        let takeover = self.channel.compression_takeover
            || channels.any(|options| options.compression_takeover);
        let mut deflate = self.compression.deflate(takeover)?;
        // A client can then move to another process in the middle of a compressed message.
        deflate.exportable = self.server.takeover_socket.is_some();
        Some(deflate)
    }

    /// Returns the maximum bytes that compression may use: the limit in `[compression]`, but at
    /// most a quarter of the memory budget.
    pub(crate) fn compression_budget_bytes(&self) -> u64 {
        let quarter = self.server.memory_budget_bytes() / 4;
        quarter.min(self.compression.total_bytes_max as u64)
    }

    /// Returns a section that was added to the loader, or its defaults if it was not.
    ///
    /// # Errors
    /// Fails if the values that another type with this name has accepted are invalid for this one.
    pub fn section<S: Section>(&self) -> Result<S, ConfigError> {
        section::read(self.value_of(S::NAME))
            .map_err(|error| mistakes::describe_in(S::NAME, &error, &[]))
    }

    /// Returns every setting, its default and its source, without secrets.
    pub(crate) fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// Returns the value that is in force instead of a configured limit, if that depends on the
    /// machine or on other limits.
    pub(crate) fn resolved(&self, key: &str) -> Option<u64> {
        match key {
            "compression.total_bytes_max" => Some(self.compression_budget_bytes()),
            "history.total_bytes_max" => Some(self.history_budget_bytes()),
            "server.memory_bytes_max" => Some(self.server.memory_budget_bytes()),
            _ => None,
        }
    }

    /// Returns the values that are set in a section of the application.
    fn value_of(&self, section: &str) -> Value {
        let value = self.sections.get(section).cloned();
        value.unwrap_or_else(|| Value::Table(Table::new()))
    }

    /// Returns warnings about settings that are valid but may be a mistake; each is a sentence.
    pub fn warnings(&self) -> Vec<String> {
        let silent = namespaces::silent(self);
        namespaces::warn(self).into_iter().chain(silent).collect()
    }

    /// Reports values that are out of range or contradict each other.
    fn check(&self, check: &mut Check) {
        check.section("auth", |check| self.auth.check(check));
        backend::check(self, check);
        check.section("broker", |check| self.broker.check(check));
        check.section("channel", |check| {
            self.channel.check(check);
            self.history.check_channel(&self.channel, check);
        });
        check.section("client", |check| self.client.check(check));
        check.section("compression", |check| self.compression.check(check));
        check.section("filter", |check| self.filter.check(check));
        check.section("history", |check| self.history.check(check));
        check.section("log", |check| self.log.check(check));
        namespaces::check(&self.namespaces, &self.history, check);
        kafka::check(self, check);
        check.section("phoenix", |check| self.phoenix.check(check));
        postgres::check(self, check);
        check.section("pusher", |check| self.pusher.check(check));
        if self.protocols.pusher && !self.pusher.is_complete() {
            let because = "requires pusher.app_id, pusher.key and pusher.secret";
            check.refuse("protocols.pusher", true, because);
        }
        check.section("socketio", |check| self.socketio.check(check));
        check.section("server", |check| self.server.check(check));
        webhook::check(self, check);
        if !self.server.is_local() && !self.judges_clients() && !self.auth.anonymous {
            check.refuse(
                "server.listen",
                self.server.listen,
                "is reachable from other machines, but [auth] configures no key; configure one, or set \
                 auth.anonymous = true to allow everything to everyone",
            );
        }
    }
}

/// Returns the name of a backend that is set; the empty name unsets one.
pub(crate) fn backend_name(name: &Option<String>) -> Option<&str> {
    name.as_deref().filter(|name| !name.is_empty())
}

impl Default for Config {
    fn default() -> Self {
        Self::deserialize(Value::Table(DEFAULTS.clone())).expect("default.toml sets every key")
    }
}

#[cfg(test)]
mod tests;
