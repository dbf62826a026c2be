//! The options of a source, ready to be used.

use std::{io, path::PathBuf, sync::Arc};

use linerate_hub::ChannelName;
use linerate_postgres::{
    ChangeOptions, NotificationOptions, ServerUrl, TableOptions, Template, UrlError,
};

use crate::{
    client_tls::{TlsFileError, TlsFiles},
    config::{PostgresOptions, PostgresTable, Secret},
};

/// A source that can be started.
#[derive(Debug)]
pub(crate) struct SourceSetup {
    options: PostgresOptions,
    server: ServerUrl,
    reads: Reads,
}

/// What a source reads.
#[derive(Debug)]
pub(super) enum Reads {
    Changes(ChangeOptions),
    Notifications(NotificationOptions),
}

/// Why a database cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceSetupError {
    /// A file cannot be read.
    #[error("postgres {name}: {}: {source}", path.display())]
    File {
        /// The name of the database.
        name: String,
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A certificate, key or name is not valid.
    #[error("postgres {name}: {key}: {reason}")]
    Invalid {
        /// The name of the database.
        name: String,
        /// The option.
        key: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The file with the URL cannot be read.
    #[error("postgres {name}: cannot read the url: {source}")]
    Read {
        /// The name of the database.
        name: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The URL cannot be used.
    #[error("postgres {name}: {source}")]
    Url {
        /// The name of the database.
        name: String,
        /// What is wrong with it.
        source: UrlError,
    },
}

impl SourceSetup {
    /// Reads the URL and the certificates.
    ///
    /// # Errors
    /// A file cannot be read, or what it contains cannot be used.
    pub(crate) fn new(options: &PostgresOptions) -> Result<Self, SourceSetupError> {
        let name = || options.name.clone();
        let url = options.url.as_ref().map_or(Ok(String::new()), Secret::read);
        let url = url.map_err(|source| SourceSetupError::Read {
            name: name(),
            source,
        })?;
        let server: ServerUrl = url.parse().map_err(|source| SourceSetupError::Url {
            name: name(),
            source,
        })?;
        let files = TlsFiles {
            authorities: options.tls_authorities.as_deref(),
            certificate: options.tls_certificate.as_deref(),
            key: options.tls_key.as_deref(),
        };
        let tls = files.read().map_err(|error| match error {
            TlsFileError::File { path, source } => SourceSetupError::File {
                name: name(),
                path,
                source,
            },
            TlsFileError::Invalid { key, reason } => SourceSetupError::Invalid {
                name: name(),
                key,
                reason,
            },
        })?;
        let tls = Arc::new(tls);
        let invalid = |key, reason: String| SourceSetupError::Invalid {
            name: name(),
            key,
            reason,
        };
        let reads = if options.notifications.is_empty() {
            let table = |table: &PostgresTable| {
                Ok(TableOptions {
                    table: table.name.clone(),
                    channel: Template::new(&table.channel)
                        .map_err(|error| invalid("channel", error.to_string()))?,
                    payload: table.payload.clone(),
                    tags: table.tags.clone(),
                    key: table.key.clone(),
                })
            };
            Reads::Changes(ChangeOptions {
                name: name(),
                server: server.clone(),
                tls,
                slot: options.slot.clone(),
                create_slot: options.create_slot,
                publication: options.publication.clone(),
                messages: options.messages,
                tables: options.tables.iter().map(table).collect::<Result<_, _>>()?,
                row_bytes_max: options.row_bytes_max,
            })
        } else {
            let channel = |channel: &String| {
                let channel = ChannelName::new(channel);
                channel.map_err(|error| invalid("notifications", error.to_string()))
            };
            let channels = options.notifications.iter().map(channel);
            Reads::Notifications(NotificationOptions {
                name: name(),
                server: server.clone(),
                tls,
                channels: channels.collect::<Result<_, _>>()?,
            })
        };
        Ok(Self {
            options: options.clone(),
            server,
            reads,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.options.name
    }

    pub(super) const fn reads(&self) -> &Reads {
        &self.reads
    }

    /// Returns whether two sources do the same. Certificates are compared by the names of their
    /// files.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.options == other.options && self.server == other.server
    }
}
