//! The routes of the server, and the headers of all responses.

use std::{sync::Arc, time::Instant};

use axum::{
    Extension, Json, Router,
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header},
    middleware::{Next, from_fn, from_fn_with_state, map_response},
    response::{IntoResponse, Response},
    routing::get,
};
use linerate::{Options, axum::WebSocketUpgrade};
use linerate_gateway::{Access, ConnectionGuard, Gateway, Peer};
use linerate_logview::session::SUBPROTOCOL;
use linerate_uploads::Service;

use super::{
    assets::{asset, docs, page},
    counters::CounterPush,
    endpoint::{Echo, attend},
    error_page::for_browsers,
    uploads::Upload,
};

/// Pages may load nothing from other origins and cannot be framed. The `'self'` in `connect-src`
/// includes WebSockets to the same host.
const CONTENT_SECURITY_POLICY: &str = "default-src 'self'; connect-src 'self'; object-src 'none'; \
    base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// The pages and endpoints that `linerate serve` adds to the gateway.
#[derive(Clone, Debug)]
pub(super) struct Pages(Arc<PageState>);

/// State shared by all connections.
#[derive(Debug)]
struct PageState {
    counters: CounterPush,
    options: Options,
    upload_options: Options,
    uploads: Service,
    access: Access,
}

impl Pages {
    pub(super) fn new(gateway: &Gateway, uploads: Service) -> Self {
        let counters = gateway.counters().clone();
        let mut options = Options::default().without_compression();
        options.counters = Some(counters.clone());
        Self(Arc::new(PageState {
            counters: CounterPush {
                broker: gateway.broker().clone(),
                counters,
                uploads: uploads.clone(),
                started: Instant::now(),
            },
            upload_options: uploads.connection_options(&options),
            options,
            uploads,
            access: gateway.access(),
        }))
    }

    /// Returns the routes of the whole application: the pages and the endpoints for clients.
    pub(super) fn routes(self, clients: Router) -> Router {
        let diagnostics = Router::new()
            .route("/echo", get(echo).connect(echo))
            .route("/counters", get(counters).connect(counters))
            .route_layer(from_fn_with_state(self.0.clone(), only_diagnostics));
        Router::new()
            .route("/", page("index.html"))
            .route("/admin", page("admin.html"))
            .route("/channel", page("channel.html"))
            .route("/channel/clients", get(clients_access))
            .route("/logs", page("logs.html"))
            .route("/assets/{name}", get(asset))
            // Browsers ask for it where a response is not a page, such as one in JSON.
            .route("/favicon.ico", page("assets/favicon.svg"))
            .merge(docs())
            .merge(diagnostics)
            .route("/logs/upload", get(upload).connect(upload))
            .fallback(not_found)
            .method_not_allowed_fallback(method_not_allowed)
            .with_state(self.0)
            .merge(clients)
            .layer(from_fn(for_browsers))
            .layer(map_response(with_security_headers))
    }
}

/// Tells the channel page how clients connect, which they know anyway.
async fn clients_access(State(state): State<Arc<PageState>>) -> Response {
    let no_store = [(header::CACHE_CONTROL, "no-store")];
    (no_store, Json(state.access.clients())).into_response()
}

/// Restricts access to `/echo` and `/counters`, see [`Access::refuse_diagnostics`].
async fn only_diagnostics(
    State(state): State<Arc<PageState>>,
    request: Request,
    next: Next,
) -> Response {
    let (parts, body) = request.into_parts();
    match state.access.refuse_diagnostics(&parts) {
        None => next.run(Request::from_parts(parts, body)).await,
        Some(refused) => refused,
    }
}

async fn echo(
    State(state): State<Arc<PageState>>,
    Extension(guard): Extension<ConnectionGuard>,
    Extension(peer): Extension<Peer>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let upgrade = upgrade.with_options(state.options.clone());
    attend(upgrade.with_scheme(peer.scheme), guard, Echo)
}

async fn counters(
    State(state): State<Arc<PageState>>,
    Extension(guard): Extension<ConnectionGuard>,
    Extension(peer): Extension<Peer>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let upgrade = upgrade.with_options(state.options.clone());
    let push = state.counters.clone();
    attend(upgrade.with_scheme(peer.scheme), guard, push)
}

async fn upload(
    State(state): State<Arc<PageState>>,
    Extension(guard): Extension<ConnectionGuard>,
    Extension(peer): Extension<Peer>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let offered = upgrade.request().websocket();
    if !offered.is_ok_and(|offered| offered.subprotocols().contains(&SUBPROTOCOL)) {
        let text = format!("this endpoint requires the subprotocol {SUBPROTOCOL}\n");
        return (StatusCode::BAD_REQUEST, text).into_response();
    }
    let upgrade = upgrade
        .with_options(state.upload_options.clone())
        .with_scheme(peer.scheme)
        .with_subprotocols(&[SUBPROTOCOL]);
    let (service, address) = (state.uploads.clone(), peer.address);
    attend(upgrade, guard, Upload { service, address })
}

async fn not_found() -> (StatusCode, &'static str) {
    (
        StatusCode::NOT_FOUND,
        "nothing is at this address; see / for an overview\n",
    )
}

async fn method_not_allowed() -> (StatusCode, &'static str) {
    (
        StatusCode::METHOD_NOT_ALLOWED,
        "method not allowed; use GET or HEAD\n",
    )
}

async fn with_security_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
