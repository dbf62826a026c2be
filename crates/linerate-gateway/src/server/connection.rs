//! A single connection: proxy header, TLS, requests, shutdown.

use std::{
    io,
    net::IpAddr,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    BoxError, Router,
    body::{Body, Bytes, HttpBody},
    http::{Method, Request, StatusCode, header},
    response::{IntoResponse, Response},
};
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use linerate::{Scheme, axum::speaks_http2};
use socket2::{SockRef, TcpKeepalive};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, Interest},
    net::TcpStream,
    sync::Semaphore,
    time::{sleep, timeout},
};
use tower_service::Service;

use super::{
    Front, Full, Peer, Visit,
    admission::AddressPlace,
    http2,
    newcomer::Newcomer,
    proxy,
    staying::Staying,
    timed::{Held, Timed},
};

/// Maximum time to receive the header section of a request, including the wait for its first byte.
pub(crate) const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of the header section of a request, in bytes.
pub(crate) const HEAD_BYTES_MAX: usize = 64 << 10;
/// Maximum time for the PROXY protocol header and the TLS handshake, each.
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time that a connection serves requests; WebSockets and streaming responses may last
/// longer. Over HTTP/2, the maximum time without an open stream.
pub(crate) const REQUESTS_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum time to finish the current request when the connection must close.
const LAST_REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time that a refused client has to read the reason.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of bytes of a refused client's input that are read and discarded at a time.
const DISCARDED_BYTES: usize = 16 << 10;
/// Time between two such reads, over all clients that send more than that.
const DISCARD_PAUSE: Duration = Duration::from_millis(1);
/// Time after which unacknowledged data closes a connection, and time of silence after which the
/// peer is probed (TCP keepalive).
pub(crate) const DEAD_PEER_TIMEOUT: Duration = Duration::from_secs(30);

/// Grants turns to discard more input of a refused client.
static DISCARDS: Semaphore = Semaphore::const_new(1);

/// Information about a connection before its first request.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    front: Arc<Front>,
    /// The address of the client: that of the socket, or the one in the PROXY protocol header.
    address: IpAddr,
    /// The address of the socket.
    socket: IpAddr,
    is_tls: bool,
    pub(super) visit: Visit,
    newcomer: Arc<Newcomer>,
    /// True while a response of unknown length is being sent.
    is_streaming: Arc<AtomicBool>,
}

/// Serves one connection until it ends, or until it is closed because memory is short before its
/// first request.
pub(super) async fn attend(front: Arc<Front>, stream: TcpStream, app: Router, visit: Visit) {
    let newcomer = Newcomer::register(front.admission.budget());
    tokio::select! {
        () = attend_fully(front, stream, app, visit, newcomer.clone()) => {}
        () = newcomer.ended() => tracing::debug!("connection closed: memory is short"),
    }
}

async fn attend_fully(
    front: Arc<Front>,
    mut stream: TcpStream,
    app: Router,
    visit: Visit,
    newcomer: Arc<Newcomer>,
) {
    let prepared = timeout(HANDSHAKE_TIMEOUT, prepare(&front, &mut stream)).await;
    let (socket, address) = match prepared {
        Ok(Ok(addresses)) => addresses,
        Ok(Err(error)) => return tracing::debug!(%error, "connection failed"),
        Err(_) => return tracing::debug!("timed out waiting for the PROXY protocol header"),
    };
    // A trusted proxy may open any number of connections; the clients that it reports are counted.
    let visit = match front.admission.trusts(address) {
        true => visit,
        false => match front.admission.admit_address(address) {
            Some(place) => visit.with_address(place),
            None => {
                tracing::debug!(%address, "connection refused: too many from its address");
                let is_tls = front.certificate.is_some();
                return refuse(stream, &too_many_from_address(), is_tls).await;
            }
        },
    };
    let certificate = front.certificate.clone();
    let origin = Origin {
        address,
        socket,
        is_tls: certificate.is_some(),
        visit,
        newcomer,
        front,
        is_streaming: Arc::default(),
    };
    match certificate {
        None => match is_http2(&origin, &stream).await {
            Ok(is_http2) => serve_either(origin, stream, app, is_http2).await,
            Err(error) => tracing::debug!(%error, "connection ended before its first request"),
        },
        Some(certificate) => {
            let handshake = linerate::tls::accept(certificate.config(), stream);
            match timeout(HANDSHAKE_TIMEOUT, handshake).await {
                Ok(Ok(stream)) => {
                    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                    serve_either(origin, stream, app, is_http2).await;
                }
                Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
                Err(_) => tracing::debug!("TLS handshake timed out"),
            }
        }
    }
}

