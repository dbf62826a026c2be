//! A server on a port of its own.

use std::net::SocketAddr;

use linerate::{Request, Result, Server, WebSocket};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

/// A server that runs until it is stopped.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<std::io::Result<()>>,
}

impl Running {
    pub(crate) async fn start<H, F>(server: Server, handler: H) -> Self
    where
        H: Fn(WebSocket, Request) -> F + Send + Sync + 'static,
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(server.serve(listener, handler, async { _ = stopped.await }));
        Self {
            address,
            stop,
            task,
        }
    }

    pub(crate) async fn echo() -> Self {
        Self::start(Server::new(), echo).await
    }

    pub(crate) fn url(&self) -> String {
        format!("ws://{}/", self.address)
    }

    /// Drops the future of the server; connections that are open stay.
    pub(crate) fn abort(self) {
        self.task.abort();
    }

    /// Stops the server and waits for its end.
    pub(crate) async fn stop(self) {
        _ = self.stop.send(());
        self.task.await.unwrap().unwrap();
    }
}

/// Sends each message back.
pub(crate) async fn echo(mut ws: WebSocket, _request: Request) -> Result<()> {
    while let Some(message) = ws.recv().await? {
        ws.send(message).await?;
    }
    Ok(())
}
