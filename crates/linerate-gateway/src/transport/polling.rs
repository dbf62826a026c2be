//! Clients that poll: requests in place of a WebSocket, which may later continue their sessions.
//!
//! | module | responsibility |
//! | --- | --- |
//! | `input` | what the session reads |
//! | `parts` | the body of a request, in parts |
//! | `upgrade` | a WebSocket that continues a session |
//! | `wire` | output that waits for a poll, or goes to the WebSocket |

mod input;
mod parts;
mod upgrade;
mod wire;

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    http::{HeaderMap, StatusCode, Uri},
    response::{IntoResponse, Response},
};
use futures_util::{
    FutureExt,
    future::{BoxFuture, ready},
};
use http::header;
use tokio::time::timeout;
use uuid::Uuid;

use super::{Admitted, commands, connecting::Connecting};
use crate::{
    node::PollLimits,
    protocol::{
        dialect::{Opening, PollingEndpoint, SessionKind, Transport},
        polling::{PollEnd, Polled, PolledName, PollingOutcome, PollingRefusal, PollingRequest},
    },
};
use input::PolledInput;
use parts::Parts;
pub(super) use upgrade::upgrade;
use wire::{PolledLink, PolledWire};

/// The number of bytes of output that wait for a poll, from which on nothing more is accepted. More
/// than on a WebSocket, because each poll costs a request and a response, whatever it fetches.
pub(crate) const POLL_BYTES_MAX: usize = 256 << 10;

/// How long the last output of a session that has ended waits for a poll. A client that is there
/// polls at once.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a client may be silent, as a multiple of how long a poll waits. A client that is there
/// polls again at once, but its last request may never have arrived.
const SILENCE_PER_HOLD: f32 = 1.5;

/// Serves a request that is not for a WebSocket.
pub(super) fn serve(
    endpoint: &'static PollingEndpoint,
    admitted: Admitted,
    request: PollingRequest,
    (url, headers, body): (Uri, HeaderMap, Body),
) -> BoxFuture<'static, Response> {
    let cors = admitted.cors.clone();
    // Each kind is boxed, because a future is as large as the largest of those that it may wait
    // for, and polls keep theirs.
    let response = match request {
        PollingRequest::Open => open(endpoint, admitted, url, headers).boxed(),
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

/// Opens a session, and returns its first output if the server speaks first.
async fn open(
    endpoint: &'static PollingEndpoint,
    admitted: Admitted,
    url: Uri,
    headers: HeaderMap,
) -> Response {
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
    let opening = Opening {
        path: url.path(),
        query: url.query().unwrap_or_default(),
        headers: &headers,
        subprotocol: None,
    };
    let connecting = Connecting::of(&admitted, (dialect, &endpoint.name), &opening).await;
    let connecting = match connecting {
        Ok(connecting) => connecting,
        Err(refusal) => return respond(endpoint, PollingOutcome::Denied(&refusal)),
    };
    let worker = &admitted.endpoints.worker;
    let node = worker.node().clone();
    let name = PolledName {
        node: node.status.id().to_owned(),
        session: Uuid::new_v4(),
    };
    let limits = PollLimits {
        bytes_max: POLL_BYTES_MAX,
        hold: hold(endpoint, &admitted),
    };
    let entry = node.polled.open(name.session, limits, worker.accounts());
    let session = entry.session().clone();
    let link = Arc::new(PolledLink::new(session.clone(), transport, &admitted));
    let wire = PolledWire(link.clone());
    let is_greeted = commands.greeting.is_some();
    let commands = (commands, connecting);
    let (mut runtime, _) = commands::start(admitted, dialect, commands, wire, Some(name.session));
    if let Some(hold) = limits.hold {
        runtime.limit_silence(hold.mul_f32(SILENCE_PER_HOLD));
    }
    let mut input = PolledInput::new(endpoint, link, place);
    tokio::spawn(async move {
        runtime.run(&mut input).await;
        // The session keeps its place for as long as its client has something to fetch.
        _ = timeout(FAREWELL_TIMEOUT, entry.session().gone()).await;
        drop((input, entry));
    });
    let first = match is_greeted {
        true => session.poll(None).await,
        false => Ok(Polled::new(Vec::new(), PollEnd::Idle)),
    };
    match first {
        Ok(first) => respond(endpoint, PollingOutcome::Opened(&name, &first)),
        Err(refusal) => refuse(endpoint, refusal),
    }
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
    let hold = hold(endpoint, &admitted);
    async move {
        match node.all_nodes.poll(&name, hold).await {
            Ok(polled) => respond(endpoint, PollingOutcome::Polled(&name, &polled)),
            Err(refusal) => refuse(endpoint, refusal),
        }
    }
}

/// Returns how long a poll may wait, if the protocol limits it.
fn hold(endpoint: &PollingEndpoint, admitted: &Admitted) -> Option<Duration> {
    endpoint.hold.map(|hold| hold(&admitted.settings.config))
}

/// Delivers messages to a session.
async fn send(
    endpoint: &'static PollingEndpoint,
    admitted: Admitted,
    name: PolledName,
    body: Body,
) -> Response {
    let node = admitted.endpoints.worker.node();
    let bytes_max = admitted.settings.config.client.message_bytes_max;
    let mut parts = Parts::new(body, endpoint.limit, bytes_max);
    let deliver = async {
        while let Some(part) = parts.next().await? {
            if let Some(long) = &admitted.long {
                long.begin();
            }
            node.all_nodes.send(&name, part).await?;
        }
        Ok(())
    };
    match deliver.await {
        Ok(()) => respond(endpoint, PollingOutcome::Sent),
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
