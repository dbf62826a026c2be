//! Which options a channel has.

use std::collections::{HashMap, HashSet};

use linerate_hub::ChannelName;
use serde::Deserialize;

use super::{ChannelOptions, Config, HistoryOptions, check::Check};

/// The most namespaces: each is a label of metrics.
const NAMESPACES_MAX: usize = 256;

/// A namespace of channels.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Namespace {
    /// What stands before the first `:` of its channels.
    pub name: String,
    /// The options of its channels. What is not set is as in `[channel]`.
    pub options: ChannelOptions,
}

/// Finds the options of channels by their names.
#[derive(Clone, Debug)]
pub struct Namespaces {
    default: ChannelOptions,
    named: HashMap<String, ChannelOptions>,
}

impl Namespaces {
    /// Takes what `config` says of channels.
    pub fn new(config: &Config) -> Self {
        let named = config.namespaces.iter();
        Self {
            default: config.channel.clone(),
            named: named
                .map(|namespace| (namespace.name.clone(), namespace.options.clone()))
                .collect(),
        }
    }

    /// Returns the options of a channel: those of its namespace, if one of that name is configured, otherwise the
    /// defaults.
    pub fn options(&self, channel: &ChannelName) -> &ChannelOptions {
        self.entry(channel).1
    }

    /// Returns the name of the configured namespace that a channel is in, for labels of metrics; empty if it is
    /// in none.
    pub fn label(&self, channel: &ChannelName) -> &str {
        self.entry(channel).0
    }

    /// Returns all options with the names of their namespaces; the defaults have the empty name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ChannelOptions)> {
        let named = self.named.iter();
        let named = named.map(|(name, options)| (name.as_str(), options));
        std::iter::once(("", &self.default)).chain(named)
    }

    fn entry(&self, channel: &ChannelName) -> (&str, &ChannelOptions) {
        let namespace = channel.namespace();
        let named = namespace.and_then(|name| self.named.get_key_value(name));
        named.map_or(("", &self.default), |(name, options)| (name, options))
    }
}

impl Default for Namespaces {
    fn default() -> Self {
        Self::new(&Config::default())
    }
}

/// Warns of patterns in no namespace, which match channels of all of them.
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
        "channel.allow_pattern = true: a pattern such as \"*\" also matches channels of namespaces; \
         it delivers those of: {}; it needs a token, or withholds them, for: {}",
        names(true),
        names(false)
    ))
}

/// Says in which channels SDKs miss publications without being told.
pub(super) fn silent(config: &Config) -> Vec<String> {
    let sentence = |place: &str| {
        format!(
            "gaps are silent in {place}: SDKs are not told what they missed (gaps = \"silent\")"
        )
    };
    let named = config.namespaces.iter();
    let named = named.map(|one| (format!("namespace {}", one.name), &one.options));
    let unnamed = ("channels of no namespace".to_owned(), &config.channel);
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
                let because = "must not be empty or hold spaces, controls or colons";
                check.refuse("name", name, because);
            }
            if !names.insert(name) {
                check.refuse("name", name, "is the name of two namespaces");
            }
            namespace.options.check(check);
            history.check_channel(&namespace.options, check);
        });
    }
}
