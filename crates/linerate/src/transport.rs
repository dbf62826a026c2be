//! The byte stream to the peer.

mod rewound;

#[cfg(feature = "http2")]
use std::sync::Arc;
use std::{
    any::Any,
    future::poll_fn,
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

#[cfg(feature = "http2")]
use crate::info::ConnectionInfo;
use crate::pool::{self, ReadSize};

pub(crate) use rewound::Rewound;

/// Any byte stream.
pub(crate) trait Io: AsyncRead + AsyncWrite + Send + Unpin {
    /// Returns the stream, whose type a caller may know.
    fn as_any(&self) -> &dyn Any;
}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Io for T {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A byte stream. A plain socket, which is the common case, needs no allocation.
pub(crate) enum Transport {
    #[cfg(feature = "http2")]
    Http2(Box<Http2Stream>),
    Other(Box<dyn Io>),
    Tcp(TcpStream),
}

/// A stream of an HTTP/2 connection.
#[cfg(feature = "http2")]
pub(crate) struct Http2Stream {
    pub(crate) stream: linerate_h2::Stream,
    /// The connection, if the library has set it up itself.
    pub(crate) connection: Option<Arc<ConnectionInfo>>,
}

impl Transport {
    /// Wraps a stream of any type.
    pub(crate) fn new<S>(stream: S) -> Self
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let mut stream = Some(stream);
        let any: &mut dyn Any = &mut stream;
        let tcp = any
            .downcast_mut::<Option<TcpStream>>()
            .and_then(Option::take);
        let other = |stream| Self::Other(Box::new(stream));
        tcp.map(Self::Tcp)
            .or_else(|| stream.map(other))
            .expect("only a plain socket has been taken")
    }

    /// Wraps a stream of an HTTP/2 connection.
    #[cfg(feature = "http2")]
    pub(crate) fn http2(
        stream: linerate_h2::Stream,
        connection: Option<Arc<ConnectionInfo>>,
    ) -> Self {
        Self::Http2(Box::new(Http2Stream { stream, connection }))
    }

    /// Wraps a stream; `unread` was already read from it, and `unsent` is to be written first.
    pub(crate) fn rewind(self, unread: Vec<u8>, unsent: Vec<u8>) -> Self {
        match unread.is_empty() && unsent.is_empty() {
            true => self,
            false => Self::Other(Box::new(Rewound::new(self, unread, unsent))),
        }
    }

    /// Tells an HTTP/2 stream that nothing will be read for now.
    #[cfg(feature = "http2")]
    pub(crate) fn hold(&mut self, cx: &mut Context<'_>) {
        if let Self::Http2(stream) = self {
            stream.stream.hold(cx);
        }
    }

    /// Returns how many bytes of input the stream holds.
    pub(crate) fn held_bytes(&self) -> usize {
        match self {
            #[cfg(feature = "http2")]
            Self::Http2(stream) => stream.stream.held_bytes(),
            _ => 0,
        }
    }

    /// Reads once into the thread's read buffer and passes what arrived to `handle`; no bytes mean
    /// that the stream has ended.
    pub(crate) async fn read_with<T, E: From<io::Error>>(
        &mut self,
        mut handle: impl FnMut(&[u8]) -> Result<T, E>,
    ) -> Result<T, E> {
        poll_fn(|cx| {
            pool::with_read_buffer(ReadSize::Usual, |buffer| {
                let mut read = ReadBuf::new(buffer);
                ready!(Pin::new(&mut *self).poll_read(cx, &mut read))?;
                Poll::Ready(handle(read.filled()))
            })
        })
        .await
    }

    fn as_io(self: Pin<&mut Self>) -> Pin<&mut dyn Io> {
        match self.get_mut() {
            #[cfg(feature = "http2")]
            Self::Http2(stream) => Pin::new(&mut stream.stream),
            Self::Other(io) => Pin::new(io.as_mut()),
            Self::Tcp(stream) => Pin::new(stream),
        }
    }
}

impl AsyncRead for Transport {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.as_io().poll_read(cx, buffer)
    }
}

impl AsyncWrite for Transport {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.as_io().poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.as_io().poll_write_vectored(cx, slices)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.as_io().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.as_io().poll_shutdown(cx)
    }
}
