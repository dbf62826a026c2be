//! Servers on listeners and streams that are not TCP, handshakes that something else has performed,
//! and what is known about connections.

use std::{
    future::{Future, pending, poll_fn},
    io,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use linerate::{
    Client, CloseCode, Error, Listener, Options, Role, Server, WebSocket,
    handshake::{HandshakeError, HttpVersion},
    parts::Parts,
};
use linerate_testkit::Frame;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    net::TcpListener,
    sync::mpsc,
};

use crate::{
    raw::{ACCEPTED, REQUEST, in_time},
    support::{Running, echo, echo_on},
};

/// Accepts one end of each pipe that is sent to it.
struct Pipes(mpsc::UnboundedReceiver<DuplexStream>);

impl Listener for Pipes {
    type Stream = DuplexStream;

    async fn accept(&mut self) -> io::Result<DuplexStream> {
        match self.0.recv().await {
            Some(pipe) => Ok(pipe),
            None => std::future::pending().await,
        }
    }
}

fn serve_pipes() -> mpsc::UnboundedSender<DuplexStream> {
    let (pipes, accepted) = mpsc::unbounded_channel();
    tokio::spawn(Server::new().serve(Pipes(accepted), echo, std::future::pending()));
    pipes
}

async fn echoes(ws: &mut WebSocket) {
    ws.send("Spam").await.unwrap();
    assert_eq!(in_time(ws.recv()).await.unwrap(), Some("Spam".into()));
}

/// Has a new client whenever it is asked, and counts them.
struct Crowd(Arc<AtomicUsize>);

impl Listener for Crowd {
    type Stream = DuplexStream;

    async fn accept(&mut self) -> io::Result<DuplexStream> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(duplex(64).0)
    }
}

#[tokio::test]
async fn a_server_yields_after_each_connection_that_it_accepts() {
    let accepted = Arc::new(AtomicUsize::new(0));
    let serving = Server::new().serve(Crowd(accepted.clone()), echo, pending());
    let mut serving = pin!(serving);
    for turns in 1..=3 {
        let is_pending = poll_fn(|cx| Poll::Ready(serving.as_mut().poll(cx).is_pending())).await;
        assert!(is_pending);
        assert_eq!(accepted.load(Ordering::Relaxed), turns);
    }
}

#[tokio::test]
async fn a_pipe_of_any_size_carries_every_version_of_http() {
    let pipes = serve_pipes();
    for room in [1, 7, 23, 24, 25, 4096] {
        let (ours, theirs) = duplex(room);
        pipes.send(theirs).unwrap();
        let mut ws = in_time(Client::new().connect_over(ours, "ws://localhost/"))
            .await
            .unwrap();
        echoes(&mut ws).await;
        let info = ws.info().unwrap();
        assert_eq!((info.peer_addr, info.local_addr), (None, None));

        #[cfg(feature = "http2")]
        {
            let (ours, theirs) = duplex(room);
            pipes.send(theirs).unwrap();
            let client = Client::new().with_http2_prior_knowledge();
            let opening = client.connect_over(ours, "ws://localhost/");
            let mut ws = in_time(opening).await.unwrap();
            echoes(&mut ws).await;
            assert_eq!(ws.info().unwrap().http_version, HttpVersion::Http2);
        }
    }
}

#[tokio::test]
async fn a_stream_that_ends_early_or_stays_silent_is_told_so() {
    let pipes = serve_pipes();
    for start in ["PRI * HTTP/2.0\r\n", "PRI", "GET / HTTP/1.1\r\n"] {
        let (mut ours, theirs) = duplex(4096);
        pipes.send(theirs).unwrap();
        ours.write_all(start.as_bytes()).await.unwrap();
        ours.shutdown().await.unwrap();
        let mut answer = String::new();
        in_time(ours.read_to_string(&mut answer)).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 400 "), "{start:?}: {answer}");
    }
    let (mut ours, theirs) = duplex(4096);
    let mut options = Options::default();
    options.handshake_timeout = Duration::from_millis(30);
    let server = Server::new().with_options(options);
    let (accepted, answer) = tokio::join!(in_time(server.accept(theirs)), async {
        let mut answer = String::new();
        in_time(ours.read_to_string(&mut answer)).await.unwrap();
        answer
    });
    let error = accepted.unwrap_err();
    assert!(
        matches!(error, Error::Handshake(HandshakeError::TimedOut { .. })),
        "{error}"
    );
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
}

