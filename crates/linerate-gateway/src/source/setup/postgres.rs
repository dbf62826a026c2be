//! The options of `[[postgres]]`, ready to be used.

use std::sync::Arc;

use linerate_hub::ChannelName;
use linerate_postgres::{ChangeOptions, NotificationOptions, ServerUrl, TableOptions, UrlError};
use linerate_source::Template;

use super::{Identity, Reads, SourceSetup};
use crate::{
    client_tls::TlsFiles,
    config::{PostgresOptions, PostgresTable, Secret},
    endpoint_error::EndpointProblem,
};

pub(super) fn read(options: &PostgresOptions) -> Result<SourceSetup, EndpointProblem> {
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
    Ok(SourceSetup {
        identity: Identity::Postgres(options.clone(), server),
        has_files: files.authorities.is_some() || files.certificate.is_some(),
        reads,
    })
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
