//! Clients that poll: requests in place of a WebSocket, which may later continue their sessions.
//!
//! | module | responsibility |
//! | --- | --- |
//! | `input` | what the session reads |
//! | `upgrade` | a WebSocket that continues a session |
//! | `wire` | output that waits for a poll, or goes to the WebSocket |

mod input;
mod upgrade;
mod wire;

use std::{sync::Arc, time::Duration};

use axum::{
    body::{Body, to_bytes},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use futures_util::{
    FutureExt,
    future::{BoxFuture, ready},
};
use http::header;
use tokio::time::timeout;
use uuid::Uuid;

use super::{Admitted, DATA_BYTES_MAX, commands, connecting::Connecting};
use crate::protocol::{
    dialect::{PollingEndpoint, SessionKind, Transport},
    polling::{Polled, PolledName, PollingOutcome, PollingRefusal, PollingRequest},
};
use input::PolledInput;
pub(super) use upgrade::upgrade;
use wire::{PolledLink, PolledWire};

/// How long the last output of a session that has ended waits for a poll. A client that is there
/// polls at once.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(5);

/// Serves a request that is not for a WebSocket.
pub(super) fn serve(
    endpoint: &'static PollingEndpoint,
    admitted: Admitted,
    request: PollingRequest,
    body: Body,
) -> BoxFuture<'static, Response> {
    let cors = admitted.cors.clone();
    // Each kind is boxed, because a future is as large as the largest of those that it may wait
    // for, and polls keep theirs.
    let response = match request {
        PollingRequest::Open => open(endpoint, admitted).boxed(),
        PollingRequest::Poll(name) => poll(endpoint, admitted, name).boxed(),
        PollingRequest::Send(name) => send(endpoint, admitted, name, body).boxed(),
        PollingRequest::WebSocket(_) => ready(refuse(endpoint, PollingRefusal::BadRequest)).boxed(),
    };
    response.map(|response| cors.allow(response)).boxed()
}

/// Returns the response to a request that is refused.
pub(super) fn refuse(endpoint: &PollingEndpoint, refusal: PollingRefusal) -> Response {
    respond(endpoint, PollingOutcome::Refused(refusal))
}

/// Opens a session, and returns its first output.
async fn open(endpoint: &'static PollingEndpoint, admitted: Admitted) -> Response {
    let dialect = endpoint.dialect;
    let (SessionKind::Commands(commands), Transport::WebSocket(transport)) =
        (&dialect.session, &dialect.transport)
    else {
        return refuse(endpoint, PollingRefusal::BadRequest);
    };
    let place = match admitted.guard.as_ref().map(|guard| guard.apart()) {
        Some(Err(full)) => return full.into_response(),
        place => place.and_then(Result::ok),
    };
    let name = Uuid::new_v4();
    let worker = &admitted.endpoints.worker;
    let node = worker.node().clone();
    let entry = node.polled.open(name, DATA_BYTES_MAX, worker.accounts());
    let session = entry.session().clone();
    let link = Arc::new(PolledLink::new(session.clone(), transport, &admitted));
    let connection = admitted.connection_named(dialect, &endpoint.name);
    let wire = PolledWire(link.clone());
    let commands = (commands, Connecting::Later);
    let (runtime, _) =
        commands::start_as(admitted, dialect, connection, commands, wire, Some(name));
    let mut input = PolledInput::new(endpoint, link, place);
    tokio::spawn(async move {
        runtime.run(&mut input).await;
        // The session keeps its place for as long as its client has something to fetch.
        _ = timeout(FAREWELL_TIMEOUT, entry.session().gone()).await;
        drop((input, entry));
    });
    fetched(endpoint, session.poll(None).await)
}

/// Fetches the output of a session.
fn poll(
    endpoint: &'static PollingEndpoint,
    admitted: Admitted,
    name: PolledName,
) -> impl Future<Output = Response> + use<> {
    if let Some(long) = &admitted.long {
        long.begin();
    }
    // The rest of the request is dropped before the poll waits.
    let node = admitted.endpoints.worker.node().clone();
    async move { fetched(endpoint, node.all_nodes.poll(&name).await) }
}

/// Delivers messages to a session.
async fn send(
    endpoint: &'static PollingEndpoint,
    admitted: Admitted,
    name: PolledName,
    body: Body,
) -> Response {
    let bytes_max = admitted.settings.config.client.message_bytes_max;
    let Ok(body) = to_bytes(body, bytes_max).await else {
        return refuse(endpoint, PollingRefusal::TooLarge { bytes_max });
    };
    if let Some(long) = &admitted.long {
        long.begin();
    }
    let node = admitted.endpoints.worker.node();
    match node.all_nodes.send(&name, body).await {
        Ok(()) => respond(endpoint, PollingOutcome::Sent),
        Err(refusal) => refuse(endpoint, refusal),
    }
}

fn fetched(endpoint: &PollingEndpoint, polled: Result<Polled, PollingRefusal>) -> Response {
    match polled {
        Ok(polled) => respond(endpoint, PollingOutcome::Polled(&polled)),
        Err(refusal) => refuse(endpoint, refusal),
    }
}

fn respond(endpoint: &PollingEndpoint, outcome: PollingOutcome<'_>) -> Response {
    let response = (endpoint.respond)(outcome);
    let status = StatusCode::from_u16(response.status);
    let headers = [
        (header::CONTENT_TYPE, response.content_type),
        (header::CACHE_CONTROL, "no-store"),
    ];
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, headers, response.body).into_response()
}
