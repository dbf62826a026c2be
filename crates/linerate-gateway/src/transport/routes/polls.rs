//! The routes of clients that poll. WebSockets of their protocols have the same paths.

use axum::{
    body::Body,
    http::{HeaderMap, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
    routing::{MethodRouter, any},
};
use futures_util::{
    FutureExt,
    future::{BoxFuture, ready},
};
use linerate::{
    axum::{HandshakeRejection, WebSocketUpgrade},
    handshake::OriginPolicy,
};

use super::{
    super::{Admitted, Endpoints, cors, polling},
    Unserved, open_websocket,
};
use crate::protocol::{
    self,
    dialect::{Opening, PollingEndpoint, Protocol},
    polling::{PolledName, PollingRefusal, PollingRequest},
};

/// Returns the endpoints of clients that poll, with their protocols.
pub(super) fn endpoints() -> impl Iterator<Item = (&'static Protocol, &'static PollingEndpoint)> {
    let protocols = protocol::PROTOCOLS.iter();
    protocols.filter_map(|protocol| Some((*protocol, protocol.polling?)))
}

/// Returns the handlers of the methods of an endpoint for clients that poll.
pub(super) fn methods(
    protocol: &'static Protocol,
    endpoint: &'static PollingEndpoint,
) -> MethodRouter<Endpoints> {
    // Not asynchronous, because a poll that waits would keep a place for all of this.
    let serve = move |admitted: Result<Admitted, Response>,
                      (method, url, headers): (Method, Uri, HeaderMap),
                      upgrade: Result<WebSocketUpgrade, HandshakeRejection>,
                      body: Body| {
        let opening = Opening {
            path: url.path(),
            query: url.query().unwrap_or_default(),
            headers: &headers,
            subprotocol: None,
        };
        let read = (endpoint.read)(&method, &opening);
        match admit((protocol, endpoint), admitted, read) {
            Err(response) => response,
            Ok((admitted, PollingRequest::WebSocket(session))) => {
                open(endpoint, admitted, (session, url, headers), upgrade)
            }
            Ok((admitted, request)) => {
                polling::serve(endpoint, admitted, request, (url, headers, body))
            }
        }
    };
    any(serve).options(cors::preflight)
}

/// Returns what a request to an endpoint for clients that poll is for, or the response if it is
/// refused.
fn admit(
    (protocol, endpoint): (&Protocol, &PollingEndpoint),
    admitted: Result<Admitted, Response>,
    read: Result<PollingRequest, PollingRefusal>,
) -> Result<(Admitted, PollingRequest), BoxFuture<'static, Response>> {
    let refuse = |response| ready(response).boxed();
    let admitted = admitted.map_err(|refused| match refused.status() {
        StatusCode::FORBIDDEN => refuse(polling::refuse(endpoint, PollingRefusal::Forbidden)),
        _ => refuse(refused),
    })?;
    if !(protocol.switch.is_on)(&admitted.settings.config.protocols) {
        let unserved = Unserved::SwitchedOff(protocol.switch.key);
        return Err(refuse(admitted.cors.allow(unserved.into_response())));
    }
    match read {
        Ok(request) => Ok((admitted, request)),
        Err(refusal) => {
            let refused = polling::refuse(endpoint, refusal);
            Err(refuse(admitted.cors.allow(refused)))
        }
    }
}

/// Opens a WebSocket on the path of clients that poll: for a new session, or to continue one.
fn open(
    endpoint: &'static PollingEndpoint,
    admitted: Admitted,
    (session, url, headers): (Option<PolledName>, Uri, HeaderMap),
    upgrade: Result<WebSocketUpgrade, HandshakeRejection>,
) -> BoxFuture<'static, Response> {
    let upgrade = match upgrade {
        // `Admitted` has already checked the origin.
        Ok(upgrade) => upgrade.with_origin_policy(OriginPolicy::DangerAny),
        Err(rejection) => {
            let response = match headers.contains_key(header::UPGRADE) {
                true => rejection.into_response(),
                false => polling::refuse(endpoint, PollingRefusal::BadRequest),
            };
            return ready(admitted.cors.allow(response)).boxed();
        }
    };
    match session {
        Some(name) => ready(polling::upgrade(endpoint, admitted, &name, upgrade)).boxed(),
        None => open_websocket(endpoint.path, admitted, url, headers, upgrade).boxed(),
    }
}
