//! Looks up the options of channels.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use linerate_hub::ChannelName;
use serde::Deserialize;

use super::{ChannelOptions, Config, HistoryOptions, check::Check, variants::Variants};

/// Maximum number of namespaces: each is a label value in metrics.
const NAMESPACES_MAX: usize = 256;

/// A namespace of channels.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Namespace {
    /// The part of a channel name before the first `:`.
    pub name: String,
    /// The options of its channels. Unset ones are inherited from `[channel]`.
    pub options: ChannelOptions,
}

/// Looks up the options of channels by name.
#[derive(Clone, Debug)]
pub(crate) struct Namespaces {
    default: Variants,
    named: HashMap<String, Variants>,
}

impl Namespaces {
    /// Creates the lookup table from the channels and namespaces in `config`.
    pub(crate) fn new(config: &Config) -> Self {
        let variants = |options| Variants::new(options, config);
        let named = config.namespaces.iter();
        let named = named.map(|one| (one.name.clone(), variants(&one.options)));
        Self {
            default: variants(&config.channel),
            named: named.collect(),
        }
    }

    /// Returns the options of a channel: those of its namespace if it is configured, otherwise the
    /// defaults.
    pub(crate) fn options(&self, channel: &ChannelName) -> &ChannelOptions {
        self.entry(channel).1
    }

    /// Returns the options of the namespace whose name is the part of a method's name before the
    /// first `:`; without such a namespace, the defaults.
    pub(crate) fn options_of_method(&self, method: &str) -> &ChannelOptions {
        let namespace = method.split_once(':').map(|(namespace, _)| namespace);
        let named = namespace.and_then(|name| self.named.get(name));
        named.unwrap_or(&self.default).plain()
    }

    /// Returns the name of the configured namespace of a channel, for metric labels; empty if there
    /// is none.
    pub(crate) fn label(&self, channel: &ChannelName) -> &str {
        self.entry(channel).0
    }

    /// Returns how long the histories of channels are kept at most.
    pub(crate) fn history_ttl_max(&self) -> Duration {
        let all = self.named.values().chain([&self.default]);
        let ttl = |variants: &Variants| variants.plain().history_ttl;
        all.map(ttl).max().unwrap_or_default()
    }

    fn entry(&self, channel: &ChannelName) -> (&str, &ChannelOptions) {
        let namespace = channel.namespace();
        let named = namespace.and_then(|name| self.named.get_key_value(name));
        let (name, variants) = named.map_or(("", &self.default), |(name, own)| (name, own));
        (name, variants.of(channel))
    }
}

/// Returns a warning if patterns are allowed without a namespace, because they match channels of
/// all namespaces.
pub(super) fn warn(config: &Config) -> Option<String> {
    if !config.channel.allow_pattern || config.namespaces.is_empty() {
        return None;
    }
    let names = |is_open: bool| {
        let has = |namespace: &&Namespace| {
            let options = &namespace.options;
            is_open == (options.allow_pattern && options.allow_subscribe)
        };
        let names = config.namespaces.iter().filter(has);
        let names: Vec<_> = names.map(|namespace| namespace.name.as_str()).collect();
        match names.is_empty() {
            true => "none".to_owned(),
            false => names.join(", "),
        }
    };
    Some(format!(
        "channel.allow_pattern = true: a pattern such as \"*\" also matches channels in namespaces; \
         delivered without a token: {}; withheld or delivered only with a token: {}",
        names(true),
        names(false)
    ))
}

/// Returns a warning for each place where SDKs can miss publications without being notified.
pub(super) fn silent(config: &Config) -> Vec<String> {
    let sentence = |place: &str| {
        format!(
            "gaps are silent in {place}: SDKs are not notified of missed publications (gaps = \"silent\")"
        )
    };
    let named = config.namespaces.iter();
    let named = named.map(|one| (format!("namespace {}", one.name), &one.options));
    let unnamed = ("channels without a namespace".to_owned(), &config.channel);
    let silent = std::iter::once(unnamed).chain(named);
    let silent = silent.filter(|(_, options)| options.is_silent());
    silent.map(|(place, _)| sentence(&place)).collect()
}

pub(super) fn check(namespaces: &[Namespace], history: &HistoryOptions, check: &mut Check) {
    check.range("namespace", namespaces.len(), 0..=NAMESPACES_MAX);
    let mut names = HashSet::new();
    for (index, namespace) in namespaces.iter().enumerate() {
        check.section(&format!("namespace[{index}]"), |check| {
            let name = namespace.name.as_str();
            if ChannelName::new(name).is_err() || name.contains(':') {
                let because = "must not be empty or contain spaces, control characters or colons";
                check.refuse("name", name, because);
            }
            if !names.insert(name) {
                check.refuse("name", name, "is used by two namespaces");
            }
            namespace.options.check(check);
            history.check_channel(&namespace.options, check);
        });
    }
}
