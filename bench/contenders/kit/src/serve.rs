//! Accepting connections and giving each a task, with TLS or without.

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
    /// An error ends the conversation and is not told: clients of a benchmark may go without a closing
    /// handshake, and notice themselves what went wrong before.
    fn talk(self, socket: impl Socket) -> impl Future<Output = Result> + Send;
}

/// Serves until the process is killed.
///
/// Conversations run without tokio's cooperative budget, as the examples of fastwebsockets and
/// tokio-websockets have it: a task gives way to others when it has nothing to read.
///
/// # Errors
///
/// The port, the certificate or a connection can't be had.
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
