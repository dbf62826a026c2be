//! The HTTP client of one backend.

use bytes::Bytes;
use http::{HeaderMap, Uri};

use super::{AskError, Event};
use crate::{
    client_tls::TlsFiles,
    config::{BackendOptions, EVENT},
    endpoint_error::EndpointProblem,
    http_client::{HttpClient, HttpError, post_json, read_headers},
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
    pub(super) fn new(options: &BackendOptions) -> Result<Self, EndpointProblem> {
        let uri = |event: Event| options.url.replace(EVENT, event.name()).parse::<Uri>();
        let mut uris = <[Uri; _]>::default();
        for event in Event::ALL {
            let uri = uri(event).map_err(|error| EndpointProblem::invalid("url", error))?;
            uris[event as usize] = uri;
        }
        let files = TlsFiles {
            authorities: options.tls_authorities.as_deref(),
            certificate: options.tls_certificate.as_deref(),
            key: options.tls_key.as_deref(),
        };
        Ok(Self {
            uris,
            client: HttpClient::new(files.read()?, options.concurrent_requests_max),
            headers: read_headers(&options.headers)?,
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
