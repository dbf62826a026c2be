//! Loading: layers are collected, merged, deserialized and checked.

use std::{
    fs, iter,
    path::{Path, PathBuf},
};

use super::{
    Config, DEFAULT_TOML, DEFAULTS,
    check::Check,
    error::{ConfigError, Source},
    layer::{self, Table, Value},
    limits,
    mistakes::{describe, describe_in, locate},
    section::{ReadError, Section, SectionType},
    settings::{self, Setting},
    source::Layer,
    suggest,
};
use crate::limits::Limit;

/// The defaults of an open server.
const OPEN_TOML: &str = include_str!("open.toml");
/// Maximum size of a configuration file, in bytes.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// Maximum number of mistakes that are reported at once.
const MISTAKES_MAX: usize = 50;
/// The prefix of our environment variables.
const PREFIX: &str = "LINERATE_";
/// The tables of the gateway whose keys an environment variable can set.
const TABLES: [&str; 17] = [
    "auth",
    "auth.token",
    "broker",
    "channel",
    "client",
    "compression",
    "filter",
    "history",
    "log",
    "phoenix",
    "protocols",
    "pusher",
    "server",
    "server.drain",
    "server.tls",
    "socketio",
    "socketio.redis",
];

/// Loads the configuration from its sources; it can be called again to reload.
#[derive(Clone, Debug, Default)]
pub struct Loader {
    file: Option<File>,
    environment: Vec<(String, String)>,
    flags: Vec<Flag>,
    sections: Vec<SectionType>,
}

#[derive(Clone, Debug)]
enum File {
    Path(PathBuf),
    Text { name: String, text: String },
}

#[derive(Clone, Debug)]
struct Flag {
    name: String,
    key: String,
    value: String,
}

