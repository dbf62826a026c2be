//! Transports to clients: WebSocket, HTTP streaming and event streams, all with the same session.
//!
//! | module | responsibility |
//! | --- | --- |
//! | `body` | a streaming HTTP response body |
//! | `commands` | clients that send commands |
//! | `connecting` | how requests connect clients that send commands |
//! | `cors` | response headers for pages of other origins |
//! | `drive` | runs a session: input, work, events, deadlines, flow control |
//! | `fixed` | clients whose subscriptions are in the URL |
//! | `local` | clients whose connections are on the reactor |
//! | `outlet` | data, replies and events of one client |
//! | `polling` | clients that poll |
//! | `portable` | clients that another process continues |
//! | `routes` | the routes of all client protocols |
//! | `running` | a running session of a client that sends no commands |
//! | `wire` | writes bytes to one client |

mod body;
mod commands;
mod connecting;
mod cors;
mod drive;
mod fixed;
mod local;
mod outlet;
mod polling;
mod portable;
mod routes;
mod running;
mod wire;

use std::{sync::Arc, time::SystemTime};

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, Method, StatusCode, Version, header, request::Parts},
    response::{IntoResponse, Response},
};
use linerate::{Counters, Options, handshake::Scheme};
use linerate_budget::Account;

use crate::{
    backend::ForwardedHeaders,
    clock::{milliseconds, now},
    log_limiter::LogLimiter,
    node::{Connection, Worker, client_with_id, new_client},
    protocol::{Dialect, codes::Refusal, dialect::DialectName},
    server::{ConnectionGuard, Detacher, LongRequest, Peer},
    session::{Gate, SessionEnvironment, Settings},
};
pub(crate) use local::LocalClients;
#[cfg(unix)]
pub(crate) use local::{MovedClient, MovedConnection, SESSION_BYTES_MAX};
pub(crate) use outlet::ClientOutlet;
#[cfg(unix)]
pub(crate) use portable::PortableClient;
pub(crate) use routes::routes;
#[cfg(test)]
pub(crate) use {
    drive::{CommandFrame, Input, SessionRuntime},
    wire::Wire,
};

/// The maximum number of data bytes queued for a socket. Further data stays in the channels' rings,
/// where it can be conflated.
pub(crate) const DATA_BYTES_MAX: usize = 64 << 10;

/// What the request handlers of a worker need.
#[derive(Clone, Debug)]
pub(crate) struct Endpoints {
    worker: Arc<Worker>,
    shared: Arc<SessionEnvironment>,
    counters: Arc<Counters>,
    clients: Arc<LocalClients>,
}

impl Endpoints {
    fn gate(&self, dialect: &'static Dialect) -> Arc<Gate> {
        self.clients.gate(dialect)
    }
}

/// An admitted request: who sent it, and the settings that apply to it.
#[derive(Debug)]
pub(crate) struct Admitted {
    endpoints: Endpoints,
    settings: Arc<Settings>,
    peer: Option<Peer>,
    agent: String,
    /// The headers that are forwarded to backends.
    headers: Option<Arc<ForwardedHeaders>>,
    cors: cors::Cors,
    /// The connection's reservation, held for the lifetime of the session.
    guard: Option<ConnectionGuard>,
    /// Lets the response take as long as a streaming one.
    long: Option<LongRequest>,
    /// True if a WebSocket has a connection of its own, which the reactor can continue.
    is_upgrade: bool,
    /// True if the reactor can continue the connection to stream the response.
    may_detach: bool,
}

impl Admitted {
    /// Returns the options that all WebSockets share.
    fn options(&self) -> Options {
        let mut options = Options::default();
        options.deflate = self.settings.config.deflate();
        let bytes_max = self.settings.config.client.message_bytes_max;
        options.config.limits.message_bytes_max = bytes_max as u64;
        options.send_queue_bytes_max = DATA_BYTES_MAX;
        options.counters = Some(self.endpoints.counters.clone());
        options.accounts = self.endpoints.worker.accounts().connections();
        options
    }

    /// Returns the account that compressed blocks are charged to.
    fn compressed(&self) -> Account {
        self.endpoints.worker.accounts().blocks.clone()
    }

