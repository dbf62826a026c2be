//! Errors of loading a configuration.

use std::{fmt, io, path::PathBuf};

/// Why a configuration is invalid: the place, the key, the value and what is allowed, for each
/// mistake on a line of its own.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A key is unknown, or its value has the wrong type.
    #[error("{source_of_it}: {key}: {message}")]
    Key {
        /// Where it was set.
        source_of_it: Source,
        /// The key with its section.
        key: String,
        /// What is wrong with it.
        message: String,
    },
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Several of the others.
    #[error("{}", lines(.0))]
    Several(Vec<Self>),
    /// The file is not valid TOML.
    #[error("{file}, line {line}: {message}")]
    Syntax {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong there.
        message: String,
    },
    /// Values are out of range or contradict each other.
    #[error("{}", violations(.0))]
    Values(Vec<(Source, Violation)>),
}

impl ConfigError {
    /// Returns one error for at least one.
    pub(super) fn of(mut errors: Vec<Self>) -> Self {
        match errors.len() {
            1 => errors.remove(0),
            _ => Self::Several(errors),
        }
    }

    /// Leaves out what is said about keys whose values could not be read.
    pub(super) fn beside(self, unread: &[Self]) -> Self {
        let Self::Values(mut violations) = self else {
            return self;
        };
        violations.retain(|(_, violation)| {
            let mut unread = unread.iter();
            !unread.any(|error| matches!(error, Self::Key { key, .. } if *key == violation.key))
        });
        Self::Values(violations)
    }
}

/// Where a value was set.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Source {
    /// Not set: it is the default.
    Default,
    /// An environment variable, by name.
    Environment(String),
    /// A file, and the line if it is known.
    File(String, Option<usize>),
    /// A command-line flag, by name.
    Flag(String),
}

/// A value that is not allowed.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Violation {
    /// The key with its section.
    pub key: String,
    /// The value; secrets are not shown.
    pub value: String,
    /// What is wrong, or what is allowed.
    pub because: String,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Environment(name) => write!(f, "environment variable {name}"),
            Self::File(path, Some(line)) => write!(f, "{path}, line {line}"),
            Self::File(path, None) => f.write_str(path),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {} {}", self.key, self.value, self.because)
    }
}

fn lines(errors: &[ConfigError]) -> String {
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

fn violations(violations: &[(Source, Violation)]) -> String {
    let line = |(source, violation): &(Source, Violation)| format!("{source}: {violation}");
    let lines: Vec<String> = violations.iter().map(line).collect();
    lines.join("\n")
}
