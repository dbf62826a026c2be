//! Fetches a small document over HTTP.

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{Request, Uri};
use rustls::ClientConfig;
use tokio::time::timeout;

use crate::http_client::HttpClient;

/// Maximum time to fetch a document.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size of a document, in bytes.
const BYTES_MAX: usize = 256 << 10;

/// Fetches the same document repeatedly.
#[derive(Debug)]
pub(super) struct Fetcher {
    uri: Uri,
    client: HttpClient,
}

impl Fetcher {
    /// Creates a fetcher for an http or https URL.
    pub(super) fn new(url: &str) -> Result<Self, String> {
        let uri = url
            .parse()
            .map_err(|error| format!("invalid URL: {error}"))?;
        let tls = linerate::tls::default_client_config();
        // Connections are not reused, because another worker may be the next to fetch.
        let client = HttpClient::new(ClientConfig::clone(&tls), 0);
        Ok(Self { uri, client })
    }

    /// Fetches the document.
    pub(super) async fn fetch(&self) -> Result<Bytes, String> {
        let request = Request::get(self.uri.clone()).body(Body::empty());
        let request = request.map_err(|error| error.to_string())?;
        let fetched = timeout(TIMEOUT, self.client.send(request, BYTES_MAX)).await;
        let fetched = fetched.map_err(|_| format!("no response within {TIMEOUT:?}"))?;
        fetched.map_err(|error| error.to_string())
    }
}