impl Loader {
    /// Creates a loader that knows the defaults only.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds this TOML file.
    #[must_use]
    pub fn with_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.file = Some(File::Path(path.into()));
        self
    }

    /// Uses this text as the file; `name` appears in errors.
    #[must_use]
    pub fn with_text(mut self, name: &str, text: &str) -> Self {
        let (name, text) = (name.to_owned(), text.to_owned());
        self.file = Some(File::Text { name, text });
        self
    }

    /// Adds a section of the application, which [`Config::section`] returns.
    #[must_use]
    pub fn with_section<S: Section>(mut self) -> Self {
        self.sections.push(SectionType::of::<S>());
        self
    }

    /// Adds environment variables: `LINERATE_SERVER_LISTEN` sets `listen` in `[server]`. Empty ones
    /// count as unset. The items of lists are separated by commas.
    #[must_use]
    pub fn with_environment(
        mut self,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        self.environment = variables.into_iter().collect();
        self
    }

    /// Adds a value from a flag; `key` is a path such as `server.listen`.
    #[must_use]
    pub fn with_flag(mut self, name: &str, key: &str, value: impl ToString) -> Self {
        self.flags.push(Flag {
            name: name.to_owned(),
            key: key.to_owned(),
            value: value.to_string(),
        });
        self
    }

    /// Returns the path of the configuration file, if there is one.
    pub fn path(&self) -> Option<&Path> {
        match self.file.as_ref()? {
            File::Path(path) => Some(path),
            File::Text { .. } => None,
        }
    }

    /// Loads everything and reads the file again.
    ///
    /// # Errors
    /// Fails if a file cannot be read or is not valid TOML, a key is unknown, or a value is
    /// invalid. The error names the source, the key, the value and what is allowed, for each
    /// mistake on a line of its own.
    pub fn load(&self) -> Result<Config, ConfigError> {
        let mut layers = self.layers()?;
        let mut mistakes = Vec::new();
        loop {
            let error = match self.load_from(&layers) {
                Ok(config) if mistakes.is_empty() => return Ok(config),
                Ok(_) => return Err(ConfigError::of(mistakes)),
                Err(error) => error.beside(&mistakes),
            };
            // Only one value that cannot be read is found at a time. Without it, the next is.
            let wrong = match &error {
                ConfigError::Key { key, .. } if mistakes.len() < MISTAKES_MAX => key,
                _ => "",
            };
            let mut from_the_top = layers.iter_mut().rev();
            let is_last = !from_the_top.any(|layer| layer.values.remove(wrong));
            mistakes.push(error);
            if is_last {
                return Err(ConfigError::of(mistakes));
            }
        }
    }

    fn load_from(&self, layers: &[Layer]) -> Result<Config, ConfigError> {
        let config = self.assemble(None, layers)?;
        if !config.is_open() {
            return self.checked(config, layers);
        }
        let open = open_layer()?;
        let mut config = self.assemble(Some(&open), layers)?;
        // Defaults of an open server are dropped where the file has disabled what they require.
        let namespaces = config.namespaces.iter_mut();
        let options = namespaces.map(|namespace| &mut namespace.options);
        for options in options.chain([&mut config.channel]) {
            options.recover &= options.history_size > 0;
            options.join_leave &= options.presence;
        }
        self.checked(config, layers)
    }

    /// Returns every key with its default and its meaning, as a file that can be loaded.
    pub fn default_toml(&self) -> String {
        let sections = self.sections.iter().map(|section| section.default_toml);
        let texts: Vec<&str> = iter::once(DEFAULT_TOML).chain(sections).collect();
        texts.join("\n")
    }

    /// Returns every configurable limit with its effective value, in the order of
    /// [`default_toml`](Self::default_toml).
    ///
    /// # Errors
    /// The same as for [`load`](Self::load).
    pub fn limits(&self) -> Result<Vec<Limit>, ConfigError> {
        let config = self.load()?;
        let layers = self.layers()?;
        let open = match config.is_open() {
            true => Some(open_layer()?),
            false => None,
        };
        let values = merge(open.as_ref(), &layers);
        let mut limits = limits::in_force(&self.default_toml(), values);
        for limit in &mut limits {
            limit.value = config.resolved(&limit.key).unwrap_or(limit.value);
        }
        Ok(limits)
    }

    /// Returns the values of each source, in increasing precedence.
    fn layers(&self) -> Result<Vec<Layer>, ConfigError> {
        let mut layers = Vec::new();
        match &self.file {
            None => {}
            Some(File::Path(path)) => layers.push(Layer::of_file(
                path.display().to_string(),
                read(path).map_err(|source| {
                    let path = path.clone();
                    ConfigError::Read { path, source }
                })?,
            )?),
            Some(File::Text { name, text }) => {
                layers.push(Layer::of_file(name.clone(), text.clone())?);
            }
        }
        for (name, value) in &self.environment {
            let source = Source::Environment(name.clone());
            if !value.is_empty()
                && let Some(key) = key_of_variable(name, &self.tables())?
            {
                layers.push(Layer::of_text(source, &key, value));
            }
        }
        for flag in &self.flags {
            let source = Source::Flag(flag.name.clone());
            layers.push(Layer::of_text(source, &flag.key, &flag.value));
        }
        Ok(layers)
    }

    /// Returns the tables whose keys an environment variable can set.
    fn tables(&self) -> Vec<&'static str> {
        let sections = self.sections.iter().map(|section| section.name);
        TABLES.into_iter().chain(sections).collect()
    }

    /// Merges the layers and deserializes the result, except for the sections of the application.
    fn assemble(&self, open: Option<&Layer>, layers: &[Layer]) -> Result<Config, ConfigError> {
        let mut table = merge(open, layers);
        let settings = self.settings(&table, open, layers)?;
        inherit(&mut table);
        let names = self.sections.iter().map(|section| section.name);
        let sections = names.filter_map(|name| Some((name, table.remove(name)?)));
        let sections = sections.collect();
        let config: Config =
            serde_path_to_error::deserialize(Value::Table(table)).map_err(|error: ReadError| {
                let path = error.path().to_string().replace(".options", "");
                let more = self.sections.iter().map(|section| section.name);
                describe(&path, error.inner().message(), more, layers)
            })?;
        Ok(Config {
            sections,
            settings,
            ..config
        })
    }

    /// Returns every setting of merged layers, with those of the sections of the application.
    fn settings(
        &self,
        merged: &Table,
        open: Option<&Layer>,
        layers: &[Layer],
    ) -> Result<Vec<Setting>, ConfigError> {
        let defaults = Layer::of_file("defaults".into(), self.default_toml())?;
        let Value::Table(defaults) = defaults.values else {
            return Ok(Vec::new());
        };
        let mut values = defaults.clone();
        layer::overlay(&mut values, merged.clone());
        let sources: Vec<&Layer> = open.into_iter().chain(layers).collect();
        Ok(settings::in_force(&values, &defaults, &sources))
    }

    /// Rejects values that are out of range or contradict each other.
    fn checked(&self, config: Config, layers: &[Layer]) -> Result<Config, ConfigError> {
        let mut check = Check::default();
        config.check(&mut check);
        for SectionType {
            name,
            check: of_section,
            ..
        } in &self.sections
        {
            let mut read = Ok(());
            check.section(name, |check| {
                read = of_section(config.value_of(name), check)
            });
            read.map_err(|error| describe_in(name, &error, layers))?;
        }
        let violations = check.into_violations();
        if violations.is_empty() {
            return Ok(config);
        }
        let violations = violations.into_iter();
        let located = violations.map(|violation| (locate(&violation.key, layers), violation));
        Err(ConfigError::Values(located.collect()))
    }
}

