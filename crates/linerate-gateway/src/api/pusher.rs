//! Pusher's HTTP API, for the backends of Pusher apps: `/apps/ID/…`.
//!
//! | module | responsibility |
//! | --- | --- |
//! | `channels` | what is known about channels and users |
//! | `error` | why a request is refused |
//! | `events` | triggers events |
//! | `signature` | checks who sends a request |
//!
//! A request is signed with the secret of the app. The reply is JSON, or the reason as text with
//! another status than 200.

mod channels;
mod error;
mod events;
pub(crate) mod signature;

use std::{sync::Arc, time::Instant};

use axum::{
    Json, Router,
    body::to_bytes,
    extract::{Request, State},
    response::{IntoResponse, Response},
    routing::any,
};
use http::{Method, Uri};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use super::Api;
use crate::{
    auth::{KeyRefusal, PusherApp},
    config::PusherOptions,
    node::{ConnectionSelector, Node, seconds_now},
    protocol::pusher::TERMINATED,
    server::Peer,
};
pub(crate) use error::PusherError;
use signature::Signature;

/// What every path begins with.
const PREFIX: &str = "/apps/";

/// A request whose signature is right.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signed<'a> {
    pub(crate) method: &'a Method,
    /// The part of the path after the ID of the app.
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    pub(crate) body: &'a [u8],
}

/// Returns the routes of the API.
pub(super) fn routes(api: Api) -> Router {
    let path = format!("{PREFIX}{{app_id}}/{{*method}}");
    Router::new().route(&path, any(handle)).with_state(api)
}

async fn handle(State(api): State<Api>, request: Request) -> Response {
    match answer(&api, request).await {
        Ok(value) => Json(value).into_response(),
        Err(error) => error.into_response(),
    }
}

async fn answer(api: &Api, request: Request) -> Result<Value, PusherError> {
    let since = Instant::now();
    let settings = api.shared.settings_full();
    let app = settings.pusher.as_ref().ok_or(PusherError::SwitchedOff)?;
    let (head, body) = request.into_parts();
    let path = path_of(&head.uri, app).ok_or(PusherError::UnknownApp)?;
    let query = head.uri.query().unwrap_or_default();
    let signature = Signature::read(query, app, seconds_now())?;
    let address = head.extensions.get::<Peer>().map(|peer| peer.address);
    let is_right = || signature.is_of(app, &head.method, head.uri.path());
    let judged = api.shared.judge_key("pusher_secret", address, is_right);
    judged.map_err(|refusal| match refusal {
        KeyRefusal::Limited(wait) => PusherError::Limited(wait),
        KeyRefusal::Wrong => PusherError::Signature,
    })?;
    let bytes_max = settings.config.server.request_bytes_max;
    let body = to_bytes(body, bytes_max).await;
    let body = body.map_err(|_| PusherError::Body { bytes_max })?;
    signature.check_body(&body)?;
    let signed = Signed {
        method: &head.method,
        path,
        query,
        body: &body,
    };
    let (name, value) = perform(&api.node, &settings.config.pusher, &signed).await?;
    let metrics = api.shared.metrics();
    metrics.count_request(name, since.elapsed());
    Ok(value)
}

/// Returns the part of a path after the ID of the app.
fn path_of<'a>(uri: &'a Uri, app: &PusherApp) -> Option<&'a str> {
    let (id, path) = uri.path().strip_prefix(PREFIX)?.split_once('/')?;
    (id == app.id).then_some(path)
}

/// Executes a request. Returns its name in metrics with the reply.
pub(crate) async fn perform(
    node: &Arc<Node>,
    options: &PusherOptions,
    request: &Signed<'_>,
) -> Result<(&'static str, Value), PusherError> {
    let decode = |part| percent_decode_str(part).decode_utf8();
    let parts = request.path.split('/').map(decode);
    let parts: Vec<_> = parts
        .collect::<Result<_, _>>()
        .map_err(|_| PusherError::UnknownMethod)?;
    let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
    let is_get = request.method == Method::GET;
    let is_post = request.method == Method::POST;
    Ok(match &parts[..] {
        ["events"] if is_post => {
            let value = events::trigger(node, options, request.body).await?;
            ("pusher_events", value)
        }
        ["batch_events"] if is_post => {
            let value = events::trigger_batch(node, options, request.body).await?;
            ("pusher_batch_events", value)
        }
        ["channels"] if is_get => (
            "pusher_channels",
            channels::list(node, request.query).await?,
        ),
        ["channels", name] if is_get => (
            "pusher_channel",
            channels::one(node, name, request.query).await?,
        ),
        ["channels", name, "users"] if is_get => {
            ("pusher_users", channels::users(node, name).await?)
        }
        ["users", user, "terminate_connections"] if is_post && !user.is_empty() => {
            terminate(node, user).await;
            ("pusher_terminate_connections", json!({}))
        }
        _ => return Err(PusherError::UnknownMethod),
    })
}

/// Ends the connections of a user on all nodes.
async fn terminate(node: &Node, user: &str) {
    let whom = ConnectionSelector {
        user: user.to_owned(),
        client: String::new(),
        except: Vec::new(),
    };
    node.all_nodes.disconnect(whom, TERMINATED).await;
}
