//! What is configured: defaults, then a TOML file, then the environment, then flags.
//!
//! Each section is a struct of its own. Keys that hold a time or a size end in their unit (`_s`, `_ms`,
//! `_bytes_max`); `default.toml` beside this file documents every key with its default, and is what
//! `linerate config default` prints.

mod auth;
mod broker;
mod channel;
mod check;
mod client;
mod compression;
mod error;
mod filter;
mod history;
mod layer;
mod limits;
mod load;
mod log;
mod logs;
mod memory;
mod namespaces;
mod secret;
mod server;
mod suggest;
mod unit;

use serde::Deserialize;

pub use auth::{AuthOptions, TokenOptions};
pub use broker::BrokerOptions;
pub use channel::{ChannelOptions, Conflation, Gaps, SlowPolicy};
pub use client::ClientOptions;
pub use compression::CompressionOptions;
pub use error::{ConfigError, Source};
pub use filter::FilterOptions;
pub use history::HistoryOptions;
pub use load::Loader;
pub use log::{LogFormat, LogOptions};
pub use logs::LogsOptions;
pub use namespaces::{Namespace, Namespaces};
pub use secret::Secret;
pub use server::{DrainOptions, ServerOptions, TlsOptions};

use check::Check;

/// Every key with its default and what it means, as a file that can be loaded.
pub const DEFAULT_TOML: &str = include_str!("config/default.toml");

/// Everything that is configured.
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
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Config {
    /// Who may connect, publish and administer.
    pub auth: AuthOptions,
    /// Where publications come from and go to.
    pub broker: BrokerOptions,
    /// The options of channels in no namespace, and the defaults of those in one.
    pub channel: ChannelOptions,
    /// What a client may do, and how long it may take.
    pub client: ClientOptions,
    /// Whether WebSockets are compressed, and how.
    pub compression: CompressionOptions,
    /// How large filters may be, and how many there may be.
    pub filter: FilterOptions,
    /// How much this node keeps of channels that are not durable.
    pub history: HistoryOptions,
    /// What is logged, and how.
    pub log: LogOptions,
    /// What uploads of access logs may take.
    pub logs: LogsOptions,
    /// The namespaces of channels.
    #[serde(rename = "namespace")]
    pub namespaces: Vec<Namespace>,
    /// Where is listened, and how many may connect.
    pub server: ServerOptions,
}

impl Config {
    /// Returns whether the server stands open: nobody needs a key, because `[auth]` names none, and either only
    /// this machine can connect or `auth.anonymous` says that this is wanted.
    ///
    /// Then `open.toml` beside this file gives the channels' defaults, and the server API answers peers on this
    /// machine without a key.
    pub fn is_open(&self) -> bool {
        !self.auth.has_keys() && (self.auth.anonymous || self.server.is_local())
    }

    /// Returns whether a client may connect without a token.
    pub fn allows_anonymous(&self) -> bool {
        self.auth.anonymous || self.is_open()
    }

    /// Returns how many bytes of payload this node keeps of all channels that are not durable: what `[history]` allows,
    /// but no more than a quarter of the memory budget. Histories give way by themselves; they must not be the reason why
    /// clients are closed.
    pub fn history_budget_bytes(&self) -> u64 {
        let quarter = self.server.memory_budget_bytes() / 4;
        quarter.min(self.history.total_bytes_max as u64)
    }

    /// Returns how many bytes compression may hold: what `[compression]` allows, but no more than a quarter of the memory
    /// budget.
    pub fn compression_budget_bytes(&self) -> u64 {
        let quarter = self.server.memory_budget_bytes() / 4;
        quarter.min(self.compression.total_bytes_max as u64)
    }

    /// Returns the bytes that all followed logs may take up together.
    pub fn tails_budget_bytes(&self) -> u64 {
        let quarter = self.server.memory_budget_bytes() / 4;
        quarter.min(self.logs.tails_bytes_max)
    }

    /// Returns what is allowed, but may not be what was meant; each is a sentence.
    pub fn warnings(&self) -> Vec<String> {
        let silent = namespaces::silent(self);
        namespaces::warn(self).into_iter().chain(silent).collect()
    }

    /// Says what is out of range, or contradicts something else.
    fn check(&self, check: &mut Check) {
        check.section("auth", |check| self.auth.check(check));
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
        check.section("logs", |check| self.logs.check(check));
        namespaces::check(&self.namespaces, &self.history, check);
        check.section("server", |check| self.server.check(check));
        if !self.server.is_local() && !self.auth.has_keys() && !self.auth.anonymous {
            check.refuse(
                "server.listen",
                self.server.listen,
                "is not only for this machine, and [auth] names no key; configure one, or set \
                 auth.anonymous = true if everybody may do everything",
            );
        }
    }
}

#[cfg(test)]
mod tests;
