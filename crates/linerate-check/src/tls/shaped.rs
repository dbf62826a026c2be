//! TLS streams that are cut into small pieces, and that can end in unusual ways.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::TlsStream;

use super::{Ending, HANDSHAKE, Shape, forge::forge};
use crate::connection::Fault;

/// A socket that writes at most `bytes_max` bytes at a time.
pub(crate) struct Segments {
    tcp: TcpStream,
    bytes_max: usize,
}

impl Segments {
    pub(crate) fn new(tcp: TcpStream, shape: Shape) -> Self {
        let bytes_max = shape.segment_bytes_max.unwrap_or(usize::MAX);
        Self { tcp, bytes_max }
    }
}

impl AsyncRead for Segments {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Segments {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let count = bytes.len().min(self.bytes_max);
        Pin::new(&mut self.tcp).poll_write(cx, &bytes[..count])
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}

/// A TLS connection with a [`Shape`].
pub(crate) struct ShapedStream {
    stream: Stream,
    shape: Shape,
}

enum Stream {
    Tls(Box<TlsStream<Segments>>),
    /// The TLS connection has been taken apart; these last bytes are still to be written.
    Bare(Segments, Vec<u8>),
    /// The TLS connection could not be taken apart.
    Gone,
}

impl ShapedStream {
    pub(crate) fn new(stream: impl Into<TlsStream<Segments>>, shape: Shape) -> Self {
        Self {
            stream: Stream::Tls(Box::new(stream.into())),
            shape,
        }
    }

    /// Takes the TLS connection apart, if it is to end with bytes of our choice.
    fn end(&mut self) -> io::Result<()> {
        let stream = match std::mem::replace(&mut self.stream, Stream::Gone) {
            Stream::Tls(stream) => stream,
            other => {
                self.stream = other;
                return Ok(());
            }
        };
        let (io, bytes) = match self.shape.ending {
            Ending::CloseNotify | Ending::Truncated => {
                self.stream = Stream::Tls(stream);
                return Ok(());
            }
            Ending::Bare(bytes) => (into_socket(*stream), bytes.to_vec()),
            Ending::Record(kind, content) => forge(*stream, kind, content)?,
        };
        self.stream = Stream::Bare(io, bytes);
        Ok(())
    }
}

fn into_socket<S>(stream: TlsStream<S>) -> S {
    match stream {
        TlsStream::Client(stream) => stream.into_inner().0,
        TlsStream::Server(stream) => stream.into_inner().0,
    }
}

/// Reads and discards records, which can no longer be decrypted, until the end of the connection.
/// Fails if a TLS 1.2 peer starts a handshake.
fn poll_end(io: &mut Segments, is_tls12: bool, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
    loop {
        let mut bytes = [0; 1 << 10];
        let mut buffer = ReadBuf::new(&mut bytes);
        ready!(Pin::new(&mut *io).poll_read(cx, &mut buffer))?;
        match buffer.filled() {
            [] => return Poll::Ready(Ok(())),
            // TLS 1.3 encrypts the type of all records.
            [HANDSHAKE, ..] if is_tls12 => {
                let fault = Fault("a handshake in answer to an insecure renegotiation".into());
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, fault)));
            }
            _ => {}
        }
    }
}

impl AsyncRead for ShapedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let is_tls12 = self.shape.is_tls12;
        match &mut self.stream {
            Stream::Tls(tls) => Pin::new(tls).poll_read(cx, buffer),
            Stream::Bare(io, _) => poll_end(io, is_tls12, cx),
            Stream::Gone => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }
}

impl AsyncWrite for ShapedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let bytes_max = self.shape.write_bytes_max.unwrap_or(usize::MAX);
        let count = bytes.len().min(bytes_max);
        match &mut self.stream {
            Stream::Tls(tls) => Pin::new(tls).poll_write(cx, &bytes[..count]),
            Stream::Bare(..) | Stream::Gone => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Tls(tls) => Pin::new(tls).poll_flush(cx),
            Stream::Bare(..) | Stream::Gone => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.end()?;
        let is_truncated = self.shape.ending == Ending::Truncated;
        match &mut self.stream {
            Stream::Tls(tls) if is_truncated => match &mut **tls {
                TlsStream::Client(tls) => Pin::new(&mut tls.get_mut().0.tcp).poll_shutdown(cx),
                TlsStream::Server(tls) => Pin::new(&mut tls.get_mut().0.tcp).poll_shutdown(cx),
            },
            Stream::Tls(tls) => Pin::new(tls).poll_shutdown(cx),
            Stream::Bare(io, bytes) => {
                while !bytes.is_empty() {
                    let count = ready!(Pin::new(&mut *io).poll_write(cx, bytes))?;
                    bytes.drain(..count);
                }
                Poll::Ready(Ok(()))
            }
            Stream::Gone => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }
}
