//! The API of the admin page, under `/admin/api/`.
//!
//! Each request carries the admin key, as `Authorization: Bearer KEY` or `X-Admin-Key: KEY`. If no
//! key is configured, only peers on the same machine have access, and only if the server is open.
//! Replies are JSON, each a type in [`view`]. Times are in milliseconds since 1970; rates are per
//! second: of the node in the last second, and of channels in the last two or three. Errors are
//! reported as a status and `{"error":{"code":…,"message":"…"}}`.
//!
//! | request | reply |
//! | --- | --- |
//! | `GET overview` | [`view::Overview`]: totals and rates of this node; cheap to poll |
//! | `GET series?step=second\|minute&after=0` | [`view::Series`]: the last hour or day |
//! | `GET settings` | [`view::Settings`]: the configuration of this node, without secrets |
//! | `GET nodes` | [`view::Nodes`]: all known nodes |
//! | `GET connections?sort=lag\|pending\|age&limit=50&user=&channel=&client=` | [`view::Connections`] |
//! | `GET channels?sort=rate\|bytes\|subscribers&limit=50&contains=` | [`view::Channels`] |
//! | `GET broker` | [`view::BrokerLink`]: the link with its latest changes and gaps |
//! | `GET tail?channel=…&rate=20` | a `text/event-stream`, see below |
//! | `POST disconnect` [`view::Disconnect`] | [`view::AffectedClients`] |
//! | `POST unsubscribe` [`view::Unsubscribe`] | [`view::AffectedClients`] |
//! | `POST publish` [`view::Publish`] | [`view::AffectedClients`] |
//! | `POST tokens` [`view::MakeTokens`] | [`view::Tokens`]: tokens for the channel page |
//! | `POST drain` `{}` | [`view::AffectedClients`]; `/ready` fails, and clients are disconnected |
//! | `POST undrain` `{}` | [`view::AffectedClients`]; ready again, and the remaining clients stay |
//!
//! `series` has a point for each second of the last hour (3,600), or for each minute of the last
//! day, if it begins at `after` or later; a reply takes less than 512 KiB.
//!
//! `disconnect` and `unsubscribe` apply to all nodes. `connections` and `channels` list only those
//! of the node that replies, which is why the page shows its name.
//!
//! The tail has three kinds of events: `publication` ([`view::TailPublication`]), at most `rate`
//! per second (1 to 100); `skipped` ([`view::TailSkipped`]), once per second if there were more
//! publications; and `gap` ([`view::TailGap`]). It begins with the comment `: open`. Because
//! `EventSource` cannot send headers, the page reads the tail with `fetch`.

mod channels;
mod connections;
mod link;
mod rates;
mod series;
mod settings;
mod tail;
mod tokens;
pub(crate) mod view;

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{FromRef, FromRequestParts, Query, Request, State},
    routing::{get, post},
};
use http::{StatusCode, request::Parts};
use linerate_broker::Publish;
use linerate_hub::ChannelName;
use serde::de::DeserializeOwned;

use crate::{
    api::{Refusal, gate::KeyedApi, read},
    node::{ConnectionSelector, Node, Worker},
    producer::Author,
    protocol::codes::{Disconnect, Unsubscribe},
    server::Peer,
    session::SessionEnvironment,
};
use rates::Rates;
use series::Series;
pub(crate) use tail::TailEncoding;

/// State of the admin API, shared by all workers of a node.
#[derive(Debug)]
pub(crate) struct Admin {
    node: Arc<Node>,
    shared: Arc<SessionEnvironment>,
    rates: Rates,
    series: Arc<Series>,
}

impl Admin {
    /// Creates the shared state.
    pub(crate) fn new(node: Arc<Node>, shared: Arc<SessionEnvironment>) -> Arc<Self> {
        Arc::new(Self {
            node,
            shared,
            rates: Rates::default(),
            series: Arc::new(Series::new()),
        })
    }

    /// Records the node's figures until it shuts down.
    pub(crate) fn start_recording(&self) {
        let recording = self.series.clone().run(self.node.clone());
        self.node.spawn(recording);
    }

    /// Returns the routes, for the connections of one worker.
    pub(crate) fn routes(self: &Arc<Self>, worker: Arc<Worker>) -> Router {
        let state = AdminState {
            admin: self.clone(),
            worker,
        };
        Router::new()
            .route("/admin/api/overview", get(overview))
            .route("/admin/api/series", get(series::show))
            .route("/admin/api/settings", get(settings::list))
            .route("/admin/api/nodes", get(nodes))
            .route("/admin/api/connections", get(connections::list))
            .route("/admin/api/channels", get(channels::list))
            .route("/admin/api/broker", get(link::show))
            .route("/admin/api/tail", get(tail::open))
            .route("/admin/api/disconnect", post(disconnect))
            .route("/admin/api/unsubscribe", post(unsubscribe))
            .route("/admin/api/publish", post(publish))
            .route("/admin/api/tokens", post(tokens::make))
            .route("/admin/api/drain", post(drain))
            .route("/admin/api/undrain", post(undrain))
            .with_state(state)
    }
}

/// The state of the request handlers.
#[derive(Clone, Debug)]
struct AdminState {
    admin: Arc<Admin>,
    worker: Arc<Worker>,
}

