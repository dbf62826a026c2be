//! The options of a source, ready to be used.

use std::sync::Arc;

use linerate_hub::ChannelName;
use linerate_postgres::{
    ChangeOptions, NotificationOptions, ServerUrl, TableOptions, Template, UrlError,
};

use crate::{
    client_tls::TlsFiles,
    config::{PostgresOptions, PostgresTable, Secret},
    endpoint_error::{EndpointError, EndpointProblem},
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

impl SourceSetup {
    /// Reads the URL and the certificates.
    ///
    /// # Errors
    /// A file cannot be read, or what it contains cannot be used.
    pub(crate) fn new(options: &PostgresOptions) -> Result<Self, EndpointError> {
        Self::read(options).map_err(|problem| problem.of("postgres", &options.name))
    }

    fn read(options: &PostgresOptions) -> Result<Self, EndpointProblem> {
        let url = options.url.as_ref().map_or(Ok(String::new()), Secret::read);
        let url = url.map_err(|error| EndpointProblem::invalid("url", error))?;
        let server: ServerUrl = url
            .parse()
            .map_err(|error: UrlError| EndpointProblem::invalid("url", error))?;
        let files = TlsFiles {
            authorities: options.tls_authorities.as_deref(),
            certificate: options.tls_certificate.as_deref(),
            key: options.tls_key.as_deref(),
        };
        let (name, tls) = (options.name.clone(), Arc::new(files.read()?));
        let reads = if options.notifications.is_empty() {
            let tables = options.tables.iter().map(table);
            Reads::Changes(ChangeOptions {
                name,
                server: server.clone(),
                tls,
                slot: options.slot.clone(),
                create_slot: options.create_slot,
                publication: options.publication.clone(),
                messages: options.messages,
                tables: tables.collect::<Result<_, _>>()?,
                row_bytes_max: options.row_bytes_max,
            })
        } else {
            let channels = options.notifications.iter().map(|channel| {
                let channel = ChannelName::new(channel);
                channel.map_err(|error| EndpointProblem::invalid("notifications", error))
            });
            Reads::Notifications(NotificationOptions {
                name,
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

    /// Returns whether a source can continue with these options. If there are files, they may have
    /// changed.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let own = &self.options;
        let has_files = own.tls_authorities.is_some() || own.tls_certificate.is_some();
        !has_files && *own == other.options && self.server == other.server
    }
}

fn table(table: &PostgresTable) -> Result<TableOptions, EndpointProblem> {
    let channel = Template::new(&table.channel);
    Ok(TableOptions {
        table: table.name.clone(),
        channel: channel.map_err(|error| EndpointProblem::invalid("channel", error))?,
        payload: table.payload.clone(),
        tags: table.tags.clone(),
        key: table.key.clone(),
    })
}
