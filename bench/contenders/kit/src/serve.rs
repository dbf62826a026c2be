//! Accepts connections and spawns a task for each, with or without TLS.

use std::future::Future;

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    task::unconstrained,
};
use tokio_rustls::TlsAcceptor;

use crate::{Arguments, Result, on_each_thread, server_config};

/// A connection's transport: a TCP stream, or a TLS stream on one.
pub trait Socket: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Socket for S {}

/// A server's program.
pub trait Program: Clone + Send + Sync + 'static {
    /// Talks with one client, from the opening handshake to the end.
    ///
    /// An error ends the connection and is not reported: clients of a benchmark may leave without a
    /// closing handshake, and detect earlier errors themselves.
    fn talk(self, socket: impl Socket) -> impl Future<Output = Result> + Send;
}

/// Serves until the process is killed.
///
/// Connections run without tokio's cooperative budget, as in the examples of fastwebsockets and
/// tokio-websockets: a task yields to others when it has nothing to read.
///
/// # Errors
///
/// The port or the certificate is unavailable, or accepting a connection failed.
pub fn serve(arguments: &Arguments, program: impl Program) -> Result {
    let tls = server_config(arguments)?.map(TlsAcceptor::from);
    on_each_thread(arguments, move |listener| {
        accept(listener, tls.clone(), program.clone())
    })
}

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, program: impl Program) -> Result {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let program = program.clone();
        match tls.clone() {
            None => tokio::spawn(unconstrained(program.talk(stream))),
            Some(tls) => tokio::spawn(unconstrained(async move {
                program.talk(tls.accept(stream).await?).await
            })),
        };
    }
}
