//! A new connection, up to its first request: TLS, the detection of HTTP/2, and the request of
//! HTTP/1.1.

#[cfg(feature = "http2")]
use std::io;

#[cfg(feature = "http2")]
use linerate_h2::is_http2;
use linerate_proto::handshake::{HandshakeError, Request, RequestReader, Scheme};
use tokio::time::Instant;

use super::{
    Server,
    channel::{Http1, refuse},
    pending::unavailable,
};
use crate::{
    Error, Result,
    runtime::{Elapsed, RuntimeHandle},
    transport::Transport,
};

/// The result of accepting a connection.
#[allow(
    clippy::large_enum_variant,
    reason = "it is moved once, and not stored"
)]
pub(super) enum Accepted {
    /// It speaks HTTP/2.
    #[cfg(feature = "http2")]
    Http2(Transport, Scheme),
    /// It has sent this request of HTTP/1.1.
    Http1(Request, Http1, Scheme),
}

/// Takes a new connection through the TLS handshake, if TLS is enabled, and reads the request of
/// HTTP/1.1. All of this must end before `deadline`.
pub(super) async fn accept(server: &Server, io: Transport, deadline: Instant) -> Result<Accepted> {
    let prepared = prepare(server, io, deadline).await?;
    #[cfg(feature = "http2")]
    if server.speaks_http2() {
        return accept_any(server, prepared, deadline).await;
    }
    let Prepared { io, scheme, .. } = prepared;
    let (request, http1) = read_http1(server, io, Vec::new(), deadline).await?;
    Ok(Accepted::Http1(request, http1, scheme))
}

/// Like [`accept`], for HTTP/1.1 only.
pub(super) async fn accept_http1(
    server: &Server,
    io: Transport,
    deadline: Instant,
) -> Result<(Request, Http1, Scheme)> {
    let Prepared { io, scheme, .. } = prepare(server, io, deadline).await?;
    let (request, http1) = read_http1(server, io, Vec::new(), deadline).await?;
    Ok((request, http1, scheme))
}

/// Answers with 503 and closes the connection.
pub(super) async fn refuse_overload(io: Transport, runtime: RuntimeHandle) {
    refuse(io, &unavailable("too many connections"), &runtime).await;
}

/// A connection on which HTTP can be spoken.
struct Prepared {
    io: Transport,
    scheme: Scheme,
    /// True if ALPN has selected HTTP/2.
    #[cfg_attr(
        not(feature = "http2"),
        expect(dead_code, reason = "only HTTP/1.1 is offered")
    )]
    is_http2: bool,
}

/// Performs the TLS handshake, if TLS is enabled.
#[cfg_attr(
    not(feature = "rustls"),
    expect(unused_variables, reason = "only TLS depends on them")
)]
async fn prepare(server: &Server, io: Transport, deadline: Instant) -> Result<Prepared> {
    if let Transport::Tcp(stream) = &io {
        stream.set_nodelay(true)?;
    }
    #[cfg(feature = "rustls")]
    if let Some(tls) = &server.tls {
        // Before TLS is established, there is no way to tell the client that it timed out.
        let budget = server.settings.options.handshake_timeout;
        let secured = crate::tls::accept(tls.clone(), io);
        let secured = server.runtime.timeout_at(deadline, secured).await;
        let stream = secured.map_err(|Elapsed| Error::HandshakeTimeout { budget })??;
        return Ok(Prepared {
            is_http2: stream.get_ref().1.alpn_protocol() == Some(b"h2"),
            io: Transport::Other(Box::new(stream)),
            scheme: Scheme::Https,
        });
    }
    Ok(Prepared {
        io,
        scheme: Scheme::Http,
        is_http2: false,
    })
}

/// Detects the HTTP version.
#[cfg(feature = "http2")]
async fn accept_any(server: &Server, prepared: Prepared, deadline: Instant) -> Result<Accepted> {
    let Prepared {
        mut io,
        scheme,
        is_http2,
    } = prepared;
    if is_http2 {
        return Ok(Accepted::Http2(io, scheme));
    }
    let mut unread = Vec::new();
    if scheme == Scheme::Http {
        // If the client sends too little, reading the request below times out and tells it so.
        let sniffed = sniff(&mut io, &mut unread);
        let sniffed = server.runtime.timeout_at(deadline, sniffed).await;
        if sniffed.unwrap_or(Ok(false))? {
            return Ok(Accepted::Http2(io.rewind(unread, Vec::new()), scheme));
        }
    }
    let (request, http1) = read_http1(server, io, unread, deadline).await?;
    Ok(Accepted::Http1(request, http1, scheme))
}

/// Reads until it is clear whether the client speaks HTTP/2; appends what it reads to `unread`.
#[cfg(feature = "http2")]
async fn sniff(io: &mut Transport, unread: &mut Vec<u8>) -> io::Result<bool> {
    loop {
        let read = io.read_with(|input| {
            unread.extend_from_slice(input);
            Ok::<_, io::Error>(input.is_empty())
        });
        let is_over = read.await?;
        match is_http2(unread) {
            Some(verdict) => return Ok(verdict),
            None if is_over => return Ok(false),
            None => {}
        }
    }
}

/// Reads the request; `unread` was already read.
async fn read_http1(
    server: &Server,
    mut io: Transport,
    unread: Vec<u8>,
    deadline: Instant,
) -> Result<(Request, Http1)> {
    let read = read_request(server, &mut io, unread);
    let read = server.runtime.timeout_at(deadline, read).await;
    let time_max = server.settings.options.handshake_timeout;
    match read.unwrap_or_else(|Elapsed| Err(HandshakeError::TimedOut { time_max }.into())) {
        Ok((request, leftover)) => Ok((request, Http1 { io, leftover })),
        Err(error) => {
            if let Error::Handshake(error) = error {
                refuse(io, &error.into(), &server.runtime).await;
            }
            Err(error)
        }
    }
}

/// Reads the request; also returns the bytes after it, which are the client's first frames.
async fn read_request(
    server: &Server,
    io: &mut Transport,
    unread: Vec<u8>,
) -> Result<(Request, Vec<u8>)> {
    let mut reader = RequestReader::new(server.settings.options.handshake);
    let mut handle = |input: &[u8]| {
        let found = reader.handle_input(input)?;
        Ok::<_, Error>(found.map(|(request, head_bytes)| (request, input[head_bytes..].to_vec())))
    };
    if !unread.is_empty()
        && let Some(found) = handle(&unread)?
    {
        return Ok(found);
    }
    loop {
        let read = io.read_with(|input| match input {
            [] => Ok(None),
            input => handle(input).map(Some),
        });
        match read.await? {
            Some(Some(found)) => return Ok(found),
            Some(None) => {}
            None => {
                reader.handle_eof()?;
                return Err(Error::Abnormal);
            }
        }
    }
}
