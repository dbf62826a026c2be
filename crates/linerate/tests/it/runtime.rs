//! Connections on smol, where everything that needs tokio's runtime would panic.

mod streams;
mod time_limits;

use std::{io, net::SocketAddr, time::Instant};

use linerate::{
    Client, CloseCode, Listener, Message, Options, Role, Server, WebSocket,
    parts::Parts,
    runtime::{FuturesIo, Runtime, Sleep, Task},
};
use linerate_proto::Header;
use linerate_testkit::{Frame, PATIENCE};
use smol::net::{TcpListener, TcpStream};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use crate::{
    raw::{ACCEPTED, REQUEST},
    support::{echo, echo_on},
};

#[derive(Clone, Copy, Debug)]
struct Smol;

impl Runtime for Smol {
    fn spawn(&self, task: Task) {
        smol::spawn(task).detach();
    }

    fn sleep_until(&self, deadline: Instant) -> Sleep {
        Box::pin(async move { _ = smol::Timer::at(deadline).await })
    }
}

/// Runs `test` on smol, and fails it if it would wait forever.
fn run<T>(test: impl Future<Output = T>) -> T {
    assert!(tokio::runtime::Handle::try_current().is_err());
    let late = async {
        smol::Timer::after(PATIENCE).await;
        panic!("it must end in time");
    };
    smol::block_on(smol::future::or(test, late))
}

/// A listener of smol.
struct Tcp(TcpListener);

impl Listener for Tcp {
    type Stream = FuturesIo<TcpStream>;

    async fn accept(&mut self) -> io::Result<Self::Stream> {
        let (stream, _) = self.0.accept().await?;
        stream.set_nodelay(true)?;
        Ok(FuturesIo::new(stream))
    }
}

/// A server on smol, which runs until it is stopped.
struct Running {
    address: SocketAddr,
    stop: smol::channel::Sender<()>,
    task: smol::Task<io::Result<()>>,
}

impl Running {
    /// Starts a server that echoes each message.
    async fn echo(options: Options) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = smol::channel::bounded(1);
        let server = Server::new().with_options(options).with_runtime(Smol);
        let stopped = async move { _ = stopped.recv().await };
        let task = smol::spawn(server.serve(Tcp(listener), echo, stopped));
        Self {
            address,
            stop,
            task,
        }
    }

    async fn stream(&self) -> FuturesIo<TcpStream> {
        FuturesIo::new(TcpStream::connect(self.address).await.unwrap())
    }

    async fn connect(&self, options: Options) -> WebSocket {
        let client = Client::new().with_options(options).with_runtime(Smol);
        let opened = client.connect_over(self.stream().await, "ws://localhost/");
        opened.await.unwrap()
    }

    async fn stop(self) {
        drop(self.stop);
        self.task.await.unwrap();
    }
}

/// Opens a WebSocket whose peer is only bytes.
fn with_peer(role: Role, options: Options) -> (WebSocket, Peer) {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let ws = WebSocket::from_parts_with_runtime(Parts::new(ours, role), options, Smol);
    (ws, Peer(theirs, role))
}

/// The other end of a pipe to a WebSocket in this role.
struct Peer(DuplexStream, Role);

impl Peer {
    async fn send(&mut self, frame: Frame) {
        let bytes = frame.to_role(self.1).to_bytes();
        self.0.write_all(&bytes).await.unwrap();
    }

    /// Returns the first byte of the next frame, or `None` at the end of the stream.
    async fn frame(&mut self) -> Option<u8> {
        let mut read = Vec::new();
        loop {
            if let Some((header, prefix)) = Header::decode(&read).unwrap()
                && read.len() == prefix + header.payload_bytes as usize
            {
                return Some(read[0]);
            }
            match self.0.read_u8().await {
                Ok(byte) => read.push(byte),
                Err(_) => return None,
            }
        }
    }
}

/// A pair of WebSockets, connected by a pipe.
async fn pair(options: Options) -> (WebSocket, WebSocket) {
    let (ours, theirs) = tokio::io::duplex(4_096);
    let server = Server::new()
        .with_options(options.clone())
        .with_runtime(Smol);
    let accepting = smol::spawn(async move { server.accept(theirs).await?.accept().await });
    let client = Client::new().with_options(options).with_runtime(Smol);
    let client = client.connect_over(ours, "ws://localhost/").await.unwrap();
    (client, accepting.await.unwrap())
}

#[test]
fn smol_serves_clients_until_shutdown() {
    run(async {
        let server = Running::echo(Options::default()).await;
        let mut ws = server.connect(Options::default()).await;
        // Long enough to fill the buffers of the socket, so that writes have to wait.
        let long = vec![0x55; 1 << 20];
        let options = Options::default().without_compression();
        let mut uncompressed = server.connect(options).await;
        for _ in 0..8 {
            uncompressed.send(long.clone()).await.unwrap();
            let echoed = uncompressed.recv().await.unwrap();
            assert_eq!(echoed, Some(Message::from(long.clone())));
        }
        ws.send("Spam").await.unwrap();
        assert_eq!(ws.recv().await.unwrap(), Some("Spam".into()));
        let closed = ws.close(CloseCode::NORMAL, "").await.unwrap();
        assert!(closed.clean, "{closed:?}");

        server.stop().await;
        assert_eq!(uncompressed.recv().await.unwrap(), None);
        assert_eq!(uncompressed.closed().unwrap().code, 1001);
    });
}

