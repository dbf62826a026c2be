//! What a connection is made of, for those who go on without the library.

use std::{
    fmt, io,
    pin::Pin,
    task::{Context, Poll},
};

use linerate_proto::Role;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::link::Transport;

/// What an open connection is made of; nothing of what has arrived or is to be sent is lost.
///
/// Whoever goes on with it reads [`unread`](Self::unread) before the stream, and writes
/// [`unsent`](Self::unsent) before anything else. [`Relay`](crate::Relay) does so.
#[non_exhaustive]
pub struct Parts {
    /// Which end this is.
    pub role: Role,
    /// The stream, TLS included.
    pub stream: RawStream,
    /// Frames, the last of them maybe not whole, that have arrived and that the application has not
    /// received. They begin in the middle of a message if a [`Reader`](crate::Reader) of it was
    /// dropped.
    pub unread: Vec<u8>,
    /// Frames, the first of them maybe begun to be written, that were sent and not written yet.
    pub unsent: Vec<u8>,
    /// The subprotocol that the opening handshake agreed on.
    pub subprotocol: Option<String>,
}

impl Parts {
    /// Takes a stream on which the opening handshake is over, and of which nothing was read since.
    pub fn new<S>(stream: S, role: Role) -> Self
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        Self {
            role,
            stream: RawStream(Transport::Other(Box::new(stream))),
            unread: Vec::new(),
            unsent: Vec::new(),
            subprotocol: None,
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

/// Why a connection can't be taken apart.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum PartsError {
    /// It is closing or closed.
    Closed,
    /// Messages may be compressed, and what comes refers to what has come.
    Compressed,
    /// A message was begun and not ended by a [`Writer`](crate::Writer).
    MessageInProgress,
}

impl fmt::Display for PartsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "connection is closing or closed",
            Self::Compressed => "messages of the connection may be compressed",
            Self::MessageInProgress => "a message was begun and not ended",
        })
    }
}

impl std::error::Error for PartsError {}

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
