//! The server side of the opening handshake on a socket.

use std::{sync::Arc, time::Duration};

#[cfg(feature = "http2")]
use linerate_h2::speaks_http2;
use linerate_proto::{
    Role,
    handshake::{Acceptance, HandshakeError, Refusal, Request, RequestReader, Scheme},
};
use tokio::{
    io::AsyncWriteExt,
    net::TcpStream,
    time::{Instant, timeout, timeout_at},
};

use super::Server;
use crate::{
    Error, Result,
    link::{HandshakeResult, Link},
    transport::Transport,
};

/// How long a refused client may take to read the refusal.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// The result of accepting a connection.
pub(super) enum Accepted {
    /// It speaks HTTP/2, and nothing has been read yet.
    #[cfg(feature = "http2")]
    Http2(Transport, Scheme),
    WebSocket(Arc<Link>, Request),
}

/// Takes a new connection through the TLS handshake, if TLS is enabled, and the opening handshake
/// of HTTP/1.1, within the time limit.
pub(super) async fn accept(server: &Server, stream: TcpStream) -> Result<Accepted> {
    stream.set_nodelay(true)?;
    let budget = server.settings.options.handshake_timeout;
    let deadline = Instant::now() + budget;
    #[cfg(feature = "rustls")]
    if let Some(tls) = &server.tls {
        // Before TLS is established, there is no way to tell the client that it timed out.
        let secured = timeout_at(deadline, crate::tls::accept(tls.clone(), stream)).await;
        let stream = secured.map_err(|_| Error::HandshakeTimeout { budget })??;
        #[cfg(feature = "http2")]
        let is_http2 = server.is_http2 && stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let io = Transport::Other(Box::new(stream));
        #[cfg(feature = "http2")]
        if is_http2 {
            return Ok(Accepted::Http2(io, Scheme::Https));
        }
        return upgrade(server, io, Scheme::Https, deadline).await;
    }
    #[cfg(feature = "http2")]
    if server.is_http2 {
        // If the client sends too little, the HTTP/1.1 handshake below times out and tells it so.
        let said = timeout_at(deadline, speaks_http2(&stream)).await;
        if let Ok(true) = said.unwrap_or(Ok(false)) {
            return Ok(Accepted::Http2(Transport::Tcp(stream), Scheme::Http));
        }
    }
    upgrade(server, Transport::Tcp(stream), Scheme::Http, deadline).await
}

/// Answers with 503 and closes the connection.
pub(super) async fn refuse_overload(stream: TcpStream) {
    if let Ok(refusal) = Refusal::new(503, "too many connections") {
        refuse(Transport::Tcp(stream), refusal).await;
    }
}

async fn upgrade(
    server: &Server,
    mut io: Transport,
    scheme: Scheme,
    deadline: Instant,
) -> Result<Accepted> {
    let read = timeout_at(deadline, read_request(server, &mut io)).await;
    let time_max = server.settings.options.handshake_timeout;
    let read = read.unwrap_or_else(|_| Err(HandshakeError::TimedOut { time_max }.into()));
    let (request, leftover) = match read {
        Ok(read) => read,
        Err(error) => {
            if let Error::Handshake(error) = error {
                refuse(io, error.into()).await;
            }
            return Err(error);
        }
    };
    let mut response = Vec::new();
    let decided = decide(server, &request, scheme, |acceptance| {
        acceptance.encode(&mut response);
        HandshakeResult::from(acceptance)
    });
    let agreed = match decided {
        Ok(agreed) => agreed,
        Err((refusal, error)) => {
            let refusal = match request.method() {
                "HEAD" => refusal.without_body(),
                _ => refusal,
            };
            refuse(io, refusal).await;
            return Err(error);
        }
    };
    let sent = timeout_at(deadline, async {
        io.write_all(&response).await?;
        io.flush().await
    });
    sent.await
        .map_err(|_| Error::HandshakeTimeout { budget: time_max })??;
    let link = Link::new(io, Role::Server, &server.settings, &leftover, agreed);
    Ok(Accepted::WebSocket(link, request))
}

/// Reads the request; also returns the bytes after it, which are the client's first frames.
async fn read_request(server: &Server, io: &mut Transport) -> Result<(Request, Vec<u8>)> {
    let mut reader = RequestReader::new(server.settings.options.handshake);
    loop {
        let read = io.read_with(|input| {
            if input.is_empty() {
                reader.handle_eof()?;
                return Err(Error::Abnormal);
            }
            let found = reader.handle_input(input)?;
            Ok(found.map(|(request, head_bytes)| (request, input[head_bytes..].to_vec())))
        });
        if let Some(found) = read.await? {
            return Ok(found);
        }
    }
}

/// Decides whether to accept the request; if so, returns the result of `answer` for the acceptance.
pub(super) fn decide<T>(
    server: &Server,
    request: &Request,
    scheme: Scheme,
    answer: impl FnOnce(&Acceptance<'_>) -> T,
) -> std::result::Result<T, (Refusal, Error)> {
    let refuse = |error: HandshakeError| (Refusal::from(error), error.into());
    let upgrade = request.websocket().map_err(refuse)?;
    server.origins.check(request, scheme).map_err(refuse)?;
    let acceptance = match &server.decide {
        None => upgrade.accept(),
        Some(decide) => decide(&upgrade).map_err(|refusal| {
            let status = refusal.status();
            (refusal, Error::Refused { status })
        })?,
    };
    #[cfg(feature = "deflate")]
    let acceptance = match &server.settings.options.deflate {
        Some(deflate) => acceptance.with_deflate(deflate),
        None => acceptance,
    };
    Ok(answer(&acceptance))
}

/// Sends a refusal and waits until the client has read it or [`REFUSAL_TIMEOUT`] is over.
async fn refuse(mut io: Transport, refusal: Refusal) {
    let mut response = Vec::new();
    refusal.encode(&mut response);
    let send = async {
        io.write_all(&response).await?;
        io.shutdown().await?;
        drain(&mut io).await;
        Ok::<_, std::io::Error>(())
    };
    if let Ok(Err(error)) = timeout(REFUSAL_TIMEOUT, send).await {
        tracing::debug!(%error, "refusal not delivered");
    }
}

/// Reads what the client still sends, so that closing does not reset the connection before the
/// client has read the answer. The number of bytes is limited here, the time by the caller.
async fn drain(io: &mut Transport) {
    const BYTES_MAX: usize = 1 << 20;
    let mut drained = 0;
    while drained < BYTES_MAX {
        let read = io.read_with(|input| Ok::<_, std::io::Error>(input.len()));
        match read.await {
            Ok(bytes) if bytes > 0 => drained += bytes,
            _ => return,
        }
    }
}
