//! The routes of all client protocols: finds the dialect that a request asks for.

use std::{collections::BTreeSet, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::{RawQuery, State},
    http::{HeaderMap, StatusCode},
    response::Response,
    routing::{MethodRouter, any, post},
};
use linerate::{Counters, axum::WebSocketUpgrade, handshake::OriginPolicy};

use super::{Admitted, Endpoints, LocalClients, commands, cors, fixed, refusal};
use crate::{
    node::Worker,
    protocol::{
        self, Dialect,
        dialect::{Opening, SessionKind, StreamTransport, Transport, WebSocketTransport},
    },
    session::SessionEnvironment,
};

/// Returns the routes of all client protocols, for the connections of one worker. `counters` count
/// the traffic of its WebSockets.
pub(crate) fn routes(
    worker: Arc<Worker>,
    shared: Arc<SessionEnvironment>,
    counters: Arc<Counters>,
    clients: Arc<LocalClients>,
) -> Router {
    let paths: BTreeSet<_> = protocol::dialects().map(|dialect| dialect.path).collect();
    let mut router = Router::new();
    for path in paths {
        router = router.route(path, methods(path));
    }
    let emulations = protocol::PROTOCOLS.iter();
    for endpoint in emulations.filter_map(|protocol| protocol.emulation.as_ref()) {
        let emulate = move |State(endpoints), admitted, headers, body| {
            commands::emulate(endpoint, endpoints, admitted, headers, body)
        };
        router = router.route(endpoint.path, post(emulate).options(cors::preflight));
    }
    router.with_state(Endpoints {
        worker,
        shared,
        counters,
        clients,
    })
}

/// Returns the handlers of the methods that the dialects of a path accept.
fn methods(path: &'static str) -> MethodRouter<Endpoints> {
    if websockets(path).next().is_some() {
        return any(move |admitted, query, headers, upgrade| {
            open_websocket(path, admitted, query, headers, upgrade)
        });
    }
    let mut methods = MethodRouter::new();
    if streams(path).any(|(dialect, _)| takes_get(dialect)) {
        methods = methods
            .get(move |admitted, query, headers| open_stream(path, admitted, query, headers, None));
    }
    if streams(path).any(|(dialect, _)| takes_post(dialect)) {
        methods = methods.post(move |admitted, query, headers, body| {
            open_stream(path, admitted, query, headers, Some(body))
        });
    }
    methods.options(cors::preflight)
}

/// Returns the dialects of a path that are on streams.
fn streams(
    path: &'static str,
) -> impl Iterator<Item = (&'static Dialect, &'static StreamTransport)> {
    let dialects = protocol::dialects().filter(move |dialect| dialect.path == path);
    dialects.filter_map(|dialect| match &dialect.transport {
        Transport::Stream(stream) => Some((dialect, stream)),
        Transport::WebSocket(_) => None,
    })
}

/// Returns the dialects of a path that are on WebSockets.
fn websockets(
    path: &'static str,
) -> impl Iterator<Item = (&'static Dialect, &'static WebSocketTransport)> {
    let dialects = protocol::dialects().filter(move |dialect| dialect.path == path);
    dialects.filter_map(|dialect| match &dialect.transport {
        Transport::Stream(_) => None,
        Transport::WebSocket(websocket) => Some((dialect, websocket)),
    })
}

fn takes_get(dialect: &Dialect) -> bool {
    match &dialect.session {
        SessionKind::Commands(commands) => commands.first_in_query.is_some(),
        SessionKind::Fixed(_) => true,
    }
}

fn takes_post(dialect: &Dialect) -> bool {
    match &dialect.session {
        SessionKind::Commands(commands) => commands.first_in_body,
        SessionKind::Fixed(_) => false,
    }
}

/// Serves a client on a WebSocket.
async fn open_websocket(
    path: &'static str,
    admitted: Admitted,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    // `Admitted` has already checked the origin.
    let mut upgrade = upgrade.with_origin_policy(OriginPolicy::DangerAny);
    let subprotocol = subprotocol(path, &upgrade);
    if let Some(subprotocol) = subprotocol {
        upgrade = upgrade.with_subprotocols(&[subprotocol]);
    }
    let opening = Opening {
        query: query.as_deref().unwrap_or_default(),
        headers: &headers,
        subprotocol,
    };
    let accepting = websockets(path).find(|(dialect, _)| (dialect.accepts)(&opening));
    let Some((dialect, websocket)) = accepting else {
        return not_accepted();
    };
    match &dialect.session {
        SessionKind::Commands(commands) => {
            commands::open_websocket(admitted, dialect, websocket, commands, upgrade)
        }
        SessionKind::Fixed(fixed) => {
            fixed::open_websocket(admitted, dialect, websocket, fixed, opening, upgrade).await
        }
    }
}

/// Returns the first subprotocol of a path that the client offers.
fn subprotocol(path: &'static str, upgrade: &WebSocketUpgrade) -> Option<&'static str> {
    let known = websockets(path).filter_map(|(_, websocket)| websocket.subprotocol);
    let known: Vec<_> = known.collect();
    if known.is_empty() {
        return None;
    }
    let handshake = upgrade.request().websocket().ok()?;
    handshake.choose_subprotocol(&known)
}

/// Serves a client on a stream, whose first commands, if any, are in the query or in `body`.
async fn open_stream(
    path: &'static str,
    admitted: Admitted,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Option<Body>,
) -> Response {
    let opening = Opening {
        query: query.as_deref().unwrap_or_default(),
        headers: &headers,
        subprotocol: None,
    };
    let takes_method = match body {
        Some(_) => takes_post,
        None => takes_get,
    };
    let mut candidates = streams(path).filter(|(dialect, _)| takes_method(dialect));
    let accepting = candidates.find(|(dialect, _)| (dialect.accepts)(&opening));
    let Some((dialect, stream)) = accepting else {
        return admitted.cors.allow(not_accepted());
    };
    match &dialect.session {
        SessionKind::Commands(commands) => {
            commands::open_stream(admitted, dialect, stream, commands, opening, body).await
        }
        SessionKind::Fixed(fixed) => {
            fixed::open_stream(admitted, dialect, stream, fixed, opening).await
        }
    }
}

fn not_accepted() -> Response {
    let text = "no client protocol of this path accepts the request";
    refusal(StatusCode::BAD_REQUEST, text)
}
