//! Publishes through the API of a server.

use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use axum::body::Body;
use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use hyper::{Request, StatusCode, Uri, header};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use linerate::tls::rustls::ClientConfig;
use linerate_hub::{ChannelName, Epoch, StreamPosition};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::timeout;

/// How long to wait for a response.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum size of a response.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// A server to publish to.
pub(super) struct ServerTarget {
    uri: Uri,
    key: Option<String>,
    client: Client<HttpsConnector<HttpConnector>, Body>,
}

/// The API command for one payload.
#[derive(Serialize)]
struct Publish<'a> {
    channel: &'a str,
    #[serde(flatten)]
    data: Data<'a>,
}

/// A payload as it is encoded in JSON.
#[derive(Serialize)]
enum Data<'a> {
    #[serde(rename = "b64data")]
    Base64(String),
    #[serde(rename = "data")]
    Json(&'a RawValue),
}

#[derive(Deserialize)]
struct BatchResult {
    #[serde(default)]
    replies: Vec<Reply>,
    error: Option<ApiError>,
}

#[derive(Deserialize)]
struct Reply {
    publish: Option<PublishResult>,
    error: Option<ApiError>,
}

#[derive(Deserialize)]
struct PublishResult {
    offset: Option<u64>,
    epoch: Option<String>,
}

#[derive(Deserialize)]
struct ApiError {
    code: u32,
    message: String,
}

impl ServerTarget {
    pub(super) fn new(url: &str, key: Option<String>) -> anyhow::Result<Self> {
        let api = format!("{}/api/batch", url.trim_end_matches('/'));
        let uri: Uri = api.parse().with_context(|| format!("{url} is not a URL"))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            bail!("{url} does not start with http:// or https://");
        }
        let tls = linerate::tls::default_client_config();
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(ClientConfig::clone(&tls))
            .https_or_http()
            .enable_http1()
            .build();
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { uri, key, client })
    }

    pub(super) async fn publish(
        &self,
        channel: &ChannelName,
        payloads: Vec<Bytes>,
    ) -> anyhow::Result<Option<StreamPosition>> {
        let body = encode(channel, &payloads)?;
        let answer = timeout(TIMEOUT, self.ask(body)).await;
        let answer = answer.map_err(|_| anyhow!("no response within {TIMEOUT:?}"))??;
        if let Some(refusal) = answer.error {
            bail!("{}", refusal.text());
        }
        let mut newest = None;
        for reply in answer.replies {
            if let Some(refusal) = reply.error {
                bail!("{}", refusal.text());
            }
            newest = reply.publish.and_then(PublishResult::position);
        }
        Ok(newest)
    }

    async fn ask(&self, body: Vec<u8>) -> anyhow::Result<BatchResult> {
        let mut request = Request::post(self.uri.clone())
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::USER_AGENT, "linerate publish");
        if let Some(key) = &self.key {
            request = request.header("x-api-key", key);
        }
        let response = self.client.request(request.body(body.into())?).await;
        let server = self.uri.authority().map_or("the server", |it| it.as_str());
        let response = response.with_context(|| format!("cannot reach {server}"))?;
        let status = response.status();
        let body = axum::body::to_bytes(Body::new(response.into_body()), ANSWER_BYTES_MAX).await;
        match (
            status,
            serde_json::from_slice(&body.context("response is truncated or too large")?),
        ) {
            (_, Ok(answer)) => Ok(answer),
            (StatusCode::NOT_FOUND, _) => bail!("{server} has no server API"),
            (status, _) => bail!("{server} responded with status {status}"),
        }
    }
}

impl ApiError {
    fn text(&self) -> String {
        format!("{} (error {})", self.message, self.code)
    }
}

impl PublishResult {
    fn position(self) -> Option<StreamPosition> {
        Some(StreamPosition {
            epoch: Epoch::new(&self.epoch?),
            offset: self.offset?,
        })
    }
}

/// Encodes payloads as one request: JSON unchanged, anything else in base64.
fn encode(channel: &ChannelName, payloads: &[Bytes]) -> serde_json::Result<Vec<u8>> {
    #[derive(Serialize)]
    struct Command<'a> {
        publish: Publish<'a>,
    }
    #[derive(Serialize)]
    struct Batch<'a> {
        commands: Vec<Command<'a>>,
    }
    let command = |payload| Command {
        publish: Publish {
            channel: channel.as_str(),
            data: Data::new(payload),
        },
    };
    serde_json::to_vec(&Batch {
        commands: payloads.iter().map(command).collect(),
    })
}

impl<'a> Data<'a> {
    fn new(payload: &'a Bytes) -> Self {
        match serde_json::from_slice::<&RawValue>(payload) {
            // Whitespace around a JSON value is part of the payload but would be lost, so such a
            // payload is sent in base64.
            Ok(json) if json.get().len() == payload.len() => Self::Json(json),
            _ => Self::Base64(BASE64_STANDARD.encode(payload)),
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_hub::ChannelName;

    use super::encode;

    #[test]
    fn payloads_stay_as_they_are() {
        let payloads = ["{\"b\": 1.0}", "hello", " 1", "\"x\""].map(Into::into);
        let encoded = encode(&ChannelName::new("news").unwrap(), &payloads).unwrap();
        let expected = concat!(
            "{\"commands\":[",
            "{\"publish\":{\"channel\":\"news\",\"data\":{\"b\": 1.0}}},",
            "{\"publish\":{\"channel\":\"news\",\"b64data\":\"aGVsbG8=\"}},",
            "{\"publish\":{\"channel\":\"news\",\"b64data\":\"IDE=\"}},",
            "{\"publish\":{\"channel\":\"news\",\"data\":\"x\"}}]}",
        );
        assert_eq!(String::from_utf8(encoded).unwrap(), expected);
    }
}