/// Configures the socket and returns its peer's address and the client's address.
async fn prepare(front: &Front, stream: &mut TcpStream) -> io::Result<(IpAddr, IpAddr)> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(&*stream);
    let keepalive = TcpKeepalive::new()
        .with_time(DEAD_PEER_TIMEOUT)
        .with_interval(DEAD_PEER_TIMEOUT / 3);
    socket.set_tcp_keepalive(&keepalive)?;
    socket.set_tcp_user_timeout(Some(DEAD_PEER_TIMEOUT))?;
    let address = stream.peer_addr()?.ip().to_canonical();
    if !front.has_proxy_header || !front.admission.trusts(address) {
        return Ok((address, address));
    }
    let told = proxy::read_header(stream).await?;
    Ok((
        address,
        told.map_or(address, |told| told.ip().to_canonical()),
    ))
}

/// Detects the HTTP version of a connection without ALPN.
async fn is_http2(origin: &Origin, stream: &TcpStream) -> io::Result<bool> {
    tokio::select! {
        said = timeout(HEAD_TIMEOUT, speaks_http2(stream)) => match said {
            Ok(said) => said,
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        },
        () = origin.visit.goodbye() => Err(io::ErrorKind::ConnectionAborted.into()),
    }
}

async fn serve_either<S>(origin: Origin, stream: S, app: Router, is_http2: bool)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    if !is_http2 {
        return serve(origin, stream, app).await;
    }
    if let Err(error) = http2::serve(origin, stream, app).await {
        tracing::debug!(%error, "connection failed");
    }
}