impl FromRef<AdminState> for Arc<Node> {
    fn from_ref(state: &AdminState) -> Self {
        state.admin.node.clone()
    }
}

/// Proof that a request has admin access.
#[derive(Clone, Copy, Debug)]
struct Administrator;

impl FromRequestParts<AdminState> for Administrator {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &AdminState) -> Result<Self, Refusal> {
        let peer = parts.extensions.get::<Peer>().copied();
        KeyedApi::Admin.check(&state.admin.shared, &parts.headers, peer)?;
        Ok(Self)
    }
}

async fn overview(_: Administrator, State(state): State<AdminState>) -> Json<view::Overview> {
    let node = &state.admin.node;
    let totals = node.tallies.totals().await;
    let is_draining = *node.draining().borrow();
    let rates = state.admin.series.rates();
    Json(view::Overview {
        node: node.status.info(),
        is_draining,
        nodes: node.cluster.nodes_count(),
        link: node.broker.link().into(),
        publications_per_s: rates.publications,
        publication_bytes_per_s: rates.publication_bytes,
        deliveries_per_s: rates.deliveries,
        delivery_bytes_per_s: rates.delivery_bytes,
        waiting: node.dispatcher.waiting(),
        dropped: totals.iter().map(|totals| totals.dropped_evicted).sum(),
        conflated: totals.iter().map(|totals| totals.conflated).sum(),
    })
}

async fn nodes(_: Administrator, State(node): State<Arc<Node>>) -> Json<view::Nodes> {
    let nodes = node.cluster.nodes().await;
    Json(view::Nodes { nodes })
}

async fn disconnect(
    _: Administrator,
    State(state): State<AdminState>,
    request: Request,
) -> Result<Json<view::AffectedClients>, Refusal> {
    let asked: view::Disconnect = json(&state, request).await?;
    let whom = whom(asked.user, asked.client)?;
    let why = match asked.may_reconnect {
        true => Disconnect::FORCE_RECONNECT,
        false => Disconnect::FORCE_NO_RECONNECT,
    };
    let clients = state.admin.node.all_nodes.disconnect(whom, why).await;
    Ok(Json(view::AffectedClients { clients }))
}

async fn unsubscribe(
    _: Administrator,
    State(state): State<AdminState>,
    request: Request,
) -> Result<Json<view::AffectedClients>, Refusal> {
    let asked: view::Unsubscribe = json(&state, request).await?;
    let channel = channel_name(&asked.channel)?;
    let whom = whom(asked.user, asked.client)?;
    let node = &state.admin.node;
    let clients = node
        .all_nodes
        .unsubscribe(whom, Some(&channel), Unsubscribe::SERVER)
        .await;
    Ok(Json(view::AffectedClients { clients }))
}

async fn publish(
    _: Administrator,
    State(state): State<AdminState>,
    request: Request,
) -> Result<Json<view::AffectedClients>, Refusal> {
    let asked: view::Publish = json(&state, request).await?;
    let channel = channel_name(&asked.channel)?;
    let node = &state.admin.node;
    if node.broker.is_pattern(&channel) {
        return Err(bad_request("cannot publish to a pattern"));
    }
    let publish = Publish {
        payload: asked.data.into(),
        info: None,
        tags: asked.tags.into_iter().collect(),
        idempotency_key: None,
        options: node.namespaces.current().options(&channel).stream(),
    };
    match node.publish(&channel, publish, Author::Application).await {
        Ok(_) => Ok(Json(view::AffectedClients::default())),
        Err(error) => Err(Refusal::new(StatusCode::BAD_GATEWAY, 100, error)),
    }
}

async fn drain(_: Administrator, State(node): State<Arc<Node>>) -> Json<view::AffectedClients> {
    node.drain();
    let clients = node.counts.clients();
    Json(view::AffectedClients { clients })
}

async fn undrain(_: Administrator, State(node): State<Arc<Node>>) -> Json<view::AffectedClients> {
    node.undrain();
    let clients = node.counts.clients();
    Json(view::AffectedClients { clients })
}

/// Parses the JSON body of a request.
async fn json<T: DeserializeOwned>(state: &AdminState, request: Request) -> Result<T, Refusal> {
    let settings = state.admin.shared.settings_full();
    let bytes_max = settings.config.server.request_bytes_max;
    let body = read(request.into_body(), bytes_max).await?;
    serde_json::from_slice(&body).map_err(bad_request)
}

/// Parses the query string of a request.
fn query<T: DeserializeOwned>(parts: &Parts) -> Result<T, Refusal> {
    let query = Query::try_from_uri(&parts.uri);
    let query = query.map_err(|error| bad_request(error.body_text()))?;
    Ok(query.0)
}

fn whom(user: String, client: String) -> Result<ConnectionSelector, Refusal> {
    if user.is_empty() && client.is_empty() {
        return Err(bad_request("user or client is required"));
    }
    Ok(ConnectionSelector {
        user,
        client,
        except: Vec::new(),
    })
}

fn channel_name(name: &str) -> Result<ChannelName, Refusal> {
    ChannelName::new(name).map_err(bad_request)
}

fn bad_request(message: impl ToString) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, 107, message)
}

#[cfg(test)]
mod tests;