#[tokio::test]
async fn accept_opens_a_websocket_on_a_stream() {
    let (ours, theirs) = duplex(100);
    let accepting = tokio::spawn(linerate::accept(theirs));
    let mut client = Client::new()
        .connect_over(ours, "ws://localhost/chat?a=1")
        .await
        .unwrap();
    let (server, request) = in_time(accepting).await.unwrap().unwrap();
    assert_eq!(request.query_parameter("a").as_deref(), Some("1"));
    let echoing = tokio::spawn(echo_on(server));
    echoes(&mut client).await;
    let closed = in_time(client.close(CloseCode::NORMAL, "")).await.unwrap();
    assert!(closed.clean);
    in_time(echoing).await.unwrap().unwrap();

    let (mut ours, theirs) = duplex(1000);
    let evil = REQUEST.replace("Upgrade: websocket", "Upgrade: other");
    ours.write_all(evil.as_bytes()).await.unwrap();
    let (accepted, answer) = tokio::join!(in_time(linerate::accept(theirs)), async {
        let mut answer = String::new();
        in_time(ours.read_to_string(&mut answer)).await.unwrap();
        answer
    });
    let error = accepted.unwrap_err();
    assert!(
        matches!(error, Error::Handshake(HandshakeError::UpgradeNotWebSocket)),
        "{error}"
    );
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
}

#[tokio::test]
async fn accept_dropped_after_a_while_closes_the_stream() {
    let (mut ours, theirs) = duplex(1000);
    let server = Server::new();
    tokio::select! {
        biased;
        accepted = server.accept(theirs) => panic!("{accepted:?}"),
        () = tokio::time::sleep(Duration::from_millis(5)) => {}
    }
    assert_eq!(in_time(ours.read(&mut [0; 1])).await.unwrap(), 0);

    let (mut ours, theirs) = duplex(1000);
    ours.write_all(REQUEST.as_bytes()).await.unwrap();
    drop(in_time(server.accept(theirs)).await.unwrap());
    let mut answer = String::new();
    in_time(ours.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
}

#[tokio::test]
async fn parts_continue_where_the_connection_was_taken_apart() {
    // A partly written frame, and an incomplete one that was read.
    let unsent = Frame::new(0x1, &[b'x'; 3000]).to_bytes();
    let (sent, unsent) = unsent.split_at(1500);
    let question = Frame::new(0x1, b"Spam").to_role(Role::Server).to_bytes();
    let (unread, later) = question.split_at(5);
    for room in [1, 100, 10_000] {
        let (mut ours, theirs) = duplex(room);
        let mut parts = Parts::new(theirs, Role::Server);
        parts.unread = unread.to_vec();
        parts.unsent = unsent.to_vec();
        parts.subprotocol = Some("chat".into());
        let ws = WebSocket::from_parts(parts, Options::default());
        assert_eq!(ws.subprotocol().as_deref(), Some("chat"));
        // Nothing is sent yet, but the rest of the old frame is written.
        let mut received = sent.to_vec();
        received.resize(sent.len() + unsent.len(), 0);
        in_time(ours.read_exact(&mut received[sent.len()..]))
            .await
            .unwrap();
        assert_eq!(received, [sent, unsent].concat());

        tokio::spawn(echo_on(ws));
        ours.write_all(later).await.unwrap();
        let mut echoed = vec![0; 6];
        in_time(ours.read_exact(&mut echoed)).await.unwrap();
        assert_eq!(echoed, b"\x81\x04Spam");
    }
}

#[tokio::test]
async fn a_connection_that_is_taken_apart_and_put_together_goes_on() {
    let mut options = Options::default();
    options = options.without_compression();
    let server = Running::start_incoming(Server::new(), |incoming| async move {
        let mut ws = incoming.accept().await?;
        for _ in 0..3 {
            ws.send("one").await?;
            let parts = ws.into_parts().map_err(|_| Error::Abnormal)?;
            ws = WebSocket::from_parts(parts, Options::default());
            assert_eq!(ws.recv().await?, Some("two".into()));
        }
        Ok(())
    })
    .await;
    let client = Client::new().with_options(options);
    let mut ws = client.connect(&server.url()).await.unwrap();
    for _ in 0..3 {
        assert_eq!(in_time(ws.recv()).await.unwrap(), Some("one".into()));
        ws.send("two").await.unwrap();
    }
    assert_eq!(in_time(ws.recv()).await.unwrap(), None);
    drop(ws);
    server.stop().await;
}

#[tokio::test]
async fn a_socket_that_was_opened_before_is_served() {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    let url = format!("ws://{}/", socket.local_addr().unwrap());
    let listener = TcpListener::from_std(socket).unwrap();
    tokio::spawn(linerate::serve(listener, echo, std::future::pending()));
    echoes(&mut linerate::connect(&url).await.unwrap()).await;
}

#[cfg(unix)]
#[tokio::test]
async fn a_unix_socket_is_served_and_knows_its_peer() {
    use tokio::net::{UnixListener, UnixStream};

    let name = format!("linerate-{}.socket", std::process::id());
    let path = std::env::temp_dir().join(name);
    _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).unwrap();
    let serving = Server::new().serve_incoming(
        listener,
        |incoming| async move {
            let peer = incoming.info().peer_credentials.unwrap();
            assert_eq!(incoming.peer_addr(), None);
            let mut ws = incoming.accept().await?;
            ws.send(peer.pid().unwrap_or_default().to_string()).await
        },
        std::future::pending(),
    );
    tokio::spawn(serving);
    for client in [
        Client::new(),
        #[cfg(feature = "http2")]
        Client::new().with_http2_prior_knowledge(),
    ] {
        let stream = UnixStream::connect(&path).await.unwrap();
        let mut ws = client
            .connect_over(stream, "ws://localhost/")
            .await
            .unwrap();
        let pid = std::process::id().to_string();
        assert_eq!(in_time(ws.recv()).await.unwrap(), Some(pid.into()));
    }
    std::fs::remove_file(&path).unwrap();
}

