//! Errors of the settings of what the application runs: its backends, webhooks, databases and Kafka
//! clusters.

use std::{io, path::PathBuf};

/// Why a backend, a webhook, a database or a Kafka cluster cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{section} {name}: {problem}")]
pub struct EndpointError {
    /// The section of the configuration.
    section: &'static str,
    /// The name in the configuration.
    name: String,
    /// What is wrong with it.
    problem: EndpointProblem,
}

/// What is wrong with a setting.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EndpointProblem {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A value, or the content of a file, is not valid.
    #[error("{key}: {reason}")]
    Invalid {
        /// The option.
        key: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The program was built without a feature.
    #[cfg(not(feature = "kafka"))]
    #[error("needs a linerate that was built with --features {0}")]
    Unsupported(&'static str),
}

impl EndpointProblem {
    pub(crate) fn invalid(key: &'static str, reason: impl ToString) -> Self {
        let reason = reason.to_string();
        Self::Invalid { key, reason }
    }

    /// Returns the error of the section of the configuration with this name.
    pub(crate) fn of(self, section: &'static str, name: &str) -> EndpointError {
        EndpointError {
            section,
            name: name.to_owned(),
            problem: self,
        }
    }
}
