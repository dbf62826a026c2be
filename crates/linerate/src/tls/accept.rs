//! The server side of TLS. It inspects the client's first message before rustls does, so that the
//! client receives the correct alert if something is wrong with it (RFC 8446 §6.2, RFC 8996).

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use linerate_tls::{HelloError, HelloReader};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// Performs the server's TLS handshake on `io`. The caller is responsible for a timeout.
///
/// # Errors
/// The client violated the TLS protocol; an alert has been sent to it.
pub async fn accept<S>(config: Arc<ServerConfig>, io: S) -> io::Result<TlsStream<HelloInspector<S>>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let inspector = HelloInspector {
        io,
        hello: Some(HelloReader::new()),
        refused: None,
    };
    let accepted = TlsAcceptor::from(config).accept(inspector).into_fallible();
    match accepted.await {
        Ok(stream) => Ok(stream),
        Err((error, mut inspector)) => {
            inspector.refuse().await;
            Err(error)
        }
    }
}

/// A socket whose first bytes are inspected.
#[derive(Debug)]
pub struct HelloInspector<S> {
    io: S,
    /// The reader of the client's hello; `None` once the hello is complete.
    hello: Option<HelloReader>,
    refused: Option<HelloError>,
}

impl<S: AsyncWrite + Unpin> HelloInspector<S> {
    /// Sends the alert that explains the refusal.
    async fn refuse(&mut self) {
        let Some(record) = self.refused.and_then(|refused| refused.record()) else {
            return;
        };
        // If the client is gone, there is nothing more to do.
        if self.io.write_all(&record).await.is_ok() {
            _ = self.io.shutdown().await;
        }
    }
}

impl<S> HelloInspector<S> {
    /// Returns the socket.
    pub const fn get_ref(&self) -> &S {
        &self.io
    }

    /// Inspects bytes that were read.
    fn look_at(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(hello) = &mut self.hello else {
            return Ok(());
        };
        match hello.handle_input(bytes) {
            Ok(false) => Ok(()),
            Ok(true) => {
                self.hello = None;
                Ok(())
            }
            Err(error) => {
                self.refused = Some(error);
                Err(io::Error::new(io::ErrorKind::InvalidData, error))
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for HelloInspector<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.io).poll_read(cx, buffer))?;
        let looked = self.look_at(&buffer.filled()[before..]);
        if looked.is_err() {
            buffer.set_filled(before);
        }
        Poll::Ready(looked)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for HelloInspector<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
