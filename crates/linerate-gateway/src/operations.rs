//! Endpoints for monitoring: `/live`, `/ready` and `/metrics`.
//!
//! `/live` reports that the process responds. It never depends on the broker: a supervisor that
//! restarts failed processes must not restart all nodes when the broker is unavailable. `/ready`
//! reports whether new clients should be routed to this node.

mod deliveries;
mod figure;
mod process;
mod snapshot;

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{Request, State},
    http::{StatusCode, header, request::Parts},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::get,
};
use linerate_broker::LinkState;
use linerate_budget::State as Memory;
use serde::Serialize;

use crate::{
    api::{
        Refusal,
        gate::{Denied, KeyedApi, is_local},
    },
    node::Node,
    server::{Frontend, Peer},
    session::SessionEnvironment,
    source::Sources,
};
pub(crate) use process::resident_bytes;
use snapshot::Snapshot;

/// The content type of OpenMetrics.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The state that the monitoring endpoints report on.
#[derive(Debug)]
pub(crate) struct Operations {
    /// The node.
    pub node: Arc<Node>,
    /// The listeners for clients.
    pub frontend: Arc<Frontend>,
    /// The configuration and the metrics of sessions.
    pub shared: Arc<SessionEnvironment>,
    /// The databases whose changes are published.
    pub sources: Arc<Sources>,
}

/// The readiness of this node for new clients, as `/ready` reports it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Readiness {
    /// True if they should.
    pub ready: bool,
    /// The reasons why not.
    pub reasons: Vec<&'static str>,
}

impl Operations {
    /// Returns the routes for the listener for clients, where `/metrics` is available locally, or
    /// with the admin key.
    pub(crate) fn public_routes(self: &Arc<Self>) -> Router {
        let metrics = get(metrics).layer(from_fn_with_state(self.clone(), only_near));
        self.health()
            .route("/metrics", metrics)
            .with_state(self.clone())
    }

    /// Returns the routes for a separate listener, available to everyone who can reach it.
    pub(crate) fn private_routes(self: &Arc<Self>) -> Router {
        let routes = self.health().route("/metrics", get(metrics));
        routes.with_state(self.clone())
    }

    /// Returns whether new clients should be routed to this node, and the reasons if not.
    pub(crate) fn readiness(&self) -> Readiness {
        let mut reasons = Vec::new();
        if self.node.broker.link() == LinkState::Deaf {
            reasons.push("nothing arrives from the broker");
        }
        if !self.node.revocations.are_known() {
            reasons.push("revoked tokens have not been read from the broker");
        }
        if self.node.publisher.writes.are_refused() {
            reasons.push("the broker refuses durable publications");
        }
        if self.frontend.stopped.phase().is_stopping() || *self.node.draining().borrow() {
            reasons.push("draining");
        }
        if self.node.budget.state() != Memory::Normal {
            reasons.push("memory");
        }
        if !self.frontend.admission.has_room() {
            reasons.push("connection limit reached");
        }
        Readiness {
            ready: reasons.is_empty(),
            reasons,
        }
    }

    fn health(&self) -> Router<Arc<Self>> {
        Router::new()
            .route("/live", get(live))
            .route("/ready", get(ready))
    }
}

async fn live() -> &'static str {
    "alive\n"
}

async fn ready(State(operations): State<Arc<Operations>>) -> Response {
    let readiness = operations.readiness();
    let status = match readiness.ready {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    (status, Json(readiness)).into_response()
}

async fn metrics(State(operations): State<Arc<Operations>>) -> Response {
    let snapshot = Snapshot::take(&operations.node, &operations.frontend).await;
    let snapshot = snapshot.with_backends(&operations.shared.settings().backends);
    let snapshot = snapshot.with_sources(&operations.sources.statuses());
    let snapshot = snapshot.with_feeds(&operations.sources.feed_statuses());
    match snapshot.into_text(operations.shared.metrics()) {
        Ok(text) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Refuses requests from other machines without the admin key.
async fn only_near(
    State(operations): State<Arc<Operations>>,
    request: Request,
    next: Next,
) -> Response {
    let peer = request.extensions().get::<Peer>().copied();
    let headers = request.headers();
    if is_local(headers, peer) {
        return next.run(request).await;
    }
    match KeyedApi::Admin.check(&operations.shared, headers, peer) {
        Ok(()) => next.run(request).await,
        Err(denied @ Denied::Limited(_)) => Refusal::from(denied).into_response(),
        Err(_) => {
            let text = "metrics are available locally, or with the admin key; see server.operations_listen\n";
            (StatusCode::FORBIDDEN, text).into_response()
        }
    }
}

/// Checks a request to `/echo` or `/counters`. These are public if the server is open or
/// `server.diagnostics` is set; otherwise they require the admin key. Returns the response if the
/// request is refused.
pub(crate) fn refuse_diagnostics(shared: &SessionEnvironment, parts: &Parts) -> Option<Response> {
    let settings = shared.settings();
    if settings.config.is_open() || settings.config.server.diagnostics {
        return None;
    }
    let peer = parts.extensions.get::<Peer>().copied();
    match KeyedApi::Admin.check(shared, &parts.headers, peer) {
        Ok(()) => None,
        Err(denied @ Denied::Limited(_)) => Some(Refusal::from(denied).into_response()),
        Err(_) => {
            let text = "this requires the admin key, because keys are configured; set \
                        server.diagnostics = true to make it public\n";
            Some((StatusCode::FORBIDDEN, text).into_response())
        }
    }
}

#[cfg(test)]
mod tests;
