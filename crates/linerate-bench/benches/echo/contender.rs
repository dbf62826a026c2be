//! The servers, each with default settings and written like the echo server in its library's
//! examples.
//!
//! If a library can combine replies when the server is written in another way, that way is a
//! separate contender.

use std::future::Future;
use std::io;

use anyhow::bail;
use fastwebsockets::{FragmentCollector, OpCode, WebSocketError};
use futures_util::{SinkExt, StreamExt, TryStreamExt, future};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::unconstrained;
use tokio_tungstenite::tungstenite;

/// A server that takes part in the comparison.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Contender {
    FastWebSockets,
    Linerate,
    RawTcp,
    TokioTungsteniteForward,
    TokioTungsteniteSend,
    TokioWebSocketsForward,
    TokioWebSocketsSend,
}

impl Contender {
    /// All contenders, in the order of the report.
    pub(crate) const ALL: [Self; 7] = [
        Self::Linerate,
        Self::TokioTungsteniteForward,
        Self::TokioTungsteniteSend,
        Self::TokioWebSocketsForward,
        Self::TokioWebSocketsSend,
        Self::FastWebSockets,
        Self::RawTcp,
    ];

    pub(crate) fn from_name(name: &str) -> anyhow::Result<Self> {
        match Self::ALL
            .into_iter()
            .find(|contender| contender.name() == name)
        {
            Some(contender) => Ok(contender),
            None => bail!("no contender is named {name:?}"),
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::FastWebSockets => "fastwebsockets",
            Self::Linerate => "linerate",
            Self::RawTcp => "raw-tcp",
            Self::TokioTungsteniteForward => "tokio-tungstenite/forward",
            Self::TokioTungsteniteSend => "tokio-tungstenite/send",
            Self::TokioWebSocketsForward => "tokio-websockets/forward",
            Self::TokioWebSocketsSend => "tokio-websockets/send",
        }
    }

    /// Describes the server's program and the settings that differ from the library's defaults.
    pub(crate) const fn description(self) -> &'static str {
        match self {
            Self::FastWebSockets => {
                "0.10.0: FragmentCollector, read_frame and write_frame, unconstrained; hyper upgrade"
            }
            Self::Linerate => "recv and send; keepalive on, as by default",
            Self::RawTcp => {
                "reads and writes whatever bytes arrive, without WebSocket; an upper bound"
            }
            Self::TokioTungsteniteForward => {
                "0.30.0: split, forward (flushes when no input is left)"
            }
            Self::TokioTungsteniteSend => "0.30.0: next and send (flushes each message)",
            Self::TokioWebSocketsForward => {
                "0.13.3: split, forward (flushes when no input is left), unconstrained"
            }
            Self::TokioWebSocketsSend => {
                "0.13.3: next and send (flushes each message), unconstrained"
            }
        }
    }

    /// Returns whether the server speaks WebSocket.
    pub(crate) fn speaks_websocket(self) -> bool {
        self != Self::RawTcp
    }

    /// Serves until the process ends.
    pub(crate) async fn serve(self, listener: TcpListener) -> io::Result<()> {
        match self {
            Self::FastWebSockets => accept(listener, fastwebsockets).await,
            Self::Linerate => linerate(listener).await,
            Self::RawTcp => accept(listener, raw_tcp).await,
            Self::TokioTungsteniteForward => accept(listener, tokio_tungstenite_forward).await,
            Self::TokioTungsteniteSend => accept(listener, tokio_tungstenite_send).await,
            Self::TokioWebSocketsForward => accept(listener, tokio_websockets_forward).await,
            Self::TokioWebSocketsSend => accept(listener, tokio_websockets_send).await,
        }
    }
}

/// Runs a task for each connection. Errors of these tasks are ignored: the load generator closes
/// its sockets without a closing handshake, and detects real failures itself.
async fn accept<T, F>(listener: TcpListener, echo: impl Fn(TcpStream) -> F) -> io::Result<()>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(echo(stream));
    }
}

async fn linerate(listener: TcpListener) -> io::Result<()> {
    let server = linerate::Server::new();
    let echo = |mut ws: linerate::WebSocket, _| async move {
        while let Some(message) = ws.recv().await? {
            ws.send(message).await?;
        }
        Ok(())
    };
    server.serve(listener, echo, future::pending()).await
}

async fn tokio_tungstenite_forward(stream: TcpStream) -> Result<(), tungstenite::Error> {
    let (write, read) = tokio_tungstenite::accept_async(stream).await?.split();
    let is_data = |message: &tungstenite::Message| message.is_text() || message.is_binary();
    read.try_filter(|message| future::ready(is_data(message)))
        .forward(write)
        .await
}

async fn tokio_tungstenite_send(stream: TcpStream) -> Result<(), tungstenite::Error> {
    let mut ws = tokio_tungstenite::accept_async(stream).await?;
    while let Some(message) = ws.try_next().await? {
        if message.is_text() || message.is_binary() {
            ws.send(message).await?;
        }
    }
    Ok(())
}

async fn tokio_websockets_forward(stream: TcpStream) -> Result<(), tokio_websockets::Error> {
    unconstrained(async {
        let (_, ws) = tokio_websockets::ServerBuilder::new()
            .accept(stream)
            .await?;
        let (write, read) = ws.split();
        let is_data =
            |message: &tokio_websockets::Message| message.is_text() || message.is_binary();
        read.try_filter(|message| future::ready(is_data(message)))
            .forward(write)
            .await
    })
    .await
}

async fn tokio_websockets_send(stream: TcpStream) -> Result<(), tokio_websockets::Error> {
    unconstrained(async {
        let (_, mut ws) = tokio_websockets::ServerBuilder::new()
            .accept(stream)
            .await?;
        while let Some(message) = ws.try_next().await? {
            if message.is_text() || message.is_binary() {
                ws.send(message).await?;
            }
        }
        Ok(())
    })
    .await
}

async fn fastwebsockets(stream: TcpStream) -> hyper::Result<()> {
    let service = service_fn(|mut request| async move {
        let (response, upgrade) = fastwebsockets::upgrade::upgrade(&mut request)?;
        tokio::spawn(unconstrained(async move {
            let mut ws = FragmentCollector::new(upgrade.await?);
            loop {
                let frame = ws.read_frame().await?;
                match frame.opcode {
                    OpCode::Close => return Ok::<(), WebSocketError>(()),
                    OpCode::Binary | OpCode::Text => ws.write_frame(frame).await?,
                    _ => {}
                }
            }
        }));
        Ok::<_, WebSocketError>(response)
    });
    hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await
}

async fn raw_tcp(mut stream: TcpStream) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match stream.read(&mut buffer).await? {
            0 => return Ok(()),
            bytes => stream.write_all(&buffer[..bytes]).await?,
        }
    }
}
