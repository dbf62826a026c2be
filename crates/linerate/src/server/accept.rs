//! A new connection, up to its first request: TLS, the detection of HTTP/2, and the request of
//! HTTP/1.1.

#[cfg(feature = "http2")]
use linerate_h2::speaks_http2;
use linerate_proto::handshake::{HandshakeError, Request, RequestReader, Scheme};
use tokio::{
    net::TcpStream,
    time::{Instant, timeout_at},
};

use super::{
    Server,
    channel::{Http1, refuse},
    pending::unavailable,
};
use crate::{Error, Result, transport::Transport};

/// The result of accepting a connection.
pub(super) enum Accepted {
    /// It speaks HTTP/2, and nothing has been read yet.
    #[cfg(feature = "http2")]
    Http2(Transport, Scheme),
    /// It has sent this request of HTTP/1.1.
    Http1(Request, Http1, Scheme),
}

/// Takes a new connection through the TLS handshake, if TLS is enabled, and reads the request of
/// HTTP/1.1. All of this must end before `deadline`.
pub(super) async fn accept(
    server: &Server,
    stream: TcpStream,
    deadline: Instant,
) -> Result<Accepted> {
    stream.set_nodelay(true)?;
    #[cfg(feature = "rustls")]
    if let Some(tls) = &server.tls {
        // Before TLS is established, there is no way to tell the client that it timed out.
        let budget = server.settings.options.handshake_timeout;
        let secured = timeout_at(deadline, crate::tls::accept(tls.clone(), stream)).await;
        let stream = secured.map_err(|_| Error::HandshakeTimeout { budget })??;
        #[cfg(feature = "http2")]
        let is_http2 = server.is_http2 && stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let io = Transport::Other(Box::new(stream));
        #[cfg(feature = "http2")]
        if is_http2 {
            return Ok(Accepted::Http2(io, Scheme::Https));
        }
        return accept_http1(server, io, Scheme::Https, deadline).await;
    }
    #[cfg(feature = "http2")]
    if server.is_http2 {
        // If the client sends too little, the HTTP/1.1 handshake below times out and tells it so.
        let said = timeout_at(deadline, speaks_http2(&stream)).await;
        if let Ok(true) = said.unwrap_or(Ok(false)) {
            return Ok(Accepted::Http2(Transport::Tcp(stream), Scheme::Http));
        }
    }
    accept_http1(server, Transport::Tcp(stream), Scheme::Http, deadline).await
}

/// Answers with 503 and closes the connection.
pub(super) async fn refuse_overload(stream: TcpStream) {
    refuse(Transport::Tcp(stream), &unavailable("too many connections")).await;
}

async fn accept_http1(
    server: &Server,
    mut io: Transport,
    scheme: Scheme,
    deadline: Instant,
) -> Result<Accepted> {
    let read = timeout_at(deadline, read_request(server, &mut io)).await;
    let time_max = server.settings.options.handshake_timeout;
    match read.unwrap_or_else(|_| Err(HandshakeError::TimedOut { time_max }.into())) {
        Ok((request, leftover)) => Ok(Accepted::Http1(request, Http1 { io, leftover }, scheme)),
        Err(error) => {
            if let Error::Handshake(error) = error {
                refuse(io, &error.into()).await;
            }
            Err(error)
        }
    }
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
