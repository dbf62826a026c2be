//! The routes of all client protocols: finds the dialect that a request asks for. In `polls` are
//! those of clients that poll.

mod polls;

use std::{collections::BTreeSet, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::{RawQuery, State},
    http::{HeaderMap, StatusCode, Uri},
    response::{IntoResponse, Response},
    routing::{MethodRouter, any, post},
};
use linerate::{Counters, axum::WebSocketUpgrade, handshake::OriginPolicy};

use super::{
    Admitted, Endpoints, LocalClients, commands, connecting::Connecting, cors, fixed, refusal,
};
use crate::{
    config::ProtocolOptions,
    node::Worker,
    protocol::{
        self, Dialect,
        dialect::{Opening, Protocol, SessionKind, Transport},
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
    // WebSockets on the path of polls are distinguished from them by their requests.
    let is_polled = |path: &&str| polls::endpoints().any(|(_, endpoint)| endpoint.path == *path);
    let paths: BTreeSet<_> = protocol::dialects().map(|dialect| dialect.path).collect();
    let paths = paths.into_iter().filter(|path| !is_polled(path));
    let mut router = Router::new();
    for path in paths {
        router = router.route(path, methods(path));
    }
    for (protocol, endpoint) in polls::endpoints() {
        router = router.route(endpoint.path, polls::methods(protocol, endpoint));
    }
    let emulations = protocol::PROTOCOLS.iter();
    let emulations =
        emulations.filter_map(|protocol| Some((protocol, protocol.emulation.as_ref()?)));
    for (protocol, endpoint) in emulations {
        let emulate = async move |State(endpoints), admitted: Admitted, headers, body| {
            if !(protocol.switch.is_on)(&admitted.settings.config.protocols) {
                let unserved = Unserved::SwitchedOff(protocol.switch.key);
                return admitted.cors.allow(unserved.into_response());
            }
            commands::emulate(endpoint, endpoints, admitted, headers, body).await
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
    let is_websocket = |dialect: &Dialect| matches!(dialect.transport, Transport::WebSocket(_));
    if offered(path).any(|(_, dialect)| is_websocket(dialect)) {
        return any(move |admitted, url, headers, upgrade| {
            open_websocket(path, admitted, url, headers, upgrade)
        });
    }
    let mut methods = MethodRouter::new();
    if streams(path).any(takes_get) {
        methods = methods
            .get(move |admitted, query, headers| open_stream(path, admitted, query, headers, None));
    }
    if streams(path).any(takes_post) {
        methods = methods.post(move |admitted, query, headers, body| {
            open_stream(path, admitted, query, headers, Some(body))
        });
    }
    methods.options(cors::preflight)
}

/// Returns the dialects of a path, with their protocols.
fn offered(path: &'static str) -> impl Iterator<Item = (&'static Protocol, &'static Dialect)> {
    let protocols = protocol::PROTOCOLS.iter();
    let dialects = protocols.flat_map(|protocol| {
        protocol
            .dialects
            .iter()
            .map(|dialect| (*protocol, *dialect))
    });
    dialects.filter(move |(_, dialect)| dialect.path == path)
}

/// Returns the dialects of a path that are on streams.
fn streams(path: &'static str) -> impl Iterator<Item = &'static Dialect> {
    let is_stream = |dialect: &&Dialect| matches!(dialect.transport, Transport::Stream(_));
    offered(path).map(|(_, dialect)| dialect).filter(is_stream)
}

/// Returns the subprotocols of a path, with their protocols.
fn subprotocols(path: &'static str) -> impl Iterator<Item = (&'static Protocol, &'static str)> {
    offered(path).filter_map(|(protocol, dialect)| match &dialect.transport {
        Transport::Stream(_) => None,
        Transport::WebSocket(websocket) => Some((protocol, websocket.subprotocol?)),
    })
}

/// Returns the first dialect of a path that accepts a request and is available. `takes_method`
/// returns whether a dialect accepts the method of the request.
///
/// # Errors
/// No dialect accepts the request, or all that do are switched off.
fn choose(
    path: &'static str,
    opening: &Opening<'_>,
    options: &ProtocolOptions,
    takes_method: impl Fn(&Dialect) -> bool,
) -> Result<&'static Dialect, Unserved> {
    let accepts = |dialect: &Dialect| takes_method(dialect) && (dialect.accepts)(opening);
    let mut accepting = offered(path)
        .filter(|(_, dialect)| accepts(dialect))
        .peekable();
    let Some((first, _)) = accepting.peek().copied() else {
        return Err(Unserved::NotAccepted);
    };
    let on = accepting.find(|(protocol, _)| (protocol.switch.is_on)(options));
    on.map(|(_, dialect)| dialect)
        .ok_or(Unserved::SwitchedOff(first.switch.key))
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
    url: Uri,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    // `Admitted` has already checked the origin.
    let mut upgrade = upgrade.with_origin_policy(OriginPolicy::DangerAny);
    let options = &admitted.settings.config.protocols;
    let subprotocol = match subprotocol(path, &upgrade, options) {
        Ok(subprotocol) => subprotocol,
        Err(unserved) => return unserved.into_response(),
    };
    if let Some(subprotocol) = subprotocol {
        upgrade = upgrade.with_subprotocols(&[subprotocol]);
    }
    let opening = Opening {
        path: url.path(),
        query: url.query().unwrap_or_default(),
        headers: &headers,
        subprotocol,
    };
    let dialect = match choose(path, &opening, options, |_| true) {
        Ok(dialect) => dialect,
        Err(unserved) => return unserved.into_response(),
    };
    let Transport::WebSocket(websocket) = &dialect.transport else {
        return Unserved::NotAccepted.into_response();
    };
    match &dialect.session {
        SessionKind::Commands(commands) => {
            let connecting = Connecting::of(&admitted, (dialect, &dialect.name), &opening).await;
            match connecting {
                Ok(connecting) => {
                    let commands = (commands, connecting);
                    commands::open_websocket(admitted, dialect, websocket, commands, upgrade)
                }
                Err(refusal) => refusal.into_response(),
            }
        }
        SessionKind::Fixed(fixed) => {
            fixed::open_websocket(admitted, dialect, websocket, fixed, opening, upgrade).await
        }
    }
}

/// Returns the first available subprotocol of a path that the client offers.
///
/// # Errors
/// All that the client offers are switched off.
fn subprotocol(
    path: &'static str,
    upgrade: &WebSocketUpgrade,
    options: &ProtocolOptions,
) -> Result<Option<&'static str>, Unserved> {
    let (on, off): (Vec<_>, Vec<_>) =
        subprotocols(path).partition(|(protocol, _)| (protocol.switch.is_on)(options));
    let Ok(handshake) = upgrade.request().websocket() else {
        return Ok(None);
    };
    let names: Vec<_> = on.into_iter().map(|(_, name)| name).collect();
    if let Some(chosen) = handshake.choose_subprotocol(&names) {
        return Ok(Some(chosen));
    }
    let is_offered = |name| handshake.choose_subprotocol(&[name]).is_some();
    match off.into_iter().find(|(_, name)| is_offered(*name)) {
        Some((protocol, _)) => Err(Unserved::SwitchedOff(protocol.switch.key)),
        None => Ok(None),
    }
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
        path,
        query: query.as_deref().unwrap_or_default(),
        headers: &headers,
        subprotocol: None,
    };
    let takes_method = match body {
        Some(_) => takes_post,
        None => takes_get,
    };
    let options = &admitted.settings.config.protocols;
    let dialect = match choose(path, &opening, options, takes_method) {
        Ok(dialect) => dialect,
        Err(unserved) => return admitted.cors.allow(unserved.into_response()),
    };
    let Transport::Stream(stream) = &dialect.transport else {
        return admitted.cors.allow(Unserved::NotAccepted.into_response());
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

/// Why no client protocol of a path serves a request.
#[derive(Clone, Copy, Debug)]
enum Unserved {
    NotAccepted,
    /// The protocol with this setting is switched off.
    SwitchedOff(&'static str),
}

impl IntoResponse for Unserved {
    fn into_response(self) -> Response {
        match self {
            Self::NotAccepted => {
                let text = "no client protocol of this path accepts the request";
                refusal(StatusCode::BAD_REQUEST, text)
            }
            Self::SwitchedOff(key) => {
                let text = format!("this client protocol is switched off ({key} = false)");
                refusal(StatusCode::NOT_FOUND, &text)
            }
        }
    }
}