#[tokio::test]
async fn both_sides_know_their_addresses() {
    let (sender, mut seen) = mpsc::unbounded_channel();
    let server = Running::start_incoming(Server::new(), move |incoming| {
        let sender = sender.clone();
        async move {
            let before = (incoming.peer_addr(), incoming.info().http_version);
            let ws = incoming.accept().await?;
            let after = ws.info().unwrap();
            assert_eq!(before, (after.peer_addr, after.http_version));
            assert_eq!(ws.peer_addr(), after.peer_addr);
            let (writer, mut reader) = ws.split();
            assert_eq!(writer.info().unwrap().peer_addr, after.peer_addr);
            assert_eq!(reader.info().unwrap().peer_addr, after.peer_addr);
            _ = sender.send(after);
            _ = reader.recv().await;
            Ok(())
        }
    })
    .await;
    for (client, version) in [
        (Client::new(), HttpVersion::Http11),
        #[cfg(feature = "http2")]
        (
            Client::new().with_http2_prior_knowledge(),
            HttpVersion::Http2,
        ),
    ] {
        let mut ws = client.connect(&server.url()).await.unwrap();
        let ours = ws.info().unwrap();
        let theirs = in_time(seen.recv()).await.unwrap();
        assert_eq!(ours.peer_addr, Some(server.address));
        assert_eq!(
            (theirs.peer_addr, theirs.local_addr),
            (ours.local_addr, ours.peer_addr)
        );
        assert_eq!((ours.http_version, theirs.http_version), (version, version));
        #[cfg(feature = "rustls")]
        assert!(ours.tls.is_none() && theirs.tls.is_none());
        in_time(ws.close(CloseCode::NORMAL, "")).await.unwrap();
        in_time(async {
            while ws.info().is_some() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        assert_eq!(ws.peer_addr(), None);
    }
    server.stop().await;
}

#[cfg(feature = "rustls")]
#[tokio::test]
async fn both_sides_know_what_tls_has_negotiated() {
    use linerate::tls::{self, rustls::ProtocolVersion};

    let (config, roots) = crate::tls::certificate("localhost");
    let server = Server::new().with_tls(std::sync::Arc::new(config));
    let (sender, mut seen) = mpsc::unbounded_channel();
    let server = Running::start_incoming(server, move |incoming| {
        _ = sender.send(incoming.info().clone());
        async move { echo_on(incoming.accept().await?).await }
    })
    .await;
    let trusting = std::sync::Arc::new(tls::client_config(roots));
    let client = Client::new().with_tls(trusting);
    for (client, alpn) in [
        (client.clone(), &b"http/1.1"[..]),
        #[cfg(feature = "http2")]
        (client.with_http2(), b"h2"),
    ] {
        let url = format!("wss://localhost:{}/", server.address.port());
        let ws = client.connect(&url).await.unwrap();
        let (ours, theirs) = (ws.info().unwrap(), in_time(seen.recv()).await.unwrap());
        assert_eq!(ours.peer_addr, Some(server.address));
        assert_eq!(theirs.peer_addr, ours.local_addr);
        let (ours, theirs) = (ours.tls.unwrap(), theirs.tls.unwrap());
        assert_eq!(ours.protocol_version, Some(ProtocolVersion::TLSv1_3));
        assert_eq!(ours.cipher_suite, theirs.cipher_suite);
        assert!(ours.cipher_suite.is_some());
        assert_eq!(ours.alpn_protocol.as_deref(), Some(alpn));
        assert_eq!(theirs.alpn_protocol.as_deref(), Some(alpn));
        assert_eq!(theirs.server_name.as_deref(), Some("localhost"));
        assert_eq!(
            (ours.peer_certificates.len(), theirs.peer_certificates.len()),
            (1, 0)
        );
    }
    server.stop().await;
}

/// A request and a frame in one segment reach the WebSocket, however the bytes are cut.
#[tokio::test]
async fn requests_and_frames_are_read_in_any_pieces() {
    let pipes = serve_pipes();
    let frame = Frame::new(0x1, b"Spam").to_role(Role::Server).to_bytes();
    let input = [REQUEST.as_bytes(), &frame].concat();
    for cut in 0..input.len() {
        let (mut ours, theirs) = duplex(4096);
        pipes.send(theirs).unwrap();
        ours.write_all(&input[..cut]).await.unwrap();
        tokio::task::yield_now().await;
        ours.write_all(&input[cut..]).await.unwrap();
        let mut received = vec![0; ACCEPTED.len() + 6];
        in_time(ours.read_exact(&mut received)).await.unwrap();
        assert_eq!(received, [ACCEPTED.as_bytes(), b"\x81\x04Spam"].concat());
    }
}
