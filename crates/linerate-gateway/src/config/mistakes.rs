//! Descriptions of what is wrong with a configuration, and where.

use std::iter;

use super::{
    error::{ConfigError, Source},
    section::ReadError,
    source::Layer,
    suggest,
};

/// Converts serde's error about a section of the application.
pub(super) fn describe_in(section: &str, error: &ReadError, layers: &[Layer]) -> ConfigError {
    let path = match error.path().to_string().as_str() {
        "." => section.to_owned(),
        path => format!("{section}.{path}"),
    };
    describe(&path, error.inner().message(), iter::empty(), layers)
}

/// Converts serde's message about the value at `path` into an error. `sections` are further tables
/// that serde does not know.
pub(super) fn describe<'a>(
    path: &str,
    message: &'a str,
    sections: impl Iterator<Item = &'a str>,
    layers: &[Layer],
) -> ConfigError {
    if let Some((name, mut known)) = unknown_key(message) {
        let section = path
            .strip_suffix(name)
            .unwrap_or(path)
            .trim_end_matches('.');
        let key = match section {
            "" | "?" => name.to_owned(),
            section => format!("{section}.{name}"),
        };
        if key == name {
            known.extend(sections);
        }
        return ConfigError::Key {
            source_of_it: locate(&key, layers),
            message: unknown(name, &known),
            key,
        };
    }
    ConfigError::Key {
        source_of_it: locate(path, layers),
        key: path.to_owned(),
        message: message.trim_end().to_owned(),
    }
}

/// Parses serde's message about an unknown key: returns its name and the known names.
fn unknown_key(message: &str) -> Option<(&str, Vec<&str>)> {
    let rest = message.strip_prefix("unknown field `")?;
    let (name, rest) = rest.split_once('`')?;
    let known = rest.split('`').skip(1).step_by(2).collect();
    Some((name, known))
}

fn unknown(name: &str, known: &[&str]) -> String {
    match suggest::nearest(name, known.iter().copied()) {
        Some(near) => format!("unknown key; did you mean `{near}`?"),
        None => format!("unknown key; known keys are {}", known.join(", ")),
    }
}

/// Returns the source with the highest precedence that sets `key`.
pub(super) fn locate<'a>(
    key: &str,
    layers: impl IntoIterator<Item = &'a Layer, IntoIter: DoubleEndedIterator>,
) -> Source {
    let from_the_top = layers.into_iter().rev();
    let mut sources = from_the_top.filter_map(|layer| layer.source_of(key));
    sources.next().unwrap_or(Source::Default)
}
