//! A webhook as configured: its options, and the destination that is prepared from them.

use std::{path::Path, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use http::Uri;
use linerate_broker::{nats::SubjectWriter, redis::StreamWriter};

use super::{
    destination::{Destination, HttpDestination, Signer},
    event::Happened,
    interest::includes,
};
use crate::{
    auth::PusherApp,
    client_tls::{TlsFiles, read_file},
    config::{Secret, WebhookFormat, WebhookOptions, WebhookScheme},
    endpoint_error::{EndpointError, EndpointProblem},
    http_client::{HttpClient, causes, read_headers},
};

/// The prefix of secrets of Standard Webhooks.
const PREFIX: &str = "whsec_";

/// The options of a webhook, and where its batches are sent.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(super) options: WebhookOptions,
    pub(super) destination: Destination,
}

impl Endpoint {
    /// Reads the URL, the secret, the headers and the certificates. `pusher` is the app of Pusher
    /// clients, if one is configured.
    ///
    /// # Errors
    /// A file cannot be read, or what it contains cannot be used.
    pub(crate) fn new(
        options: &WebhookOptions,
        pusher: Option<&PusherApp>,
    ) -> Result<Self, EndpointError> {
        let destination = destination(options, pusher);
        let destination = destination.map_err(|problem| problem.of("webhook", &options.name))?;
        Ok(Self {
            options: options.clone(),
            destination,
        })
    }

    /// Returns whether this is to be sent: by its kind, and by the channel if it has one.
    pub(super) fn wants(&self, happened: &Happened) -> bool {
        let options = &self.options;
        let is_included = |channel| includes(&options.channels, channel);
        options.events().contains(&happened.kind()) && happened.channel().is_none_or(is_included)
    }
}

fn destination(
    options: &WebhookOptions,
    pusher: Option<&PusherApp>,
) -> Result<Destination, EndpointProblem> {
    let invalid = |error: &dyn std::error::Error| EndpointProblem::invalid("url", causes(error));
    let url = options.url.read().map_err(|error| invalid(&error))?;
    let authorities = || {
        let path = options.tls_authorities.as_deref();
        path.map(|path: &Path| read_file(path)).transpose()
    };
    match WebhookScheme::of(&url) {
        Some(WebhookScheme::Http) => http(options, &url, pusher).map(Destination::Http),
        Some(WebhookScheme::Nats) => {
            let (subject, timeout) = (&options.subject, options.timeout);
            let writer = SubjectWriter::new(&url, subject, timeout, authorities()?);
            writer
                .map(Destination::Nats)
                .map_err(|error| invalid(&error))
        }
        // The URL is in a file, so that this could not be checked before.
        Some(WebhookScheme::Redis) if options.stream.is_empty() => {
            Err(EndpointProblem::invalid("stream", "is required for Redis"))
        }
        Some(WebhookScheme::Redis) => {
            let stream = (&*options.stream, options.stream_length_max);
            let authorities = authorities()?;
            let writer = StreamWriter::new(&url, stream, options.timeout, authorities.as_deref());
            writer
                .map(Destination::Redis)
                .map_err(|error| invalid(&error))
        }
        None => Err(EndpointProblem::invalid("url", WebhookScheme::EXPECTED)),
    }
}

fn http(
    options: &WebhookOptions,
    url: &str,
    pusher: Option<&PusherApp>,
) -> Result<HttpDestination, EndpointProblem> {
    let uri = url.parse::<Uri>();
    let uri = uri.map_err(|error| EndpointProblem::invalid("url", error))?;
    let signer = match options.format {
        WebhookFormat::Pusher => {
            let because = "pusher requires protocols.pusher, and pusher.key and pusher.secret";
            let app = pusher.ok_or_else(|| EndpointProblem::invalid("format", because))?;
            Signer::Pusher(Arc::new(app.clone()))
        }
        WebhookFormat::Standard => Signer::Standard(standard_secret(options.secret.as_ref())?),
    };
    let files = TlsFiles {
        authorities: options.tls_authorities.as_deref(),
        certificate: options.tls_certificate.as_deref(),
        key: options.tls_key.as_deref(),
    };
    Ok(HttpDestination {
        uri,
        headers: read_headers(&options.headers)?,
        client: HttpClient::new(files.read()?, 1),
        signer,
    })
}

fn standard_secret(secret: Option<&Secret>) -> Result<Vec<u8>, EndpointProblem> {
    let secret = secret.map_or(Ok(String::new()), Secret::read);
    let secret = secret.map_err(|error| EndpointProblem::invalid("secret", error))?;
    let secret = secret
        .strip_prefix(PREFIX)
        .map(|text| BASE64_STANDARD.decode(text));
    let secret = secret.and_then(Result::ok);
    let secret = secret.filter(|bytes| (24..=64).contains(&bytes.len()));
    let because = "must be whsec_ followed by 24 to 64 bytes in base64 (openssl rand -base64 32)";
    secret.ok_or_else(|| EndpointProblem::invalid("secret", because))
}