    /// Reserves a place for a session that is about to begin. Returns the refusal if the server is
    /// full.
    fn refuse_to_stay(&self) -> Option<Response> {
        let full = self.guard.as_ref()?.stay().err()?;
        Some(self.cors.clone().allow(full.into_response()))
    }

    /// Returns the description of this client for the node. A client that polls has a name of its
    /// own, because it uses another transport than that of its dialect.
    fn connection(&self, dialect: &'static Dialect, name: &'static DialectName) -> Arc<Connection> {
        Arc::new(Connection {
            who: match dialect.connects().and_then(|request| request.client_id) {
                Some(client_id) => client_with_id(client_id()),
                None => new_client(),
            },
            dialect: name,
            peer: self.peer.map(|peer| peer.address),
            agent: self.endpoints.worker.agent(&self.agent),
            since_ms: milliseconds(SystemTime::now()),
        })
    }
}

/// Tells the operator how the page can be let in, because people only see that it does not work.
fn log_refused_origin(request: &HeaderMap) {
    static REFUSALS: LogLimiter = LogLimiter::new();
    const LOGGED_BYTES_MAX: usize = 256;
    if let Some(count) = REFUSALS.ask(now()) {
        let origin = request.get(header::ORIGIN);
        let origin = origin.and_then(|origin| origin.to_str().ok());
        let origin = origin.unwrap_or("(invalid)");
        tracing::warn!(
            origin = &origin[..origin.floor_char_boundary(LOGGED_BYTES_MAX)],
            count,
            "pages of an origin that is not allowed were refused; if they may connect, add the origin to server.origins"
        );
    }
}

impl FromRequestParts<Endpoints> for Admitted {
    type Rejection = Response;

    /// Refuses pages whose origin is not allowed.
    async fn from_request_parts(
        parts: &mut Parts,
        endpoints: &Endpoints,
    ) -> Result<Self, Response> {
        let settings = endpoints.shared.settings_full();
        let peer = parts.extensions.get::<Peer>().copied();
        let scheme = peer.map_or(Scheme::Http, |peer| peer.scheme);
        if let Err(denied) = settings.origins.check(&parts.headers, scheme) {
            log_refused_origin(&parts.headers);
            return Err(refusal(StatusCode::FORBIDDEN, &denied.to_string()));
        }
        let account = &endpoints.worker.accounts().messages;
        let headers = settings.backends.forwarding.keep(&parts.headers, account);
        let headers = headers.map_err(|error| {
            let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
            refusal(status, &error.to_string())
        })?;
        let agent = parts.headers.get(http::header::USER_AGENT);
        let agent = agent.and_then(|agent| agent.to_str().ok()).unwrap_or("");
        Ok(Self {
            endpoints: endpoints.clone(),
            settings,
            peer,
            agent: agent[..agent.floor_char_boundary(128)].to_owned(),
            headers: headers.map(Arc::new),
            cors: cors::Cors::of(&parts.headers),
            guard: parts.extensions.get::<ConnectionGuard>().cloned(),
            long: parts.extensions.get::<LongRequest>().cloned(),
            is_upgrade: parts.version == Version::HTTP_11,
            // HTTP/1.0 has no chunks, and the response to HEAD no body.
            may_detach: parts.version == Version::HTTP_11
                && parts.method != Method::HEAD
                && parts.extensions.get::<Detacher>().is_some(),
        })
    }
}

impl IntoResponse for Refusal {
    /// Converts the refusal to an HTTP response, for clients that have no session yet.
    fn into_response(self) -> Response {
        let (code, text) = match &self {
            Self::Disconnect(disconnect) => (disconnect.code.into(), disconnect.to_string()),
            Self::Error(error) => (error.code, error.to_string()),
        };
        let status = match code {
            100 => StatusCode::SERVICE_UNAVAILABLE,
            109 | 113 | 3500 | 3507 => StatusCode::UNAUTHORIZED,
            103 => StatusCode::FORBIDDEN,
            106 | 3504 => StatusCode::TOO_MANY_REQUESTS,
            _ => StatusCode::BAD_REQUEST,
        };
        refusal(status, &text)
    }
}

fn refusal(status: StatusCode, text: &str) -> Response {
    (status, format!("{text}\n")).into_response()
}
