//! A single connection: proxy header, TLS, HTTP version, shutdown.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use axum::Router;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use linerate::axum::{Detachable, speaks_http2};
use socket2::SockRef;
use tokio::{
    net::TcpStream,
    time::{Instant, sleep, sleep_until, timeout},
};

use super::{
    Certificate, ConnectionGuard, Frontend, HEAD_BYTES_MAX, REQUESTS_TIMEOUT,
    detach::{Detacher, OfSocket},
    http2, listener,
    pending_connection::PendingConnection,
    proxy,
    refusal::refuse,
    request::{Origin, answer},
    tls::TlsStream,
};
use crate::platform;

/// Maximum time to receive the header section of a request, including the wait for its first byte.
pub(crate) const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time for the PROXY protocol header and the TLS handshake, each.
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time to finish the current request when the connection must close.
const LAST_REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Minimum time that a connection has for its first request, even if the server stops: a client
/// that has just connected is about to send it.
const FIRST_REQUEST_TIME: Duration = Duration::from_secs(1);

/// Serves one connection until it ends, or until it is closed because memory is short before its
/// first request.
pub(super) async fn attend(
    frontend: Arc<Frontend>,
    (stream, peer): (TcpStream, SocketAddr),
    app: Router,
    guard: ConnectionGuard,
) {
    let pending = PendingConnection::register(frontend.admission.budget());
    tokio::select! {
        () = attend_fully(frontend, (stream, peer), app, guard, pending.clone()) => {}
        () = pending.ended() => tracing::debug!("connection closed: memory is short"),
    }
}

async fn attend_fully(
    frontend: Arc<Frontend>,
    (mut stream, peer): (TcpStream, SocketAddr),
    app: Router,
    guard: ConnectionGuard,
    pending: Arc<PendingConnection>,
) {
    let prepared = timeout(HANDSHAKE_TIMEOUT, prepare(&frontend, &mut stream, peer)).await;
    let (socket, address) = match prepared {
        Ok(Ok(addresses)) => addresses,
        Ok(Err(error)) => return tracing::debug!(%error, "connection failed"),
        Err(_) => return tracing::debug!("timed out waiting for the PROXY protocol header"),
    };
    // A trusted proxy may open any number of connections; the clients that it reports are counted.
    let guard = match frontend.admission.trusts(address) {
        true => guard,
        false => match guard.with_address(address) {
            Ok(guard) => guard,
            Err(full) => {
                tracing::debug!(%address, "connection refused: too many from its address");
                let is_tls = frontend.certificate.is_some();
                return refuse(stream, full, is_tls).await;
            }
        },
    };
    let certificate = frontend.certificate.clone();
    let origin = Origin::new(frontend, (socket, address), guard, pending);
    match certificate {
        None => match is_http2(&origin, &stream).await {
            Ok(is_http2) => serve_either(origin, stream, app, is_http2).await,
            Err(error) => tracing::debug!(%error, "connection ended before its first request"),
        },
        Some(certificate) => Box::pin(serve_tls(origin, stream, app, &certificate)).await,
    }
}

/// Serves an encrypted connection.
async fn serve_tls(origin: Origin, stream: TcpStream, app: Router, certificate: &Certificate) {
    let handshake = TlsStream::accept(certificate.acceptor(), stream);
    match timeout(HANDSHAKE_TIMEOUT, handshake).await {
        Ok(Ok(stream)) => {
            let is_http2 = stream.is_http2();
            serve_either(origin, stream, app, is_http2).await;
        }
        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => tracing::debug!("TLS handshake timed out"),
    }
}

/// Prepares the socket of `peer`, and returns its address and that of the client.
async fn prepare(
    frontend: &Frontend,
    stream: &mut TcpStream,
    peer: SocketAddr,
) -> io::Result<(IpAddr, IpAddr)> {
    if !platform::HAS_INHERITED_OPTIONS {
        listener::set_options(&SockRef::from(&*stream), frontend.dead_peer_timeout)?;
    }
    let address = peer.ip().to_canonical();
    if !frontend.has_proxy_header || !frontend.admission.trusts(address) {
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
        () = goodbye(origin, Instant::now()) => Err(io::ErrorKind::ConnectionAborted.into()),
    }
}

/// Waits for the time to close a connection that was opened at `opened`.
async fn goodbye(origin: &Origin, opened: Instant) {
    origin.guard.goodbye().await;
    sleep_until(opened + FIRST_REQUEST_TIME).await;
}

/// Serves the requests of a connection. Each kind is boxed, because a future is as large as the
/// largest of the futures that it may wait for, and event streams keep theirs.
async fn serve_either(origin: Origin, stream: impl OfSocket, app: Router, is_http2: bool) {
    if !is_http2 {
        return Box::pin(serve(origin, stream, app)).await;
    }
    if let Err(error) = Box::pin(http2::serve(origin, stream, app)).await {
        tracing::debug!(%error, "connection failed");
    }
}

/// Serves the requests of an HTTP/1.1 connection until it ends, becomes a WebSocket, or continues
/// elsewhere.
async fn serve(origin: Origin, stream: impl OfSocket, app: Router) {
    let stream = Detachable::new(stream);
    let origin = origin.with_detacher(Detacher::of(&stream));
    let service = service_fn({
        let origin = origin.clone();
        // Boxed, because hyper keeps a place for it while a response is streamed.
        move |request| Box::pin(answer(origin.clone(), app.clone(), request))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    // Boxed, because `pin!` would keep a place for the unpinned one as well.
    let mut connection = Box::pin(connection);
    tokio::select! {
        result = &mut connection => return note(result),
        () = goodbye(&origin, Instant::now()) => {}
        () = sleep(REQUESTS_TIMEOUT) => {}
    }
    connection.as_mut().graceful_shutdown();
    let deadline = async {
        while origin.is_streaming.load(Ordering::Relaxed) {
            // A streaming response has its own end, and is notified when the server stops.
            tokio::select! {
                () = origin.guard.goodbye() => origin.is_streaming.store(false, Ordering::Relaxed),
                () = sleep(LAST_REQUEST_TIMEOUT) => {}
            }
        }
        sleep(LAST_REQUEST_TIMEOUT).await;
    };
    tokio::select! {
        result = &mut connection => note(result),
        () = deadline => tracing::debug!("connection closed in the middle of a request"),
    }
}

fn note(result: Result<(), hyper::Error>) {
    if let Err(error) = result {
        tracing::debug!(%error, "connection failed");
    }
}
