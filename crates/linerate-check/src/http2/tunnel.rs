//! An HTTP/2 stream that carries a WebSocket, as a byte stream (RFC 8441 §5).

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, Waker, ready},
};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

use super::{
    FRAME_BYTES_MAX, Fields, Request,
    frame::{DATA, END_HEADERS, END_STREAM, HEADERS, frame},
    hpack::block,
    session::{Session, Stream},
};
use crate::{
    connection::{Connection, End, Fault},
    http::Head,
};

/// The number of the only stream.
const STREAM: u32 = 1;

/// An HTTP/2 connection with a single stream.
pub(crate) struct Tunnel {
    connection: Connection,
    session: Session,
    /// Bytes that wait to be written to the socket.
    output: Vec<u8>,
    has_ended: bool,
    /// The task that waits for room in the window.
    writer: Option<Waker>,
}

impl Tunnel {
    /// Requests a WebSocket, and returns the response and the stream.
    ///
    /// # Errors
    /// If the server does not speak HTTP/2, does not accept WebSockets over it, or does not answer.
    pub(crate) async fn open(connection: Connection, fields: &Fields) -> io::Result<(Head, Self)> {
        let mut tunnel = Self::greet(connection).await?;
        let request = frame(HEADERS, END_HEADERS, STREAM, block(fields));
        tunnel.output.extend(request);
        loop {
            tunnel.exchange().await?;
            let stream = tunnel.session.stream(STREAM);
            if let Some(head) = &stream.head {
                return Ok((head.clone(), tunnel));
            }
            if stream.end != End::Open {
                return Err(io::ErrorKind::ConnectionReset.into());
            }
        }
    }

    /// Exchanges settings.
    ///
    /// # Errors
    /// If the server does not speak HTTP/2, or does not accept WebSockets over it.
    pub(crate) async fn greet(connection: Connection) -> io::Result<Self> {
        let session = Session::new(None);
        let mut tunnel = Self {
            connection,
            output: session.greeting(),
            session,
            has_ended: false,
            writer: None,
        };
        while !tunnel.session.is_greeted {
            tunnel.exchange().await?;
        }
        if tunnel.session.takes_websockets {
            return Ok(tunnel);
        }
        let why = "the server does not accept WebSockets over HTTP/2 (RFC 8441 §3)";
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }

    /// Writes the pending output, and reads once.
    async fn exchange(&mut self) -> io::Result<()> {
        self.output.append(&mut self.session.output);
        self.connection.write_all(&self.output).await?;
        self.output.clear();
        self.connection.flush().await?;
        let mut buffer = [0; 16 << 10];
        let count = self.connection.read(&mut buffer).await?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.session.take(&buffer[..count]);
        match self.session.fault.take() {
            Some(fault) => Err(faulty(fault)),
            None => Ok(()),
        }
    }

    /// Writes pending output until the socket accepts no more.
    fn poll_output(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.output.append(&mut self.session.output);
        while !self.output.is_empty() {
            let written = ready!(Pin::new(&mut self.connection).poll_write(cx, &self.output))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.output.drain(..written);
        }
        Pin::new(&mut self.connection).poll_flush(cx)
    }

    /// Returns how many bytes the next DATA frame may carry.
    fn room(&mut self) -> usize {
        let window = self.session.stream(STREAM).window;
        let room = window.min(self.session.window);
        usize::try_from(room).unwrap_or(0).min(FRAME_BYTES_MAX)
    }
}

fn faulty(fault: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, Fault(fault))
}

impl AsyncRead for Tunnel {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            if let Some(fault) = this.session.fault.take() {
                return Poll::Ready(Err(faulty(fault)));
            }
            // A peer that has closed the connection accepts no output, but what it sent earlier can
            // still be read.
            _ = this.poll_output(cx)?;
            if let Some(waker) = this.writer.take_if(|_| this.session.window > 0) {
                waker.wake();
            }
            let stream = this.session.stream(STREAM);
            if !stream.data.is_empty() {
                give(stream, buffer);
                return Poll::Ready(Ok(()));
            }
            match stream.end {
                End::Fin => return Poll::Ready(Ok(())),
                End::Reset => return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
                End::Open => {}
            }
            let mut bytes = [0; 16 << 10];
            let mut read = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut this.connection).poll_read(cx, &mut read))?;
            if read.filled().is_empty() {
                // The connection has ended, but the stream has not.
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
            this.session.take(read.filled());
        }
    }
}

/// Moves received data into a buffer.
fn give(stream: &mut Stream, buffer: &mut ReadBuf<'_>) {
    let count = stream.data.len().min(buffer.remaining());
    let bytes: Vec<u8> = stream.data.drain(..count).collect();
    buffer.put_slice(&bytes);
}

impl AsyncWrite for Tunnel {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_output(cx))?;
        let count = self.room().min(bytes.len());
        if count == 0 && !bytes.is_empty() {
            self.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let data = frame(DATA, 0, STREAM, &bytes[..count]);
        self.output.extend(data);
        self.session.window -= count as i64;
        self.session.stream(STREAM).window -= count as i64;
        // What the socket does not accept now is written with the next output.
        _ = self.poll_output(cx)?;
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_output(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // RFC 8441 §5: END_STREAM corresponds to the end of a direction over TCP.
        if !self.has_ended {
            self.has_ended = true;
            let end = frame(DATA, END_STREAM, STREAM, b"");
            self.output.extend(end);
        }
        self.poll_output(cx)
    }
}

/// Returns the fields that open a WebSocket, with an optional additional one.
pub(crate) fn fields_with(request: &Request, more: Option<(&str, &str)>) -> Fields {
    let mut fields = request.connect();
    fields.extend(more.map(|(name, value)| (name.into(), value.into())));
    fields
}
