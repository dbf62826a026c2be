//! The HTTP client of one backend.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use rustls::ClientConfig;

use super::{AskError, BackendSetupError, Event};
use crate::{
    client_tls::{TlsFileError, TlsFiles},
    config::{BackendOptions, EVENT, Secret},
    http_client::{HttpClient, HttpError, post_json},
};

/// Sends requests to one backend.
#[derive(Debug)]
pub(super) struct Poster {
    /// The URL for each kind of question.
    uris: [Uri; Event::ALL.len()],
    client: HttpClient,
    headers: HeaderMap,
    answer_bytes_max: usize,
}

impl Poster {
    pub(super) fn new(options: &BackendOptions) -> Result<Self, BackendSetupError> {
        let invalid = |key, reason: String| BackendSetupError::Invalid {
            backend: options.name.clone(),
            key,
            reason,
        };
        let uri = |event: Event| options.url.replace(EVENT, event.name()).parse::<Uri>();
        let mut uris = <[Uri; _]>::default();
        for event in Event::ALL {
            let uri = uri(event).map_err(|error| invalid("url", error.to_string()))?;
            uris[event as usize] = uri;
        }
        Ok(Self {
            uris,
            client: HttpClient::new(tls(options)?, options.concurrent_requests_max),
            headers: headers(options)?,
            answer_bytes_max: options.answer_bytes_max,
        })
    }

    /// Sends a question with these headers, and returns the body of the response.
    pub(super) async fn post(
        &self,
        event: Event,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<Bytes, AskError> {
        headers.extend(self.headers.clone());
        let request = post_json(self.uris[event as usize].clone(), headers, body);
        let sent = self.client.send(request, self.answer_bytes_max).await;
        sent.map_err(|error| match error {
            HttpError::Lost(_) => AskError::Lost(error.to_string()),
            HttpError::Status(status) => AskError::Status(status),
            HttpError::TooLarge { bytes_max } => AskError::TooLarge { bytes_max },
            HttpError::Unsent(_) => AskError::Unsent(error.to_string()),
        })
    }
}

fn headers(options: &BackendOptions) -> Result<HeaderMap, BackendSetupError> {
    let read = |(name, value): (&String, &Secret)| {
        let invalid = |reason: String| BackendSetupError::Invalid {
            backend: options.name.clone(),
            key: "headers",
            reason: format!("{name}: {reason}"),
        };
        let value = value.read().map_err(|error| invalid(error.to_string()))?;
        let mut value = HeaderValue::try_from(value).map_err(|error| invalid(error.to_string()))?;
        value.set_sensitive(true);
        let name = HeaderName::try_from(name.as_str());
        let name = name.map_err(|error| invalid(error.to_string()))?;
        Ok((name, value))
    };
    options.headers.iter().map(read).collect()
}

fn tls(options: &BackendOptions) -> Result<ClientConfig, BackendSetupError> {
    let files = TlsFiles {
        authorities: options.tls_authorities.as_deref(),
        certificate: options.tls_certificate.as_deref(),
        key: options.tls_key.as_deref(),
    };
    let backend = options.name.clone();
    files.read().map_err(|error| match error {
        TlsFileError::File { path, source } => BackendSetupError::File {
            backend,
            path,
            source,
        },
        TlsFileError::Invalid { key, reason } => BackendSetupError::Invalid {
            backend,
            key,
            reason,
        },
    })
}
