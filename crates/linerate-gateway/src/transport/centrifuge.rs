//! Clients that send commands: Centrifuge on all its transports, and the native protocol.

use std::sync::Arc;

use axum::{
    body::{Body, to_bytes},
    extract::{RawQuery, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use linerate::{OriginPolicy, WebSocket, axum::WebSocketUpgrade};
use tokio::sync::oneshot;

use super::{
    Admitted, ClientOutlet, DATA_BYTES_MAX, Endpoints,
    body::{BodyWire, Farewell, body},
    drive::{StreamInput, Track, now},
    outlet::GapNotice,
    refusal,
    wire::{WebSocketWire, Wire},
};
use crate::{
    node::EmulateError,
    protocol::{
        Encoding,
        centrifuge::{
            Disconnect, Format, Framing, PROTOBUF_SUBPROTOCOL, Push, ServerMessage,
            decode_emulation, encode,
        },
        native,
    },
    session::{Context, Session, Settings},
};

/// The supported WebSocket subprotocols, best first.
const SUBPROTOCOLS: [&str; 3] = [native::SUBPROTOCOL, PROTOBUF_SUBPROTOCOL, "centrifuge-json"];

/// The format, framing and encoding that a client uses.
#[derive(Clone, Copy, Debug)]
struct Dialect {
    format: Format,
    framing: Framing,
    encoding: Encoding,
}

impl Dialect {
    fn of_websocket(subprotocol: Option<&str>, query: Option<&str>) -> Self {
        if subprotocol == Some(native::SUBPROTOCOL) {
            return Self {
                format: Format::Json,
                framing: Framing::Native,
                encoding: Encoding::Native,
            };
        }
        let asks_protobuf = |query: &str| {
            url::form_urlencoded::parse(query.as_bytes()).any(|(key, value)| {
                matches!(&*key, "cf_protocol" | "format") && value == "protobuf"
            })
        };
        let is_protobuf =
            subprotocol == Some(PROTOBUF_SUBPROTOCOL) || query.is_some_and(asks_protobuf);
        let format = match is_protobuf {
            true => Format::Protobuf,
            false => Format::Json,
        };
        Self {
            format,
            framing: Framing::WebSocket(format),
            encoding: Encoding::CentrifugeWebSocket(format),
        }
    }

    const fn of_http_stream(format: Format) -> Self {
        Self {
            format,
            framing: Framing::HttpStream(format),
            encoding: Encoding::CentrifugeHttpStream(format),
        }
    }

    const fn of_event_stream() -> Self {
        Self {
            format: Format::Json,
            framing: Framing::EventStream,
            encoding: Encoding::CentrifugeEventStream,
        }
    }

    /// Returns the function that encodes the disconnect for a client whose stream has no Close
    /// frame.
    const fn farewell(self) -> Farewell {
        match self.framing {
            Framing::HttpStream(Format::Json) => {
                |disconnect| farewell(Framing::HttpStream(Format::Json), disconnect)
            }
            Framing::HttpStream(Format::Protobuf) => {
                |disconnect| farewell(Framing::HttpStream(Format::Protobuf), disconnect)
            }
            _ => |disconnect| farewell(Framing::EventStream, disconnect),
        }
    }
}

fn farewell(framing: Framing, disconnect: &Disconnect) -> Option<Bytes> {
    let push = ServerMessage::Push(Push::Disconnect(disconnect.clone()));
    let mut bytes = Vec::new();
    let encoded = encode(framing, &[push], &mut bytes);
    encoded.ok().map(|()| bytes.into())
}

/// Handles `/connection/websocket`.
pub(super) async fn websocket(
    admitted: Admitted,
    RawQuery(query): RawQuery,
    upgrade: WebSocketUpgrade,
) -> Response {
    let mut options = admitted.options();
    // The session sends pings in its own protocol.
    options.config.ping_interval = None;
    upgrade
        .with_options(options)
        .with_subprotocols(&SUBPROTOCOLS)
        // `Admitted` has already checked the origin.
        .with_origin_policy(OriginPolicy::DangerAny)
        .on_upgrade(|ws| async move {
            run_websocket(admitted, query, ws).await;
            Ok(())
        })
}

async fn run_websocket(admitted: Admitted, query: Option<String>, ws: WebSocket) {
    let dialect = Dialect::of_websocket(ws.subprotocol().as_deref(), query.as_deref());
    let (sender, receiver) = ws.split();
    let deflate = admitted.settings.config.compression.deflate();
    let wire = WebSocketWire::new(sender, deflate, admitted.compressed());
    let (track, session) = start(admitted, dialect, wire, String::new());
    track.run(session, receiver).await;
}

/// Handles `POST /connection/http_stream`.
pub(super) async fn http_stream(admitted: Admitted, headers: HeaderMap, body: Body) -> Response {
    let dialect = Dialect::of_http_stream(format_of(&headers));
    if let Some(refused) = admitted.refuse_to_stay() {
        return refused;
    }
    match read(body, &admitted.settings).await {
        Ok(commands) => stream(admitted, dialect, commands),
        Err(refused) => admitted.cors.allow(refused),
    }
}

/// Handles `GET /connection/sse`, whose first commands are in the URL.
pub(super) async fn event_stream(admitted: Admitted, RawQuery(query): RawQuery) -> Response {
    if let Some(refused) = admitted.refuse_to_stay() {
        return refused;
    }
    let query = query.unwrap_or_default();
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    let Some((_, commands)) = pairs.find(|(key, _)| key == "cf_connect") else {
        let refused = refusal(StatusCode::BAD_REQUEST, "cf_connect is missing");
        return admitted.cors.allow(refused);
    };
    let commands = commands.into_owned().into_bytes();
    let bytes_max = admitted.settings.config.client.message_bytes_max;
    if commands.len() > bytes_max {
        return admitted.cors.allow(too_large(bytes_max));
    }
    stream(admitted, Dialect::of_event_stream(), commands.into())
}

/// Handles `POST /connection/sse`.
pub(super) async fn event_stream_by_post(admitted: Admitted, body: Body) -> Response {
    if let Some(refused) = admitted.refuse_to_stay() {
        return refused;
    }
    match read(body, &admitted.settings).await {
        Ok(commands) => stream(admitted, Dialect::of_event_stream(), commands),
        Err(refused) => admitted.cors.allow(refused),
    }
}

/// Handles `POST /emulation`: commands for a stream on any node of the cluster.
pub(super) async fn emulation(
    State(endpoints): State<Endpoints>,
    admitted: Admitted,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let forwarded = forward(&endpoints, &admitted.settings, &headers, body).await;
    let response = forwarded.unwrap_or_else(|refused| refused);
    admitted.cors.allow(response)
}

async fn forward(
    endpoints: &Endpoints,
    settings: &Settings,
    headers: &HeaderMap,
    body: Body,
) -> Result<Response, Response> {
    let body = read(body, settings).await?;
    let emulation = decode_emulation(format_of(headers), &body)
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

/// Starts a session that answers on a stream, with the first commands already received.
fn stream(admitted: Admitted, dialect: Dialect, commands: Bytes) -> Response {
    let name = uuid::Uuid::new_v4().to_string();
    let (still_there, gone) = oneshot::channel::<()>();
    let (wire, stream) = body(DATA_BYTES_MAX, dialect.farewell(), still_there);
    let cors = admitted.cors.clone();
    let emulations = &admitted.endpoints.worker.node().emulations;
    let input = StreamInput {
        emulation: emulations.open(&name),
        gone,
    };
    start_stream(admitted, dialect, wire, name, commands, input);
    cors.allow((stream_headers(dialect.framing), Body::from_stream(stream)).into_response())
}

fn start_stream(
    admitted: Admitted,
    dialect: Dialect,
    wire: BodyWire,
    name: String,
    commands: Bytes,
    input: StreamInput,
) {
    let (track, mut session) = start(admitted, dialect, wire, name);
    session.handle_frame(now(), &commands);
    tokio::spawn(track.run(session, input));
}

fn start(admitted: Admitted, dialect: Dialect, wire: impl Wire, name: String) -> (Track, Session) {
    let connection = admitted.connection(dialect.encoding);
    let gap_notice = match dialect.encoding {
        Encoding::Native => GapNotice::Native,
        _ => GapNotice::None,
    };
    let bytes_max = admitted.settings.config.client.queue_bytes_max;
    let gate = admitted.endpoints.gate(dialect.encoding);
    let backlogs = &gate.worker.accounts().backlogs;
    let outlet = Arc::new(ClientOutlet::new(wire, gap_notice, bytes_max, backlogs));
    let track = Track {
        worker: gate.worker.clone(),
        outlet: outlet.clone(),
        framing: dialect.framing,
        registration: Some(gate.worker.node().budget.register(&outlet)),
        _visit: admitted.visit,
    };
    let context = Context {
        gate,
        outlet,
        connection,
    };
    (track, Session::new(context, dialect.format, name, now()))
}

fn format_of(headers: &HeaderMap) -> Format {
    let content_type = headers.get(header::CONTENT_TYPE);
    let is_protobuf =
        |value: &HeaderValue| value.as_bytes().starts_with(b"application/octet-stream");
    match content_type.is_some_and(is_protobuf) {
        true => Format::Protobuf,
        false => Format::Json,
    }
}

/// Reads the commands in the body of a request.
async fn read(body: Body, settings: &Settings) -> Result<Bytes, Response> {
    let bytes_max = settings.config.client.message_bytes_max;
    to_bytes(body, bytes_max)
        .await
        .map_err(|_| too_large(bytes_max))
}

fn too_large(bytes_max: usize) -> Response {
    let text = format!("commands exceed the limit of {bytes_max} bytes");
    refusal(StatusCode::PAYLOAD_TOO_LARGE, &text)
}

/// Returns the headers of a streaming response.
fn stream_headers(framing: Framing) -> [(header::HeaderName, &'static str); 3] {
    let content_type = match framing {
        Framing::EventStream => "text/event-stream",
        Framing::HttpStream(Format::Protobuf) => "application/octet-stream",
        _ => "application/json",
    };
    [
        (header::CONTENT_TYPE, content_type),
        (header::CACHE_CONTROL, "no-store, no-transform"),
        // Otherwise nginx would buffer the response.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ]
}
