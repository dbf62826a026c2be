//! The parts of a connection, for code that continues without the library.

use std::{
    fmt, io,
    pin::Pin,
    task::{Context, Poll},
};

use linerate_proto::Role;
#[cfg(feature = "deflate")]
use linerate_proto::deflate::Agreement;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::transport::Transport;

/// The parts of an open connection, including all unread input and unsent output.
///
/// To continue with the connection, process [`unread`](Self::unread) before you read from the
/// stream, and write [`unsent`](Self::unsent) before anything else.
/// [`Relay`](crate::relay::Relay) does this, and so does
/// [`WebSocket::from_parts`](crate::WebSocket::from_parts).
#[non_exhaustive]
pub struct Parts {
    /// The role of this endpoint.
    pub role: Role,
    /// The stream, including TLS if the connection uses it.
    pub stream: RawStream,
    /// Frames that have arrived but that the application has not received; the last one may be
    /// incomplete. They begin in the middle of a message if its [`Reader`](crate::Reader) was
    /// dropped.
    pub unread: Vec<u8>,
    /// Frames that were sent but not written yet; the first one may be partly written.
    pub unsent: Vec<u8>,
    /// The subprotocol that was negotiated in the opening handshake.
    pub subprotocol: Option<String>,
    /// How messages are compressed if that was negotiated in the opening handshake. `None` in the
    /// parts of a connection, because compressed ones cannot be taken apart.
    #[cfg(feature = "deflate")]
    pub deflate: Option<Agreement>,
}

impl Parts {
    /// Creates the parts of a connection from a stream on which the opening handshake is complete
    /// and from which nothing has been read since.
    pub fn new<S>(stream: S, role: Role) -> Self
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        Self {
            role,
            stream: RawStream(Transport::new(stream)),
            unread: Vec::new(),
            unsent: Vec::new(),
            subprotocol: None,
            #[cfg(feature = "deflate")]
            deflate: None,
        }
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts")
            .field("role", &self.role)
            .field("unread_bytes", &self.unread.len())
            .field("unsent_bytes", &self.unsent.len())
            .finish_non_exhaustive()
    }
}

/// Why a connection cannot be taken apart.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PartsError {
    /// The connection is closing or closed.
    #[error("connection is closing or closed")]
    Closed,
    /// Messages may be compressed, so that later messages depend on earlier ones.
    #[error("connection may compress messages; open it with compression disabled")]
    Compressed,
    /// A [`Writer`](crate::Writer) has started a message and not finished it.
    #[error("a message is still being sent in fragments")]
    MessageInProgress,
}

/// The byte stream of a connection.
pub struct RawStream(pub(crate) Transport);

impl fmt::Debug for RawStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawStream").finish_non_exhaustive()
    }
}

impl AsyncRead for RawStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for RawStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, slices)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