/// Returns the defaults of an open server.
fn open_layer() -> Result<Layer, ConfigError> {
    let open = Layer::of_file("defaults of an open server".into(), OPEN_TOML.to_owned())?;
    Ok(open.without_lines())
}

/// Reads a file of limited size.
fn read(path: &Path) -> std::io::Result<String> {
    let bytes = fs::metadata(path)?.len();
    if bytes > FILE_BYTES_MAX {
        let message = format!("file has {bytes} bytes; at most {FILE_BYTES_MAX} are allowed");
        return Err(std::io::Error::new(
            std::io::ErrorKind::FileTooLarge,
            message,
        ));
    }
    fs::read_to_string(path)
}

/// Merges the layers over the defaults.
fn merge(open: Option<&Layer>, layers: &[Layer]) -> Table {
    let mut table = DEFAULTS.clone();
    for layer in open.into_iter().chain(layers) {
        if let Value::Table(values) = layer.values.clone() {
            let namespaces = table.remove("namespace");
            layer::overlay(&mut table, values);
            if let Some(Value::List(namespaces)) = namespaces {
                add_namespaces(&mut table, namespaces);
            }
        }
    }
    table
}

/// Adds those namespaces of a lower layer that the upper one does not define.
fn add_namespaces(table: &mut Table, lower: Vec<Value>) {
    let upper = table
        .entry("namespace".to_owned())
        .or_insert_with(|| Value::List(Vec::new()));
    if let Value::List(upper) = upper {
        let names: Vec<String> = upper.iter().filter_map(name_of).collect();
        let missing =
            |namespace: &Value| name_of(namespace).is_none_or(|name| !names.contains(&name));
        upper.extend(lower.into_iter().filter(missing));
    }
}

fn name_of(namespace: &Value) -> Option<String> {
    match namespace.at("name")? {
        Value::Scalar(toml::Value::String(name)) => Some(name.clone()),
        _ => None,
    }
}

/// Applies the values of each namespace over those of `[channel]`.
fn inherit(table: &mut Table) {
    let defaults = match table.get("channel") {
        Some(Value::Table(defaults)) => defaults.clone(),
        _ => Table::new(),
    };
    let Some(Value::List(namespaces)) = table.get_mut("namespace") else {
        return;
    };
    for namespace in namespaces {
        if let Value::Table(own) = namespace {
            let mut own = std::mem::take(own);
            let name = own.remove("name");
            let mut options = defaults.clone();
            layer::overlay(&mut options, own);
            let entries = [("options".to_owned(), Value::Table(options))];
            let name = name.map(|name| ("name".to_owned(), name));
            *namespace = Value::Table(entries.into_iter().chain(name).collect());
        }
    }
}

/// Returns the key that an environment variable sets, or `None` if it is not one of our variables.
fn key_of_variable(variable: &str, tables: &[&str]) -> Result<Option<String>, ConfigError> {
    let Some(name) = variable.strip_prefix(PREFIX) else {
        return Ok(None);
    };
    let name = name.to_ascii_lowercase();
    let parts = tables.iter().filter_map(|table| {
        let rest = name.strip_prefix(&table.replace('.', "_"))?;
        Some((table.len(), format!("{table}.{}", rest.strip_prefix('_')?)))
    });
    if let Some((_, key)) = parts.max() {
        return Ok(Some(key));
    }
    let Some((section, rest)) = name.split_once('_') else {
        return Ok(None);
    };
    let sections = tables.iter().filter(|table| !table.contains('.')).copied();
    suggest::nearest(section, sections).map_or(Ok(None), |near| {
        Err(ConfigError::Key {
            source_of_it: Source::Environment(variable.to_owned()),
            key: format!("{section}.{rest}"),
            message: format!("unknown section; did you mean `{near}`?"),
        })
    })
}
