//! The requests of a connection: where they come from, and their answers.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    BoxError, Router,
    body::{Body, Bytes, HttpBody},
    http::{Method, Request, header},
    response::{IntoResponse, Response},
};
use linerate::handshake::Scheme;
use tower_service::Service;

use super::{
    ConnectionGuard, Frontend, LimitReached, Peer,
    detach::Detacher,
    guarded_body::GuardedBody,
    pending_connection::PendingConnection,
    proxy,
    timed::{BodyMemory, Timed},
};

/// Maximum size of the header section of a request, in bytes.
pub(crate) const HEAD_BYTES_MAX: usize = 64 << 10;
/// Maximum time that a connection serves requests; WebSockets and streaming responses may last
/// longer. Over HTTP/2, the maximum time without an open stream.
pub(crate) const REQUESTS_TIMEOUT: Duration = Duration::from_secs(60);

/// Information about a connection before its first request.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    frontend: Arc<Frontend>,
    /// The address of the client: that of the socket, or the one in the PROXY protocol header.
    address: IpAddr,
    /// The address of the socket.
    socket: IpAddr,
    is_tls: bool,
    pub(super) guard: ConnectionGuard,
    pending: Arc<PendingConnection>,
    /// Takes an HTTP/1.1 connection away from the HTTP server.
    detacher: Option<Detacher>,
    /// True while a response of unknown length is being sent, or a long request is answered.
    pub(super) is_streaming: Arc<AtomicBool>,
}

/// Keeps the connection of a request while its response takes as long as a streaming one; an
/// extension of requests.
#[derive(Clone, Debug)]
pub(crate) struct LongRequest(Arc<AtomicBool>);

impl LongRequest {
    /// Lets the response take its time.
    pub(crate) fn begin(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Answers a request, after adding information about its origin to its extensions.
pub(super) async fn answer<B>(
    origin: Origin,
    mut app: Router,
    request: Request<B>,
) -> Result<Response, std::convert::Infallible>
where
    B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    tracing::debug!(
        version = ?request.version(),
        method = %request.method(),
        path = request.uri().path(),
        "request"
    );
    origin.pending.settle();
    // This comes before anything else, because no route is available to a page with another host
    // name.
    if let Err(denied) = origin.frontend.hosts.check(&request) {
        return Ok(denied.into_response());
    }
    let mut held = None;
    let mut request = request.map(|body| match body.is_end_stream() {
        true => Body::empty(),
        false => {
            let held = held.insert(BodyMemory::new(origin.frontend.admission.budget()));
            Body::new(Timed::new(body, held.clone()))
        }
    });
    let (peer, forwarded_for) = origin.peer(&request);
    let guard = origin.guard.clone();
    let guard = match forwarded_for {
        Some(address) => guard.with_address(address),
        None => Ok(guard),
    };
    let guard = match guard {
        Ok(guard) => guard,
        Err(full) => return Ok(full.into_response()),
    };
    // A WebSocket on an HTTP/2 stream costs as much as one on its own connection.
    if request.method() == Method::CONNECT
        && let Err(full) = guard.stay()
    {
        return Ok(full.into_response());
    }
    request.extensions_mut().insert(peer);
    request.extensions_mut().insert(guard.clone());
    let long = LongRequest(origin.is_streaming.clone());
    request.extensions_mut().insert(long);
    if let Some(detacher) = &origin.detacher {
        request.extensions_mut().insert(detacher.clone());
    }
    // A router is always ready.
    let mut response = app.call(request).await?;
    if held.is_some_and(|held| held.is_refused()) {
        response = without_body(&response);
    }
    if let Some(detacher) = &origin.detacher {
        response = detacher.apply(response).await;
    }
    let is_streaming = response.body().size_hint().exact().is_none();
    origin.is_streaming.store(is_streaming, Ordering::Relaxed);
    if !is_streaming {
        return Ok(response);
    }
    // Sessions have already taken their slots. Other streaming responses take them here.
    Ok(match guard.stay() {
        Ok(()) => response.map(|body| Body::new(GuardedBody::new(body, guard))),
        Err(full) => full.into_response(),
    })
}

/// Replaces the response to a request whose body was not read because memory is short. Keeps the
/// CORS headers, so that a page of another origin that could have read the response can read this
/// one.
fn without_body(response: &Response) -> Response {
    let mut refused = LimitReached::Memory.into_response();
    for (name, value) in response.headers() {
        if *name == header::VARY || name.as_str().starts_with("access-control-") {
            refused.headers_mut().append(name.clone(), value.clone());
        }
    }
    refused
}

impl Origin {
    /// Returns the origin of all requests of a connection, whose socket has the first address and
    /// whose client has the second.
    pub(super) fn new(
        frontend: Arc<Frontend>,
        (socket, address): (IpAddr, IpAddr),
        guard: ConnectionGuard,
        pending: Arc<PendingConnection>,
    ) -> Self {
        Self {
            address,
            socket,
            is_tls: frontend.certificate.is_some(),
            guard,
            pending,
            frontend,
            detacher: None,
            is_streaming: Arc::default(),
        }
    }

    /// Returns the origin of requests over HTTP/1.1, whose responses may take the connection away.
    pub(super) fn with_detacher(self, detacher: Detacher) -> Self {
        Self {
            detacher: Some(detacher),
            ..self
        }
    }

    /// Returns the origin for a request that shares the connection with others. It takes its own
    /// slots if it becomes long-lived.
    pub(super) fn for_stream(&self) -> Self {
        let is_counted = !self.frontend.admission.trusts(self.address);
        Self {
            guard: self.guard.on_stream(is_counted.then_some(self.address)),
            ..self.clone()
        }
    }

    /// Returns the peer of a request, and the address of its client if a proxy has reported it.
    fn peer(&self, request: &Request<Body>) -> (Peer, Option<IpAddr>) {
        let scheme = if self.is_tls {
            Scheme::Https
        } else {
            Scheme::Http
        };
        let admission = &self.frontend.admission;
        let mut peer = Peer {
            address: self.address,
            scheme,
            is_near: self.socket.is_loopback() && !admission.trusts(self.socket),
        };
        if !admission.trusts(self.address) {
            return (peer, None);
        }
        let headers = request.headers();
        peer.scheme = proxy::forwarded_scheme(headers).unwrap_or(scheme);
        let told = proxy::forwarded_for(headers, |address| admission.trusts(address));
        peer.address = told.unwrap_or(peer.address);
        (peer, told)
    }
}
