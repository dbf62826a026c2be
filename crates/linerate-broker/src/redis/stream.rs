//! The connection of a link, with or without TLS, which can be detached from the runtime for a
//! while.

use std::{
    io, mem, net,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::client::TlsStream;

/// A connection, with or without TLS.
#[derive(Debug)]
pub(super) enum Stream {
    /// The connection is lost, because the runtime did not accept it back.
    Gone,
    Plain(TcpStream),
    /// Detached from the runtime: bytes that arrive wait in the kernel until
    /// [`attach`](Self::attach).
    Detached(net::TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Detaches the connection from the runtime, so that no packet wakes it. A TLS connection is
    /// left as it is.
    ///
    /// # Errors
    /// Returns an error if the connection can no longer be used.
    pub(super) fn detach(&mut self) -> io::Result<()> {
        *self = match mem::replace(self, Self::Gone) {
            Self::Plain(stream) => Self::Detached(stream.into_std()?),
            other => other,
        };
        Ok(())
    }

    /// Undoes [`detach`](Self::detach). What has arrived can be read immediately.
    ///
    /// # Errors
    /// Returns an error if the connection can no longer be used.
    pub(super) fn attach(&mut self) -> io::Result<()> {
        *self = match mem::replace(self, Self::Gone) {
            Self::Detached(stream) => Self::Plain(TcpStream::from_std(stream)?),
            other => other,
        };
        Ok(())
    }

    /// Applies `poll` to the connection, if there is one.
    fn poll_with<T>(
        &mut self,
        poll: impl FnOnce(Pin<&mut dyn Duplex>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        match self {
            Self::Gone | Self::Detached(_) => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
            Self::Plain(stream) => poll(Pin::new(stream)),
            Self::Tls(stream) => poll(Pin::new(stream)),
        }
    }
}

/// A stream to read from and write to.
trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll_with(|stream| stream.poll_read(context, space))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_with(|stream| stream.poll_write(context, bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if matches!(*self, Self::Detached(_)) {
            return Poll::Ready(Ok(())); // Only TLS buffers output.
        }
        self.poll_with(|stream| stream.poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_with(|stream| stream.poll_shutdown(context))
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::{TcpListener, TcpStream},
    };

    use super::Stream;

    #[tokio::test]
    async fn input_that_arrives_during_a_pause_is_read_afterwards() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let ours = TcpStream::connect(listener.local_addr().unwrap()).await;
        let (mut theirs, _) = listener.accept().await.unwrap();
        let mut stream = Stream::Plain(ours.unwrap());
        let mut space = [0; 8];
        for _ in 0..3 {
            stream.detach().unwrap();
            stream.detach().unwrap();
            theirs.write_all(b"one").await.unwrap();
            assert!(stream.read(&mut space).await.is_err());
            stream.attach().unwrap();
            stream.attach().unwrap();
            stream.write_all(b"two").await.unwrap();
            stream.read_exact(&mut space[..3]).await.unwrap();
            assert_eq!(&space[..3], b"one");
            theirs.read_exact(&mut space[..3]).await.unwrap();
            assert_eq!(&space[..3], b"two");
        }
        stream.detach().unwrap();
        drop(theirs);
        stream.attach().unwrap();
        assert_eq!(stream.read(&mut space).await.unwrap(), 0);
    }
}
