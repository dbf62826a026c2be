//! A test server on its own port.

use std::net::SocketAddr;

#[cfg(any(feature = "http2", feature = "http3"))]
use linerate::CloseCode;
use linerate::{Incoming, Request, Result, Server, WebSocket};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

#[cfg(any(feature = "http2", feature = "http3"))]
use crate::raw::in_time;

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

    /// Starts a server whose handler decides about each request.
    pub(crate) async fn start_incoming<H, F>(server: Server, handler: H) -> Self
    where
        H: Fn(Incoming) -> F + Send + Sync + 'static,
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let shutdown = async { _ = stopped.await };
        let task = tokio::spawn(server.serve_incoming(listener, handler, shutdown));
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

    /// Drops the future of the server; open connections stay open.
    pub(crate) fn abort(self) {
        self.task.abort();
    }

    /// Stops the server and waits for its end.
    pub(crate) async fn stop(self) {
        _ = self.stop.send(());
        self.task.await.unwrap().unwrap();
    }
}

/// Echoes each message.
pub(crate) async fn echo(ws: WebSocket, _request: Request) -> Result<()> {
    echo_on(ws).await
}

/// Echoes each message.
pub(crate) async fn echo_on(mut ws: WebSocket) -> Result<()> {
    while let Some(message) = ws.recv().await? {
        ws.send(message).await?;
    }
    Ok(())
}

/// Returns whether a connection, if there is one, continues after the future of its server was
/// dropped. Also returns the number of dropped futures, which is 0 if the future had completed.
#[cfg(any(feature = "http2", feature = "http3"))]
pub(crate) async fn outlives(
    opened: Option<WebSocket>,
    serving: JoinHandle<Option<std::io::Result<()>>>,
) -> (bool, usize) {
    let code = match opened {
        Some(ws) => Some(how_it_ended(ws).await),
        None => None,
    };
    match in_time(serving).await.unwrap() {
        Some(served) => {
            served.unwrap();
            (false, 0)
        }
        None => {
            assert!(matches!(code, None | Some(1000 | 1001)), "{code:?}");
            (code == Some(1000), 1)
        }
    }
}

/// Sends a message to a server that echoes it or is about to shut down. Returns the code with which
/// the server, or eventually the client, closes the connection.
#[cfg(any(feature = "http2", feature = "http3"))]
async fn how_it_ended(mut ws: WebSocket) -> u16 {
    if in_time(ws.send("Spam")).await.is_ok() {
        while let Some(message) = in_time(ws.recv()).await.unwrap() {
            assert_eq!(message, "Spam".into());
            _ = in_time(ws.close(CloseCode::NORMAL, "")).await.unwrap();
        }
    }
    let closed = in_time(ws.close(CloseCode::NORMAL, "")).await.unwrap();
    assert!(closed.clean);
    closed.code
}
