//! Where a server gets its connections from.

use std::{future::Future, io};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
};

/// A source of connections, for example a [`TcpListener`] or a Unix socket.
///
/// A socket that was opened before the process started, for example by systemd, becomes a listener
/// with [`TcpListener::from_std`].
///
/// Implement this for listeners that prepare their connections, or for streams that do not come
/// from sockets:
///
/// ```
/// use linerate::{Client, Listener, Server};
/// use std::io;
/// use tokio::{io::{DuplexStream, duplex}, sync::mpsc};
///
/// /// Accepts one end of each pipe that is sent to it.
/// struct Pipes(mpsc::UnboundedReceiver<DuplexStream>);
///
/// impl Listener for Pipes {
///     type Stream = DuplexStream;
///
///     async fn accept(&mut self) -> io::Result<DuplexStream> {
///         match self.0.recv().await {
///             Some(pipe) => Ok(pipe),
///             None => std::future::pending().await,
///         }
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> linerate::Result<()> {
/// let (pipes, accepted) = mpsc::unbounded_channel();
/// let handler = |mut ws: linerate::WebSocket, _| async move { ws.send("hello").await };
/// tokio::spawn(Server::new().serve(Pipes(accepted), handler, std::future::pending()));
///
/// let (ours, theirs) = duplex(4096);
/// pipes.send(theirs).expect("the server runs");
/// let mut ws = Client::new().connect_over(ours, "ws://localhost/").await?;
/// assert_eq!(ws.recv().await?, Some("hello".into()));
/// # Ok(())
/// # }
/// ```
pub trait Listener: Send {
    /// The type of the connections.
    type Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static;

    /// Waits for the next connection.
    ///
    /// The server drops the future when it shuts down. It ends if an error of the kind
    /// `InvalidInput` or `NotConnected` is returned, and calls again after other errors.
    fn accept(&mut self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    async fn accept(&mut self) -> io::Result<TcpStream> {
        Ok(Self::accept(self).await?.0)
    }
}

#[cfg(unix)]
impl Listener for tokio::net::UnixListener {
    type Stream = tokio::net::UnixStream;

    async fn accept(&mut self) -> io::Result<tokio::net::UnixStream> {
        Ok(Self::accept(self).await?.0)
    }
}
