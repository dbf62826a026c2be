//! One connection: proxy header, TLS, requests, goodbye.

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
    Front, Full, Visit,
    admission::AddressPlace,
    http2,
    newcomer::Newcomer,
    proxy,
    staying::Staying,
    timed::{Held, Timed},
};
use crate::transport::Peer;

/// How long the head of a request may take, the wait for its first byte included.
pub(crate) const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How many bytes the head of a request may have.
pub(crate) const HEAD_BYTES_MAX: usize = 64 << 10;
/// How long a proxy header and the handshake of TLS may take.
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection may serve requests; WebSockets and answers that go on may last longer. Over HTTP/2,
/// how long it may be without any.
pub(crate) const REQUESTS_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a request may take that is under way when the connection is to end.
const LAST_REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a client that is refused may take to read why.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);
/// How many bytes that such a client sends are read and discarded at once.
const DISCARDED_BYTES: usize = 16 << 10;
/// The time between two such reads, over all clients that send more than that.
const DISCARD_PAUSE: Duration = Duration::from_millis(1);
/// How long data may be under way without an acknowledgement, and how long after silence the peer is asked.
pub(crate) const DEAD_PEER_TIMEOUT: Duration = Duration::from_secs(30);

/// Which refused client's turn it is to have more of its input discarded.
static DISCARDS: Semaphore = Semaphore::const_new(1);

/// What is known of a connection before its first request.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    front: Arc<Front>,
    /// Who speaks to us, or for whom a header of the PROXY protocol says that the proxy speaks.
    address: IpAddr,
    /// Who is at the other end of the socket.
    socket: IpAddr,
    is_tls: bool,
    pub(super) visit: Visit,
    newcomer: Arc<Newcomer>,
    /// Whether an answer is under way whose end is not known.
    is_streaming: Arc<AtomicBool>,
}

/// Serves one connection to its end, or until it is closed for want of memory before it has asked for anything.
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
        Err(_) => return tracing::debug!("connection said nothing of where it comes from"),
    };
    // A trusted proxy has as many as it needs; those that it tells of are counted.
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
            Err(error) => tracing::debug!(%error, "connection said nothing"),
        },
        Some(certificate) => {
            let handshake = linerate::tls::accept(certificate.config(), stream);
            match timeout(HANDSHAKE_TIMEOUT, handshake).await {
                Ok(Ok(stream)) => {
                    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                    serve_either(origin, stream, app, is_http2).await;
                }
                Ok(Err(error)) => tracing::debug!(%error, "TLS failed"),
                Err(_) => tracing::debug!("TLS took too long"),
            }
        }
    }
}

/// Sets up the socket and finds out who is at its other end, and for whom that speaks.
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

/// Finds out which HTTP a client speaks that has not been asked.
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

/// Serves the requests of one connection until it ends or becomes a WebSocket.
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
            // An answer that goes on has its own end, and is told when the server stops.
            origin.visit.goodbye().await;
            origin.is_streaming.store(false, Ordering::Relaxed);
        }
        sleep(LAST_REQUEST_TIMEOUT).await;
    };
    tokio::select! {
        result = &mut connection => note(result),
        () = deadline => tracing::debug!("connection given up in the middle of a request"),
    }
}

/// Answers a request, with what is known of where it comes from among its extensions.
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
    // Before anything else: whatever the routes are, none of them is for a page of another name.
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
    // A WebSocket on a stream of HTTP/2 costs what one on a connection does.
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
    // Sessions have taken their places before they began. Any other answer that goes on takes them here.
    Ok(match visit.stay() {
        Ok(()) => response.map(|body| Body::new(Staying::new(body, visit))),
        Err(full) => full.into_response(),
    })
}

/// Returns what is said instead of a `response` to a request whose body was not read for want of memory. Pages of other
/// origins may read it if they might have read that.
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
    /// Returns one of a request among others on the connection, which takes places of its own if it stays.
    pub(super) fn for_stream(&self) -> Self {
        let is_counted = !self.front.admission.trusts(self.address);
        Self {
            visit: self.visit.on_stream(is_counted.then_some(self.address)),
            ..self.clone()
        }
    }

    /// Returns where a request comes from, and the place that its address takes if a proxy has told of it.
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

/// Says that there is no place, whatever was asked.
pub(super) async fn refuse_overload(stream: TcpStream, full: Full, is_tls: bool) {
    let answer = last_answer("503 Service Unavailable", full.told());
    refuse(stream, &answer, is_tls).await;
}

fn too_many_from_address() -> Vec<u8> {
    last_answer("429 Too Many Requests", Full::Address.told())
}

/// Returns an answer after which the connection ends.
fn last_answer(status: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Length: {}\r\nRetry-After: 5\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Says why the connection ends. Over TLS nothing is said: a handshake is what there is too much of.
async fn refuse(mut stream: TcpStream, why: &[u8], is_tls: bool) {
    if is_tls {
        return;
    }
    let send = async {
        stream.write_all(why).await?;
        stream.shutdown().await?;
        // Reading on keeps unread input from resetting the connection before the answer is read.
        discard(&stream).await
    };
    // A client that is gone needs no answer.
    _ = timeout(REFUSAL_TIMEOUT, send).await;
}

/// Reads to the end and discards what was read. Clients that send more than a piece take turns, so that a flood of them does
/// not keep others waiting.
async fn discard(stream: &TcpStream) -> io::Result<()> {
    while let bytes @ 1.. = discard_piece(stream).await? {
        if bytes < DISCARDED_BYTES {
            continue;
        }
        tokio::select! {
            _turn = DISCARDS.acquire() => sleep(DISCARD_PAUSE).await,
            // It was reset.
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
