//! Fetches a small document over HTTP.

use std::{fmt, time::Duration};

use axum::body::Body;
use bytes::Bytes;
use http::{Request, StatusCode, Uri, header};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use rustls::ClientConfig;
use tokio::time::timeout;

/// Maximum time to fetch a document.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size of a document, in bytes.
const BYTES_MAX: usize = 256 << 10;

/// Fetches the same document repeatedly.
pub(super) struct Fetcher {
    uri: Uri,
    client: Client<HttpsConnector<HttpConnector>, Body>,
}

impl Fetcher {
    /// Creates a fetcher for an http or https URL.
    pub(super) fn new(url: &str) -> Result<Self, String> {
        let uri = url
            .parse()
            .map_err(|error| format!("invalid URL: {error}"))?;
        let tls = linerate::tls::default_client_config();
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(ClientConfig::clone(&tls))
            .https_or_http()
            .enable_http1()
            .build();
        // Connections are not reused, because another worker may be the next to fetch.
        let client = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(0)
            .build(connector);
        Ok(Self { uri, client })
    }

    /// Fetches the document.
    pub(super) async fn fetch(&self) -> Result<Bytes, String> {
        let fetched = timeout(TIMEOUT, self.request()).await;
        fetched.unwrap_or_else(|_| Err(format!("no response within {TIMEOUT:?}")))
    }

    async fn request(&self) -> Result<Bytes, String> {
        let request = Request::get(self.uri.clone())
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, "linerate")
            .body(Body::empty())
            .map_err(|error| error.to_string())?;
        let response = self.client.request(request).await;
        let response = response.map_err(|error| format!("cannot connect: {error}"))?;
        if response.status() != StatusCode::OK {
            return Err(format!(
                "server responded with status {}",
                response.status()
            ));
        }
        let body = axum::body::to_bytes(Body::new(response.into_body()), BYTES_MAX).await;
        body.map_err(|_| format!("response is truncated or has more than {BYTES_MAX} bytes"))
    }
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetcher").field("uri", &self.uri).finish()
    }
}