/// Serves the requests of an HTTP/1.1 connection until it ends or becomes a WebSocket.
async fn serve<S>(origin: Origin, stream: S, app: Router)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let service = service_fn({
        let origin = origin.clone();
        move |request| answer(origin.clone(), app.clone(), request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    tokio::select! {
        result = &mut connection => return note(result),
        () = origin.visit.goodbye() => {}
        () = sleep(REQUESTS_TIMEOUT) => {}
    }
    connection.as_mut().graceful_shutdown();
    let deadline = async {
        while origin.is_streaming.load(Ordering::Relaxed) {
            // A streaming response has its own end, and is notified when the server stops.
            origin.visit.goodbye().await;
            origin.is_streaming.store(false, Ordering::Relaxed);
        }
        sleep(LAST_REQUEST_TIMEOUT).await;
    };
    tokio::select! {
        result = &mut connection => note(result),
        () = deadline => tracing::debug!("connection closed in the middle of a request"),
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
    origin.newcomer.settle();
    // This comes before anything else, because no route is available to a page with another host
    // name.
    if let Err(denied) = origin.front.hosts.check(&request) {
        return Ok(denied.into_response());
    }
    let mut held = None;
    let mut request = request.map(|body| match body.is_end_stream() {
        true => Body::empty(),
        false => {
            let held = held.insert(Held::new(origin.front.admission.budget()));
            Body::new(Timed::new(body, held.clone()))
        }
    });
    let (peer, place) = match origin.peer(&request) {
        Ok(found) => found,
        Err(refused) => return Ok(refused.into_response()),
    };
    let visit = match place {
        Some(place) => origin.visit.with_address(place),
        None => origin.visit.clone(),
    };
    // A WebSocket on an HTTP/2 stream costs as much as one on its own connection.
    if request.method() == Method::CONNECT
        && let Err(full) = visit.stay()
    {
        return Ok(full.into_response());
    }
    request.extensions_mut().insert(peer);
    request.extensions_mut().insert(visit.clone());
    // A router is always ready.
    let mut response = app.call(request).await?;
    if held.is_some_and(|held| held.is_refused()) {
        response = without_body(&response);
    }
    let is_streaming = response.body().size_hint().exact().is_none();
    origin.is_streaming.store(is_streaming, Ordering::Relaxed);
    if !is_streaming {
        return Ok(response);
    }
    // Sessions have already taken their places. Other streaming responses take them here.
    Ok(match visit.stay() {
        Ok(()) => response.map(|body| Body::new(Staying::new(body, visit))),
        Err(full) => full.into_response(),
    })
}

/// Replaces the response to a request whose body was not read because memory is short. Keeps the
/// CORS headers, so that a page of another origin that could have read the response can read this
/// one.
fn without_body(response: &Response) -> Response {
    let mut refused = Full::Memory.into_response();
    for (name, value) in response.headers() {
        if *name == header::VARY || name.as_str().starts_with("access-control-") {
            refused.headers_mut().append(name.clone(), value.clone());
        }
    }
    refused
}

impl Origin {
    /// Returns the origin for a request that shares the connection with others. It takes its own
    /// places if it becomes long-lived.
    pub(super) fn for_stream(&self) -> Self {
        let is_counted = !self.front.admission.trusts(self.address);
        Self {
            visit: self.visit.on_stream(is_counted.then_some(self.address)),
            ..self.clone()
        }
    }

    /// Returns the peer of a request, and a place for its address if a proxy has reported it.
    fn peer(&self, request: &Request<Body>) -> Result<(Peer, Option<AddressPlace>), Full> {
        let scheme = if self.is_tls {
            Scheme::Https
        } else {
            Scheme::Http
        };
        let admission = &self.front.admission;
        let mut peer = Peer {
            address: self.address,
            scheme,
            is_near: self.socket.is_loopback() && !admission.trusts(self.socket),
        };
        if !admission.trusts(self.address) {
            return Ok((peer, None));
        }
        let headers = request.headers();
        peer.scheme = proxy::forwarded_scheme(headers).unwrap_or(scheme);
        let told = proxy::forwarded_for(headers, |address| admission.trusts(address));
        let Some(address) = told else {
            return Ok((peer, None));
        };
        peer.address = address;
        let place = admission.admit_address(address).ok_or(Full::Address)?;
        Ok((peer, Some(place)))
    }
}

impl IntoResponse for Full {
    fn into_response(self) -> Response {
        let status = match self {
            Self::Address => StatusCode::TOO_MANY_REQUESTS,
            Self::Connections | Self::Memory => StatusCode::SERVICE_UNAVAILABLE,
        };
        (status, [(header::RETRY_AFTER, "5")], self.told()).into_response()
    }
}

fn note(result: Result<(), hyper::Error>) {
    if let Err(error) = result {
        tracing::debug!(%error, "connection failed");
    }
}

/// Sends the refusal of a connection, whatever the client requests.
pub(super) async fn refuse_overload(stream: TcpStream, full: Full, is_tls: bool) {
    let answer = last_answer("503 Service Unavailable", full.told());
    refuse(stream, &answer, is_tls).await;
}

fn too_many_from_address() -> Vec<u8> {
    last_answer("429 Too Many Requests", Full::Address.told())
}

/// Returns a response after which the connection closes.
fn last_answer(status: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Length: {}\r\nRetry-After: 5\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Sends the reason and closes the connection. Over TLS nothing is sent, because the handshake
/// would add to the load.
async fn refuse(mut stream: TcpStream, why: &[u8], is_tls: bool) {
    if is_tls {
        return;
    }
    let send = async {
        stream.write_all(why).await?;
        stream.shutdown().await?;
        // Without reading on, unread input would reset the connection before the client reads the
        // response.
        discard(&stream).await
    };
    // Errors do not matter, because a client that is gone needs no response.
    _ = timeout(REFUSAL_TIMEOUT, send).await;
}

/// Reads and discards input until it ends. Clients that send more than one piece take turns, so
/// that a flood of them does not delay others.
async fn discard(stream: &TcpStream) -> io::Result<()> {
    while let bytes @ 1.. = discard_piece(stream).await? {
        if bytes < DISCARDED_BYTES {
            continue;
        }
        tokio::select! {
            _turn = DISCARDS.acquire() => sleep(DISCARD_PAUSE).await,
            // The connection was reset.
            _ = stream.ready(Interest::ERROR) => return Ok(()),
        }
    }
    Ok(())
}

async fn discard_piece(stream: &TcpStream) -> io::Result<usize> {
    loop {
        stream.readable().await?;
        match stream.try_read(&mut [0; DISCARDED_BYTES]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            result => return result,
        }
    }
}
