//! The connections of one worker: accepted, limited in number and time, closed at shutdown.

use std::{io, pin::pin, time::Duration};

use axum::{Router, body::Body, http::Request};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};
use tower_service::Service;

use super::connections::{Connections, Visit};
use crate::workers::Shutdown;

/// How long the head of a request may take, the wait for its first byte included.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How many bytes the head of a request may have.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// How long a connection may serve requests; a WebSocket that grew out of it may last longer.
const REQUESTS_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a request may take that is under way when the connection is to end.
const LAST_REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the connections have to end at shutdown: the budget of the closing handshake, which is
/// 5 s, and a little more.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(6);
/// How long a client that is refused may take to read why.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

const OVERLOAD: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    Content-Type: text/plain; charset=utf-8\r\nContent-Length: 21\r\nRetry-After: 5\r\n\
    Connection: close\r\n\r\ntoo many connections\n";

/// Serves `app` until `shutdown`, then lets the open connections say goodbye.
pub(super) async fn serve(
    listener: TcpListener,
    app: Router,
    connections: Connections,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    let connections = connections.of_worker(shutdown.clone());
    let mut shutdown = pin!(shutdown.wait());
    loop {
        tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => match connections.admit() {
                    Some(visit) => _ = tokio::spawn(attend(stream, app.clone(), visit)),
                    None => _ = tokio::spawn(refuse(stream)),
                },
                Err(error) => wait_out(error).await?,
            },
        }
    }
    drop(listener);
    connections.drain(DRAIN_TIMEOUT).await;
    Ok(())
}

/// Serves the requests of one connection until it ends or becomes a WebSocket.
async fn attend(stream: TcpStream, app: Router, visit: Visit) {
    if let Err(error) = stream.set_nodelay(true) {
        return tracing::debug!(%error, "connection failed");
    }
    let service = service_fn({
        let visit = visit.clone();
        move |request: Request<Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(visit.clone());
            // A router is always ready.
            app.clone().call(request)
        }
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
        () = visit.shutdown() => {}
        () = sleep(REQUESTS_TIMEOUT) => {}
    }
    connection.as_mut().graceful_shutdown();
    match timeout(LAST_REQUEST_TIMEOUT, connection).await {
        Ok(result) => note(result),
        Err(_) => tracing::debug!("connection given up in the middle of a request"),
    }
}

fn note(result: Result<(), hyper::Error>) {
    if let Err(error) = result {
        tracing::debug!(%error, "connection failed");
    }
}

/// Says that there are too many connections, whatever was asked.
async fn refuse(mut stream: TcpStream) {
    tracing::debug!("connection refused: too many");
    let send = async {
        stream.write_all(OVERLOAD).await?;
        stream.shutdown().await?;
        // Reading on keeps unread input from resetting the connection before the answer is read.
        tokio::io::copy(&mut stream, &mut tokio::io::sink()).await
    };
    // A client that is gone needs no answer.
    _ = timeout(REFUSAL_TIMEOUT, send).await;
}

/// Waits after a failed accept if that can pass, as a shortage of file descriptors does.
async fn wait_out(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::NotConnected => Err(error),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset => Ok(()),
        _ => {
            tracing::warn!(%error, "can't accept connections");
            sleep(Duration::from_millis(100)).await;
            Ok(())
        }
    }
}
