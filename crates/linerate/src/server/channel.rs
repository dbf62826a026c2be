//! The place where a request is answered, over any version of HTTP.

#[cfg(feature = "http2")]
use std::sync::Arc;
use std::{
    future::poll_fn,
    io,
    pin::Pin,
    task::{Poll, ready},
    time::Duration,
};

#[cfg(feature = "http2")]
use linerate_proto::handshake::HttpVersion;
use linerate_proto::handshake::{Acceptance, Refusal};
use tokio::{
    io::{AsyncRead, AsyncWriteExt, ReadBuf},
    time::Instant,
};

#[cfg(feature = "http3")]
use crate::describe::describe_quic;
use crate::{
    Result,
    describe::describe,
    info::ConnectionInfo,
    pool::{self, ReadSize},
    runtime::{Elapsed, RuntimeHandle},
    transport::Transport,
};

/// How long a refused client may take to read the refusal.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// A stream on which a request has arrived.
#[allow(
    clippy::large_enum_variant,
    reason = "it exists only until the request is answered"
)]
pub(super) enum Channel {
    Http1(Http1),
    #[cfg(feature = "http2")]
    Http2(linerate_h2::Incoming, Arc<ConnectionInfo>),
    #[cfg(feature = "http3")]
    Http3(linerate_h3::Incoming),
}

/// A connection of HTTP/1.1.
pub(super) struct Http1 {
    pub(super) io: Transport,
    /// The bytes after the request, which are the client's first frames.
    pub(super) leftover: Vec<u8>,
}

impl Channel {
    /// Opens the WebSocket; returns its byte stream and the bytes that were already read from it.
    pub(super) async fn accept(
        self,
        acceptance: &Acceptance<'_>,
        deadline: Instant,
        runtime: &RuntimeHandle,
    ) -> Result<(Transport, Vec<u8>)> {
        match self {
            Self::Http1(mut http1) => {
                http1.accept(acceptance, deadline, runtime).await?;
                Ok((http1.io, http1.leftover))
            }
            #[cfg(feature = "http2")]
            Self::Http2(incoming, connection) => {
                let stream = incoming.accept(linerate_h2::response(acceptance)?)?;
                Ok((Transport::http2(stream, Some(connection)), Vec::new()))
            }
            #[cfg(feature = "http3")]
            Self::Http3(incoming) => {
                let response = linerate_h3::response(acceptance);
                let budget = deadline.saturating_duration_since(Instant::now());
                let stream = incoming.accept(&response, budget).await?;
                Ok((Transport::Other(Box::new(stream)), Vec::new()))
            }
        }
    }

    /// Refuses the request, and waits for a moment until the client has read the refusal.
    pub(super) async fn refuse(self, refusal: &Refusal, runtime: &RuntimeHandle) {
        match self {
            Self::Http1(http1) => refuse(http1.io, refusal, runtime).await,
            #[cfg(feature = "http2")]
            Self::Http2(incoming, _) => {
                if let Err(error) = incoming.refuse(refusal) {
                    tracing::debug!(%error, "refusal not delivered");
                }
            }
            #[cfg(feature = "http3")]
            Self::Http3(incoming) => incoming.refuse(refusal).await,
        }
    }

    /// Returns what is known about the connection.
    pub(super) fn info(&self) -> ConnectionInfo {
        match self {
            Self::Http1(http1) => describe(&http1.io),
            #[cfg(feature = "http2")]
            Self::Http2(_, connection) => ConnectionInfo {
                http_version: HttpVersion::Http2,
                ..ConnectionInfo::clone(connection)
            },
            #[cfg(feature = "http3")]
            Self::Http3(incoming) => describe_quic(incoming.connection()),
        }
    }

    /// Waits until the client has disconnected or reset the stream. Stores at most `bytes_max`
    /// bytes of what it sends before that happens, and leaves the rest unread.
    ///
    /// Dropping the future loses nothing.
    pub(super) async fn gone(&mut self, bytes_max: usize) {
        match self {
            Self::Http1(http1) => http1.gone(bytes_max).await,
            #[cfg(feature = "http2")]
            Self::Http2(incoming, _) => incoming.gone().await,
            #[cfg(feature = "http3")]
            Self::Http3(incoming) => incoming.gone().await,
        }
    }
}

impl Http1 {
    async fn accept(
        &mut self,
        acceptance: &Acceptance<'_>,
        deadline: Instant,
        runtime: &RuntimeHandle,
    ) -> Result<()> {
        let mut response = Vec::new();
        acceptance.encode(&mut response);
        let sent = runtime.timeout_at(deadline, async {
            self.io.write_all(&response).await?;
            self.io.flush().await
        });
        Ok(sent
            .await
            .unwrap_or_else(|Elapsed| Err(io::ErrorKind::TimedOut.into()))?)
    }

    async fn gone(&mut self, bytes_max: usize) {
        loop {
            let room = bytes_max.saturating_sub(self.leftover.len());
            if room == 0 {
                return std::future::pending().await;
            }
            let read = poll_fn(|cx| {
                pool::with_read_buffer(ReadSize::Usual, |buffer| {
                    let bytes = room.min(buffer.len());
                    let mut read = ReadBuf::new(&mut buffer[..bytes]);
                    ready!(Pin::new(&mut self.io).poll_read(cx, &mut read))?;
                    self.leftover.extend_from_slice(read.filled());
                    Poll::Ready(Ok::<_, io::Error>(read.filled().len()))
                })
            });
            if !matches!(read.await, Ok(1..)) {
                return;
            }
        }
    }
}

/// Sends a refusal and waits until the client has read it or [`REFUSAL_TIMEOUT`] is over.
pub(super) async fn refuse(mut io: Transport, refusal: &Refusal, runtime: &RuntimeHandle) {
    let mut response = Vec::new();
    refusal.encode(&mut response);
    let send = async {
        io.write_all(&response).await?;
        io.shutdown().await?;
        drain(&mut io).await;
        Ok::<_, io::Error>(())
    };
    if let Ok(Err(error)) = runtime.timeout(REFUSAL_TIMEOUT, send).await {
        tracing::debug!(%error, "refusal not delivered");
    }
}

/// Reads what the client still sends, so that closing does not reset the connection before the
/// client has read the answer. The number of bytes is limited here, the time by the caller.
async fn drain(io: &mut Transport) {
    const BYTES_MAX: usize = 1 << 20;
    let mut drained = 0;
    while drained < BYTES_MAX {
        let read = io.read_with(|input| Ok::<_, io::Error>(input.len()));
        match read.await {
            Ok(bytes) if bytes > 0 => drained += bytes,
            _ => return,
        }
    }
}