#[test]
fn concurrent_senders_lose_no_message() {
    const SENDERS: u32 = 8;
    const MESSAGES: u32 = 200;
    run(async {
        let (client, server) = pair(Options::default()).await;
        let echoing = smol::spawn(echo_on(server));
        let (sender, mut receiver) = client.split();
        let sending: Vec<_> = (0..SENDERS)
            .map(|number| {
                let sender = sender.clone();
                smol::spawn(async move {
                    for message in 0..MESSAGES {
                        let message = [number.to_be_bytes(), message.to_be_bytes()].concat();
                        sender.send(message).await.unwrap();
                    }
                })
            })
            .collect();
        let mut next = [0; SENDERS as usize];
        for _ in 0..SENDERS * MESSAGES {
            let message = receiver.recv().await.unwrap().unwrap();
            let (number, message) = message.as_bytes().split_at(4);
            let expected = &mut next[usize::from(number[3])];
            assert_eq!(message, u32::to_be_bytes(*expected));
            *expected += 1;
        }
        for sending in sending {
            sending.await;
        }
        sender.close(CloseCode::NORMAL, "").await.unwrap();
        echoing.await.unwrap();
    });
}

#[test]
fn for_each_answers_every_message() {
    run(async {
        let (mut client, mut server) = pair(Options::default()).await;
        let answering = smol::spawn(async move {
            let answered = server.for_each(|message, replies| {
                replies.push(message);
                Ok(())
            });
            answered.await
        });
        for number in 0..1_000 {
            client.send(number.to_string()).await.unwrap();
            let echoed = client.recv().await.unwrap();
            assert_eq!(echoed, Some(number.to_string().into()));
        }
        client.close(CloseCode::NORMAL, "").await.unwrap();
        answering.await.unwrap();
    });
}

#[test]
fn dropped_futures_lose_no_message() {
    run(async {
        let (mut client, mut server) = pair(Options::default()).await;
        let sending = smol::spawn(async move {
            for number in 0..500 {
                client.send(number.to_string()).await.unwrap();
            }
            client
        });
        for number in 0..500 {
            let message = loop {
                let received = async { Some(server.recv().await.unwrap()) };
                let given_up = async {
                    smol::future::yield_now().await;
                    None
                };
                if let Some(message) = smol::future::or(received, given_up).await {
                    break message;
                }
            };
            assert_eq!(message, Some(number.to_string().into()));
        }
        drop(sending.await);
        assert_eq!(server.recv().await.unwrap(), None);
    });
}

#[test]
fn a_dropped_websocket_is_closed_in_the_background() {
    run(async {
        let (ws, mut peer) = with_peer(Role::Server, Options::default());
        drop(ws);
        assert_eq!(peer.frame().await, Some(0x88));
        peer.send(Frame::new(0x8, &1_001_u16.to_be_bytes())).await;
        assert_eq!(peer.frame().await, None);
    });
}

#[test]
fn http2_and_sockets_are_refused_without_tokio() {
    run(async {
        let client = Client::new().with_runtime(Smol);
        let error = client.connect("ws://127.0.0.1:9/").await.unwrap_err();
        let expected = "only tokio can open sockets and HTTP/2; use `connect_over` with a stream \
            of your runtime";
        assert_eq!(error.to_string(), expected);

        let server = Running::echo(Options::default()).await;
        let mut stream = server.stream().await;
        stream
            .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            .await
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(
            answer.ends_with("this port does not accept HTTP/2\n"),
            "{answer}"
        );
    });
}

#[test]
fn connection_ends_if_the_runtime_drops_its_task() {
    struct Forgetful;

    impl Runtime for Forgetful {
        fn spawn(&self, task: Task) {
            drop(task);
        }

        fn sleep_until(&self, deadline: Instant) -> Sleep {
            Smol.sleep_until(deadline)
        }
    }

    run(async {
        let (ours, _theirs) = tokio::io::duplex(4_096);
        let parts = Parts::new(ours, Role::Client);
        let mut ws = WebSocket::from_parts_with_runtime(parts, Options::default(), Forgetful);
        ws.recv().await.unwrap_err();
        ws.send("Spam").await.unwrap_err();
    });
}

#[cfg(feature = "rustls")]
#[test]
fn servers_use_tls() {
    use std::sync::Arc;

    use linerate::tls::{self, rustls::pki_types::ServerName};

    run(async {
        let (config, roots) = crate::tls::certificate("localhost");
        let server = Server::new().with_tls(Arc::new(config)).with_runtime(Smol);
        let (ours, theirs) = tokio::io::duplex(4_096);
        let serving = smol::spawn(async move {
            let ws = server.accept(theirs).await?.accept().await?;
            echo_on(ws).await
        });
        let connector = tokio_rustls::TlsConnector::from(Arc::new(tls::client_config(roots)));
        let name = ServerName::try_from("localhost").unwrap();
        let stream = connector.connect(name, ours).await.unwrap();
        let client = Client::new().with_runtime(Smol);
        let mut ws = client
            .connect_over(stream, "wss://localhost/")
            .await
            .unwrap();
        ws.send("Spam").await.unwrap();
        assert_eq!(ws.recv().await.unwrap(), Some("Spam".into()));
        ws.close(CloseCode::NORMAL, "").await.unwrap();
        serving.await.unwrap();
    });
}
