//! The configurable limits and their effective values.

use super::layer::{Table, Value};
use crate::limits::{Limit, Unit};

/// Numbers that are settings but not limits.
const NO_LIMITS: [&str; 3] = ["parse_threads", "stream_replicas", "workers"];

/// Returns the limits in a documentation of all keys, with the values of `table`, or else the
/// documented defaults. Those that a namespace overrides follow at the end.
pub(super) fn in_force(documentation: &str, table: Table) -> Vec<Limit> {
    let values = Value::Table(table);
    let mut limits: Vec<Limit> = documented(documentation)
        .map(|limit| Limit {
            value: values
                .at(&limit.key)
                .and_then(number)
                .unwrap_or(limit.value),
            ..limit
        })
        .collect();
    if let Some(Value::List(namespaces)) = values.at("namespace") {
        let of_namespace = |namespace| of_namespace(documentation, namespace);
        limits.extend(namespaces.iter().flat_map(of_namespace));
    }
    limits
}

/// Returns the limits that a namespace overrides.
fn of_namespace(documentation: &str, namespace: &Value) -> Vec<Limit> {
    let name = match namespace.at("name") {
        Some(Value::Scalar(toml::Value::String(name))) => name.as_str(),
        _ => return Vec::new(),
    };
    let of_channels = documented(documentation).filter_map(|limit| {
        let key = limit.key.strip_prefix("channel.")?;
        let value = namespace.at(key).and_then(number)?;
        let key = format!("namespace.{name}.{key}");
        Some(Limit {
            key,
            value,
            ..limit
        })
    });
    of_channels.collect()
}

/// Reads the limits from a documentation of all keys, with their defaults and the first sentence of
/// their comments.
fn documented(documentation: &str) -> impl Iterator<Item = Limit> {
    let (mut section, mut comment) = ("", String::new());
    documentation.lines().filter_map(move |line| {
        if let Some(text) = line.strip_prefix("# ") {
            comment.push_str(text);
            comment.push(' ');
            return None;
        }
        let meaning = first_sentence(&std::mem::take(&mut comment));
        let header = line.trim_start_matches('#').strip_prefix('[');
        if let Some(header) = header.and_then(|rest| rest.strip_suffix(']')) {
            section = header;
            return None;
        }
        let (name, value) = line.split_once(" = ")?;
        let value = value.replace('_', "").parse().ok()?;
        let is_limit = !name.starts_with('#') && !NO_LIMITS.contains(&name);
        is_limit.then(|| Limit {
            key: format!("{section}.{name}"),
            value,
            unit: Unit::of_key(name),
            meaning,
        })
    })
}

fn first_sentence(comment: &str) -> String {
    let text = comment.trim().trim_end_matches(" (R)");
    let end = text.find(". ").unwrap_or(text.len());
    text[..end].trim_end_matches('.').to_owned()
}

fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Scalar(toml::Value::Integer(number)) => u64::try_from(*number).ok(),
        Value::Text(text) => text.trim().parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::{
        config::{DEFAULT_TOML, Loader},
        limits::{Limit, Unit},
    };

    fn limits(loader: &Loader) -> BTreeMap<String, Limit> {
        let limits = loader.limits().unwrap().into_iter();
        limits.map(|limit| (limit.key.clone(), limit)).collect()
    }

    #[test]
    fn every_number_of_the_documentation_is_a_limit_with_its_default() {
        let limits = limits(&Loader::new());
        let numbers = DEFAULT_TOML.lines().filter(|line| {
            let value = line.split_once(" = ").map_or("", |(_, value)| value);
            !line.starts_with('#') && value.starts_with(|char: char| char.is_ascii_digit())
        });
        let is_limit = |line: &&str| !super::NO_LIMITS.iter().any(|no| line.starts_with(no));
        assert_eq!(limits.len(), numbers.filter(is_limit).count());
        let message = &limits["client.message_bytes_max"];
        assert_eq!((message.value, message.unit), (65_536, Unit::Bytes));
        assert_eq!(
            message.meaning,
            "Maximum size of a message from a client, in bytes"
        );
        assert_eq!(limits["server.drain.timeout_s"].unit, Unit::Seconds);
    }

    #[test]
    fn no_limit_is_missing_a_meaning_or_without_end() {
        for limit in limits(&Loader::new()).values() {
            assert!(limit.meaning.len() > 10, "{limit:?}");
            assert!(limit.value < 1 << 40, "{limit:?}");
        }
    }

    #[test]
    fn the_last_word_has_whoever_has_it_when_loading() {
        let loader = Loader::new()
            .with_text(
                "file",
                "[client]\nchannels_max = 5\nqueue_bytes_max = 5_000\n",
            )
            .with_environment([("LINERATE_CLIENT_QUEUE_BYTES_MAX".into(), "6000".into())])
            .with_flag("--connections-max", "server.connections_max", 7);
        let limits = limits(&loader);
        assert_eq!(limits["client.channels_max"].value, 5);
        assert_eq!(limits["client.queue_bytes_max"].value, 6_000);
        assert_eq!(limits["server.connections_max"].value, 7);
        // An open server keeps histories.
        assert_eq!(limits["channel.history_size"].value, 100);
    }

    #[test]
    fn what_a_namespace_sets_is_named_after_it() {
        let text = "[[namespace]]\nname = \"ticks\"\nring_messages_max = 9\n";
        let limits = limits(&Loader::new().with_text("file", text));
        assert_eq!(limits["namespace.ticks.ring_messages_max"].value, 9);
        assert_eq!(limits["channel.ring_messages_max"].value, 4_096);
        assert!(!limits.contains_key("namespace.ticks.ring_bytes_max"));
    }

    #[test]
    fn what_is_no_configuration_has_no_limits() {
        let loader = Loader::new().with_text("file", "[client]\nchannels_max = 0\n");
        assert!(loader.limits().is_err());
    }
}
