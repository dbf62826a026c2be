//! An encrypted connection as a byte stream, which the reactor can continue.

use std::{
    cell::RefCell,
    future::poll_fn,
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use linerate_reactor::{TlsAcceptor, TlsConnection};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf},
    net::TcpStream,
};

/// The size of a read in bytes: two full records.
const READ_BYTES: usize = 32 << 10;

/// Nothing is encrypted while this many bytes are unsent.
const UNSENT_BYTES_MAX: usize = 32 << 10;

/// Nothing is read while this many bytes are unsent. Writing alone does not reach this, so that a
/// peer that only sends is read; answers of the TLS protocol could.
const READING_UNSENT_BYTES_MAX: usize = 128 << 10;

thread_local! {
    static INPUT: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
}

/// The server's end of an encrypted connection.
#[derive(Debug)]
pub(crate) struct TlsStream {
    socket: TcpStream,
    tls: TlsConnection,
}

impl TlsStream {
    /// Performs the handshake on `socket`. The caller is responsible for a timeout.
    ///
    /// # Errors
    /// The client violated the TLS protocol; an alert has been sent to it.
    pub(crate) async fn accept(acceptor: &TlsAcceptor, socket: TcpStream) -> io::Result<Self> {
        let tls = acceptor.accept()?;
        let mut stream = Self { socket, tls };
        loop {
            let opened = stream.tls.is_open();
            if let Ok(true) = opened {
                // Session tickets wait for the first answer. The HTTP server flushes before it
                // waits for a request, so that a client which waits for the end of the handshake
                // gets it.
                return Ok(stream);
            }
            stream.flush().await?;
            match opened {
                Ok(_) => poll_fn(|cx| stream.poll_receive(cx)).await?,
                Err(error) => {
                    // If the client is gone, there is nothing more to do.
                    _ = stream.socket.shutdown().await;
                    return Err(error);
                }
            }
        }
    }

    /// Returns whether the client and the server have agreed on HTTP/2.
    pub(crate) fn is_http2(&self) -> bool {
        self.tls.info().and_then(|info| info.alpn()) == Some(b"h2")
    }

    /// Returns the parts with which the reactor continues.
    pub(crate) fn into_parts(self) -> (TcpStream, TlsConnection) {
        (self.socket, self.tls)
    }

    /// Receives once.
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        INPUT.with_borrow_mut(|input| {
            let mut input = ReadBuf::new(input);
            ready!(Pin::new(&mut self.socket).poll_read(cx, &mut input))?;
            match input.filled_mut() {
                [] => self.tls.handle_eof(),
                input => self.tls.handle_input(input),
            }
            Poll::Ready(Ok(()))
        })
    }

    /// Sends what the socket accepts now. Does not register the current task, which would replace
    /// a task that waits to write.
    fn try_send(&mut self) {
        while !self.tls.unsent().is_empty()
            && let Ok(sent @ 1..) = self.socket.try_write(self.tls.unsent())
        {
            self.tls.handle_sent(sent);
        }
    }

    /// Sends until at most `unsent_bytes` bytes are unsent.
    fn poll_send(&mut self, unsent_bytes: usize, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.tls.unsent().len() > unsent_bytes {
            let socket = Pin::new(&mut self.socket);
            match ready!(socket.poll_write(cx, self.tls.unsent()))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                sent => self.tls.handle_sent(sent),
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for TlsStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            match self.tls.read(buffer.initialize_unfilled()) {
                Ok(bytes) => {
                    buffer.advance(bytes);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => {
                    // An alert explains the error to the client.
                    self.try_send();
                    return Poll::Ready(Err(error));
                }
            }
            self.try_send();
            ready!(self.poll_send(READING_UNSENT_BYTES_MAX, cx))?;
            ready!(self.poll_receive(cx))?;
        }
    }
}

impl AsyncWrite for TlsStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_send(UNSENT_BYTES_MAX, cx))?;
        let bytes = self.tls.write(slices)?;
        // What the socket does not accept now is sent by the next call.
        _ = self.poll_send(0, cx)?;
        Poll::Ready(Ok(bytes))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_send(0, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.tls.close();
        ready!(self.poll_send(0, cx))?;
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
