//! Clients that send commands: on a WebSocket, or in separate requests next to a stream.

use std::sync::Arc;

use axum::{
    body::{Body, to_bytes},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use linerate::{Options, axum::WebSocketUpgrade};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::{
    Admitted, ClientOutlet, DATA_BYTES_MAX, Endpoints,
    body::{body, head},
    connecting::{Connecting, ConnectingStage},
    drive::{EmulatedRuntime, SessionRuntime, StreamInput},
    local::{ConnectionOptions, Running},
    refusal,
    wire::{WebSocketWire, Wire},
};
use crate::{
    clock::now,
    node::EmulateError,
    protocol::{
        Dialect,
        dialect::{Commands, EmulationEndpoint, Opening, StreamTransport, WebSocketTransport},
    },
    server::{ConnectionGuard, continue_with},
    session::{Context, Session, Settings},
};

/// Serves a client on a WebSocket.
pub(super) fn open_websocket(
    admitted: Admitted,
    dialect: &'static Dialect,
    websocket: &'static WebSocketTransport,
    commands: (&'static Commands, Connecting),
    upgrade: WebSocketUpgrade,
) -> Response {
    let mut options = admitted.options();
    // The session sends pings in its own protocol.
    options.config.ping_interval = None;
    if admitted.is_upgrade {
        return open_local(admitted, dialect, commands, options, upgrade);
    }
    let deflate = options.deflate;
    upgrade
        .with_options(options)
        .on_upgrade(move |ws| async move {
            let (sender, receiver) = ws.split();
            let compressed = admitted.compressed();
            let wire = WebSocketWire::new(sender, websocket.farewell, deflate, compressed);
            let (runtime, _guard) = start(admitted, dialect, commands, wire, None);
            runtime.run(receiver).await;
            Ok(())
        })
}

/// Serves a client on a WebSocket whose connection becomes one of the reactor.
fn open_local(
    admitted: Admitted,
    dialect: &'static Dialect,
    commands: (&'static Commands, Connecting),
    options: Options,
    upgrade: WebSocketUpgrade,
) -> Response {
    let accounts = admitted.endpoints.worker.accounts();
    let connection = ConnectionOptions::new(&admitted.settings, accounts, true);
    upgrade
        .with_options(options)
        .on_stream_upgrade(move |upgrade| {
            let clients = admitted.endpoints.clients.clone();
            let wire = clients.wire(&dialect.transport);
            let key = wire.key();
            let (runtime, guard) = start(admitted, dialect, commands, wire, None);
            clients.open(key, upgrade, &connection, Running::Commands(runtime), guard);
        })
}

/// Serves a client on a stream. Its first commands are the body of the request, or a parameter.
pub(super) async fn open_stream(
    admitted: Admitted,
    dialect: &'static Dialect,
    transport: &'static StreamTransport,
    commands: &'static Commands,
    opening: Opening<'_>,
    body: Option<Body>,
) -> Response {
    if let Some(refused) = admitted.refuse_to_stay() {
        return refused;
    }
    let first = match body {
        Some(body) => read(body, &admitted.settings).await,
        None => find(commands, opening.query, &admitted.settings),
    };
    match first {
        Ok(first) if admitted.may_detach => {
            stream_locally(admitted, dialect, transport, commands, first)
        }
        Ok(first) => stream(admitted, dialect, transport, commands, &first),
        Err((status, text)) => admitted.cors.allow(refusal(status, &text)),
    }
}

/// Handles commands for a stream on any node of the cluster.
pub(super) async fn emulate(
    endpoint: &EmulationEndpoint,
    endpoints: Endpoints,
    admitted: Admitted,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let forwarded = forward(endpoint, &endpoints, &admitted.settings, &headers, body).await;
    let response = forwarded.unwrap_or_else(|refused| refused);
    admitted.cors.allow(response)
}

async fn forward(
    endpoint: &EmulationEndpoint,
    endpoints: &Endpoints,
    settings: &Settings,
    headers: &HeaderMap,
    body: Body,
) -> Result<Response, Response> {
    let body = read(body, settings)
        .await
        .map_err(|(status, text)| refusal(status, &text))?;
    let emulation = (endpoint.read)(headers, &body)
        .map_err(|error| refusal(StatusCode::BAD_REQUEST, &error.to_string()))?;
    let node = endpoints.worker.node();
    let emulated = node
        .all_nodes
        .emulate(&emulation.node, &emulation.session, emulation.frame.into())
        .await;
    match emulated {
        Ok(()) => Ok(StatusCode::NO_CONTENT.into_response()),
        Err(error @ EmulateError::Busy) => {
            Err(refusal(StatusCode::TOO_MANY_REQUESTS, &error.to_string()))
        }
        Err(error) => Err(refusal(StatusCode::NOT_FOUND, &error.to_string())),
    }
}

/// Starts a session that answers on a stream of the reactor, with the first commands already
/// received.
fn stream_locally(
    admitted: Admitted,
    dialect: &'static Dialect,
    transport: &'static StreamTransport,
    commands: &'static Commands,
    first: Bytes,
) -> Response {
    let mut response = admitted.cors.clone().allow(head(transport.content_type));
    continue_with(&mut response, move |detached| {
        let name = Uuid::new_v4();
        let emulation = admitted
            .endpoints
            .worker
            .node()
            .emulations
            .open(&name.to_string());
        let clients = admitted.endpoints.clients.clone();
        let wire = clients.wire(&dialect.transport);
        let key = wire.key();
        let commands = (commands, Connecting::later(&admitted, dialect));
        let (mut runtime, guard) = start(admitted, dialect, commands, wire, Some(name));
        runtime.handle_frame(&first);
        let session = Running::Emulated(Box::new(EmulatedRuntime { runtime, emulation }));
        clients.open_stream(key, detached, session, guard);
    });
    response
}

/// Starts a session that answers on a stream with its own task, with the first commands already
/// received.
fn stream(
    admitted: Admitted,
    dialect: &'static Dialect,
    transport: &'static StreamTransport,
    commands: &'static Commands,
    first: &[u8],
) -> Response {
    let name = Uuid::new_v4();
    let (still_there, gone) = oneshot::channel::<()>();
    let (wire, stream) = body(DATA_BYTES_MAX, transport.farewell, still_there);
    let cors = admitted.cors.clone();
    let emulations = &admitted.endpoints.worker.node().emulations;
    let input = StreamInput {
        emulation: emulations.open(&name.to_string()),
        gone,
    };
    let commands = (commands, Connecting::later(&admitted, dialect));
    let (mut runtime, guard) = start(admitted, dialect, commands, wire, Some(name));
    runtime.handle_frame(first);
    tokio::spawn(async move {
        runtime.run(input).await;
        drop(guard);
    });
    cors.allow(stream.into_response(transport.content_type))
}

/// Creates a session that answers on `wire`. Returns it with the connection's reservation.
pub(super) fn start(
    admitted: Admitted,
    dialect: &'static Dialect,
    (commands, connecting): (&'static Commands, Connecting),
    wire: impl Wire,
    name: Option<Uuid>,
) -> (Box<SessionRuntime>, Option<ConnectionGuard>) {
    let bytes_max = admitted.settings.config.client.queue_bytes_max;
    let gate = admitted.endpoints.gate(dialect);
    let worker = gate.worker.clone();
    let backlogs = &worker.accounts().backlogs;
    let outlet = ClientOutlet::new(wire, &dialect.gaps, bytes_max, backlogs);
    let outlet = Arc::new(outlet.tracked_for(&worker.node().webhooks));
    let context = Context {
        gate,
        outlet: outlet.clone(),
        connection: connecting.connection,
        headers: admitted.headers,
    };
    let mut session = Session::new(context, commands, name, now(), rand::random());
    session.greet();
    match connecting.stage {
        ConnectingStage::Later => {}
        ConnectingStage::Now(connect) => session.open(now(), connect),
        ConnectingStage::Authenticated(client) => session.open_authenticated(now(), client),
    }
    let runtime = SessionRuntime::new(session, outlet);
    (Box::new(runtime), admitted.guard)
}

/// Returns the commands in the query of a request.
fn find(
    commands: &Commands,
    query: &str,
    settings: &Settings,
) -> Result<Bytes, (StatusCode, String)> {
    let name = commands.first_in_query.unwrap_or_default();
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    let Some((_, first)) = pairs.find(|(key, _)| key == name) else {
        return Err((StatusCode::BAD_REQUEST, format!("{name} is missing")));
    };
    let bytes_max = settings.config.client.message_bytes_max;
    if first.len() > bytes_max {
        return Err(too_large(bytes_max));
    }
    Ok(first.into_owned().into())
}

/// Reads the commands in the body of a request.
async fn read(body: Body, settings: &Settings) -> Result<Bytes, (StatusCode, String)> {
    let bytes_max = settings.config.client.message_bytes_max;
    to_bytes(body, bytes_max)
        .await
        .map_err(|_| too_large(bytes_max))
}

fn too_large(bytes_max: usize) -> (StatusCode, String) {
    let text = format!("commands exceed the limit of {bytes_max} bytes");
    (StatusCode::PAYLOAD_TOO_LARGE, text)
}
