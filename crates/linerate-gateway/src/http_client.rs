//! A small HTTP client for requests of our own: short bodies, answers of limited size.

use std::{
    collections::BTreeMap,
    error::Error,
    fmt::{self, Display, Write},
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header,
};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use rustls::ClientConfig;

use crate::{config::Secret, endpoint_error::EndpointProblem};

/// Time after which an idle connection is closed. Servers often close them after 60 s or more, and
/// a request on a connection that is being closed would fail.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Sends HTTP requests. Its connections belong to the runtime on which they were opened.
pub(crate) struct HttpClient(Client<HttpsConnector<HttpConnector>, Body>);

/// Why a request has no usable response.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum HttpError {
    /// The connection was lost before the response was complete.
    #[error("connection lost: {0}")]
    Lost(String),
    /// The response has another status than 200.
    #[error("server responded with status {0}")]
    Status(StatusCode),
    /// The response is too large.
    #[error("response has more than {bytes_max} bytes")]
    TooLarge { bytes_max: usize },
    /// No connection could be opened, so that the server has not received the request.
    #[error("cannot connect: {0}")]
    Unsent(String),
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");

impl HttpClient {
    /// Creates a client that keeps at most `idle_max` connections to a server for later requests.
    pub(crate) fn new(tls: ClientConfig, idle_max: usize) -> Self {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(http);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(idle_max)
            .build(connector);
        Self(client)
    }

    /// Sends a request, and ignores the body of the response, whose status must be from 200 to 299.
    pub(crate) async fn deliver(&self, request: Request<Body>) -> Result<(), HttpError> {
        let response = self.request(request).await?;
        match response.status() {
            status if status.is_success() => Ok(()),
            status => Err(HttpError::Status(status)),
        }
    }

    /// Sends a request for JSON and returns the body of the response. Redirections are not
    /// followed.
    pub(crate) async fn send(
        &self,
        mut request: Request<Body>,
        bytes_max: usize,
    ) -> Result<Bytes, HttpError> {
        request.headers_mut().insert(header::ACCEPT, JSON);
        let response = self.request(request).await?;
        if response.status() != StatusCode::OK {
            return Err(HttpError::Status(response.status()));
        }
        let body = Limited::new(response.into_body(), bytes_max);
        let body = body
            .collect()
            .await
            .map_err(|error| match error.is::<LengthLimitError>() {
                true => HttpError::TooLarge { bytes_max },
                false => HttpError::Lost(causes(&*error)),
            })?;
        Ok(body.to_bytes())
    }

    async fn request(&self, mut request: Request<Body>) -> Result<Response<Incoming>, HttpError> {
        let agent = HeaderValue::from_static("linerate");
        request.headers_mut().insert(header::USER_AGENT, agent);
        let response = self.0.request(request).await;
        response.map_err(|error| match error.is_connect() {
            true => HttpError::Unsent(causes(&error)),
            false => HttpError::Lost(causes(&error)),
        })
    }
}

/// Reads the headers that each request has. Their values do not appear in logs.
///
/// # Errors
/// A value cannot be read, or a header is not valid.
pub(crate) fn read_headers(
    headers: &BTreeMap<String, Secret>,
) -> Result<HeaderMap, EndpointProblem> {
    let read = |(name, value): (&String, &Secret)| {
        let invalid =
            |error: &dyn Display| EndpointProblem::invalid("headers", format!("{name}: {error}"));
        let value = value.read().map_err(|error| invalid(&error))?;
        let mut value = HeaderValue::try_from(value).map_err(|error| invalid(&error))?;
        value.set_sensitive(true);
        let name = HeaderName::try_from(name.as_str());
        Ok((name.map_err(|error| invalid(&error))?, value))
    };
    headers.iter().map(read).collect()
}

/// Returns a request that posts JSON, with these headers and a `Content-Type`.
pub(crate) fn post_json(uri: Uri, mut headers: HeaderMap, body: Bytes) -> Request<Body> {
    headers.insert(header::CONTENT_TYPE, JSON);
    let mut request = Request::new(Body::from(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    request
}

/// Returns the texts of the causes of an error, because its own text says little.
pub(crate) fn causes(error: &dyn Error) -> String {
    let mut text = String::new();
    let mut cause = error.source();
    while let Some(error) = cause {
        let separator = if text.is_empty() { "" } else { ": " };
        let _ = write!(text, "{separator}{error}");
        cause = error.source();
    }
    match text.is_empty() {
        true => error.to_string(),
        false => text,
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").finish_non_exhaustive()
    }
}
