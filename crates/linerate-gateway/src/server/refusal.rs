//! Refuses connections that a limit leaves no slot for.

use std::{io, time::Duration};

use axum::{
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use tokio::{
    io::{AsyncWriteExt, Interest},
    net::TcpStream,
    sync::Semaphore,
    time::{sleep, timeout},
};

use super::LimitReached;

/// Maximum time that a refused client has to read the reason.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of bytes of a refused client's input that are read and discarded at a time.
const DISCARDED_BYTES: usize = 16 << 10;
/// Time between two such reads, over all clients that send more than that.
const DISCARD_PAUSE: Duration = Duration::from_millis(1);

/// Grants turns to discard more input of a refused client.
static DISCARDS: Semaphore = Semaphore::const_new(1);

impl LimitReached {
    const fn status(self) -> StatusCode {
        match self {
            Self::Address => StatusCode::TOO_MANY_REQUESTS,
            Self::Connections | Self::Memory => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl IntoResponse for LimitReached {
    fn into_response(self) -> Response {
        let headers = [(header::RETRY_AFTER, "5")];
        (self.status(), headers, self.told()).into_response()
    }
}

/// Sends the reason, whatever the client requests, and closes the connection. Over TLS nothing is
/// sent, because the handshake would add to the load.
pub(super) async fn refuse(mut stream: TcpStream, full: LimitReached, is_tls: bool) {
    if is_tls {
        return;
    }
    let (status, body) = (full.status(), full.told());
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Length: {}\r\nRetry-After: 5\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let send = async {
        stream.write_all(answer.as_bytes()).await?;
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
