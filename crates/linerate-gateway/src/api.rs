//! The server API: HTTP requests from applications.
//!
//! `POST /api/METHOD` with a JSON body, as in Centrifugo's HTTP API: `broadcast`, `channels`,
//! `disconnect`, `history`, `history_remove`, `info`, `invalidate_tokens`,
//! `invalidate_user_tokens`, `presence`, `presence_stats`, `publish`, `refresh`, `revocations`,
//! `revoke_token`, `subscribe`, `unsubscribe`, and `batch` for several commands in one request. The
//! key is sent as `X-API-Key: KEY` or `Authorization: apikey KEY`.
//!
//! A method replies with status 200 and `{"result":{…}}` or `{"error":{"code":…,"message":"…"}}`.
//! Requests that do not reach a method get another status with the same error format: 401 for a
//! wrong key, 403 if no key is configured, 404 for an unknown method, 413 for a body that is too
//! long.
//!
//! `pusher` is another API, for backends that use the libraries of Pusher.

#[cfg(fuzzing)]
pub(crate) mod fuzzing;
pub(crate) mod gate;
mod method;
pub(crate) mod pusher;
pub(crate) mod reply;
pub(crate) mod request;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Json, Router,
    body::{Body, to_bytes},
    extract::{Path, Request, State},
    response::{IntoResponse, Response},
    routing::post,
};
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use serde_json::json;

use crate::{node::Node, server::Peer, session::SessionEnvironment};
use gate::{Denied, KeyedApi};
use reply::{ApiError, Reply};

/// Returns the routes of the server API.
pub(crate) fn routes(node: Arc<Node>, shared: Arc<SessionEnvironment>) -> Router {
    let api = Api { node, shared };
    Router::new()
        .route("/api/{method}", post(handle))
        .with_state(api.clone())
        .merge(pusher::routes(api))
}

#[derive(Clone, Debug)]
struct Api {
    node: Arc<Node>,
    shared: Arc<SessionEnvironment>,
}

async fn handle(
    State(api): State<Api>,
    Path(method): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    let settings = api.shared.settings_full();
    let peer = request.extensions().get::<Peer>().copied();
    KeyedApi::Server.check(&api.shared, request.headers(), peer)?;
    let bytes_max = settings.config.server.request_bytes_max;
    let body = read(request.into_body(), bytes_max).await?;
    let since = Instant::now();
    let answer = match method.as_str() {
        "batch" => Some(batch(&api.node, &body).await),
        method => {
            let answer = method::perform(&api.node, method, &body).await;
            answer.map(|answer| Json(Reply::from(answer)).into_response())
        }
    };
    match answer {
        Some(answer) => {
            let metrics = api.shared.metrics();
            metrics.count_request(&method, since.elapsed());
            Ok(answer)
        }
        None => Err(Refusal::new(StatusCode::NOT_FOUND, 104, "unknown method")),
    }
}

async fn batch(node: &Arc<Node>, body: &[u8]) -> Response {
    let answer = match serde_json::from_slice(body) {
        Ok(batch) => method::batch(node, batch).await,
        Err(error) => Err(ApiError::malformed(&error)),
    };
    match answer {
        Ok(replies) => Json(json!({ "replies": replies })).into_response(),
        Err(error) => Json(Reply::Error(error)).into_response(),
    }
}

/// Reads a body of at most `bytes_max` bytes.
pub(crate) async fn read(body: Body, bytes_max: usize) -> Result<Bytes, Refusal> {
    to_bytes(body, bytes_max).await.map_err(|_| {
        let message = format!("cannot read the request, or it has more than {bytes_max} bytes");
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, 107, message)
    })
}

/// The error reply to a request that does not reach a method.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    error: ApiError,
    retry_after: Option<Duration>,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, code: u32, message: impl ToString) -> Self {
        let error = ApiError::new(code, message);
        Self {
            status,
            error,
            retry_after: None,
        }
    }
}

impl From<Denied> for Refusal {
    fn from(denied: Denied) -> Self {
        let (code, retry_after) = match denied {
            Denied::Limited(wait) => (111, Some(wait)),
            _ => (101, None),
        };
        Self {
            retry_after,
            ..Self::new(denied.status(), code, denied)
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(Reply::Error(self.error))).into_response();
        if let Some(wait) = self.retry_after {
            let seconds = HeaderValue::from(wait.as_secs() + 1);
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
        }
        response
    }
}

#[cfg(test)]
mod tests;
