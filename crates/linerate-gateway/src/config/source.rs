//! One source of values: a file, an environment variable or a flag.

use super::{
    error::{ConfigError, Source},
    layer::{self, Table, Value},
};

/// The values of one source.
#[derive(Debug)]
pub(super) struct Layer {
    source: Source,
    /// The text of a file.
    text: Option<String>,
    pub(super) values: Value,
}

impl Layer {
    /// Parses a file, whose name appears in errors.
    pub(super) fn of_file(name: String, text: String) -> Result<Self, ConfigError> {
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            let before = error.span().and_then(|span| text.get(..span.start));
            ConfigError::Syntax {
                file: name.clone(),
                line: 1 + before.map_or(0, |before| before.matches('\n').count()),
                message: error.message().to_owned(),
            }
        })?;
        Ok(Self {
            source: Source::File(name, None),
            text: Some(text),
            values: Value::Table(layer::from_toml(table)),
        })
    }

    /// Leaves out lines where a value is said to come from this file.
    pub(super) fn without_lines(self) -> Self {
        Self { text: None, ..self }
    }

    /// Returns the layer of an environment variable or a flag, which sets one key.
    pub(super) fn of_text(source: Source, key: &str, value: &str) -> Self {
        let mut table = Table::new();
        layer::set(&mut table, key, value.to_owned());
        Self {
            source,
            text: None,
            values: Value::Table(table),
        }
    }

    /// Returns where this layer sets `key`, if it does.
    pub(super) fn source_of(&self, key: &str) -> Option<Source> {
        self.values.at(key)?;
        Some(match (&self.source, &self.text) {
            (Source::File(name, _), Some(text)) => Source::File(name.clone(), line_of(text, key)),
            (source, _) => source.clone(),
        })
    }
}

/// Returns the line of `key` in a file, counted from 1.
fn line_of(text: &str, key: &str) -> Option<usize> {
    let document = toml::de::DeTable::parse(text).ok()?;
    let mut table = document.get_ref();
    let mut start = None;
    for step in key.split('.') {
        let (name, index) = match step.split_once('[') {
            Some((name, index)) => (name, index.trim_end_matches(']').parse::<usize>().ok()),
            None => (step, None),
        };
        let (found, value) = table.iter().find(|(key, _)| key.get_ref() == name)?;
        start = Some(found.span().start);
        let value = match index {
            Some(index) => value.get_ref().as_array()?.get(index)?,
            None => value,
        };
        match value.get_ref().as_table() {
            Some(inner) => table = inner,
            None => break,
        }
    }
    let before = text.get(..start?)?;
    Some(1 + before.matches('\n').count())
}
