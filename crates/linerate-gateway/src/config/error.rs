//! Why a configuration is refused.

use std::{fmt, io, path::PathBuf};

/// Why a configuration is refused. Says where, which key, which value, and what would be allowed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A key that is not known, or a value of the wrong type.
    #[error("{source_of_it}: {key}: {message}")]
    Key {
        /// Where it was set.
        source_of_it: Source,
        /// The key with its section.
        key: String,
        /// What is wrong with it.
        message: String,
    },
    /// The file can't be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file is no TOML.
    #[error("{file}, line {line}: {message}")]
    Syntax {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong there.
        message: String,
    },
    /// Values out of range, or that contradict others.
    #[error("{}", lines(.0))]
    Values(Vec<(Source, Violation)>),
}

/// Where a value was set.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Source {
    /// Nowhere: it is the default.
    Default,
    /// A variable of the environment.
    Environment(String),
    /// A file, and the line if it is known.
    File(String, Option<usize>),
    /// A flag of the command line.
    Flag(String),
}

/// A value that can't be.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Violation {
    /// The key with its section.
    pub key: String,
    /// The value; secrets are not shown.
    pub value: String,
    /// What would be allowed.
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

fn lines(violations: &[(Source, Violation)]) -> String {
    let line = |(source, violation): &(Source, Violation)| format!("{source}: {violation}");
    let lines: Vec<String> = violations.iter().map(line).collect();
    lines.join("\n")
}
