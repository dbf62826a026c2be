//! Tests of `wss://`: certificates, names, the end of streams, deadlines.

use std::{sync::Arc, time::Duration};

use linerate::{
    Client, CloseCode, Error, Frames, MessageKind, Options, Server,
    dial::{DialError, Phase, Timeouts},
    tls::{self, rustls},
};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{ClientConfig, RootCertStore, pki_types::PrivateKeyDer};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::{
    raw::{ACCEPTED, REQUEST, Raw, in_time},
    support::{Running, echo},
};

/// Returns a server for `localhost` with a self-signed certificate, and a client that trusts it.
pub(crate) async fn secure(options: Options) -> (Running, Client) {
    let (server, config) = secure_with_config(options).await;
    (server, Client::new().with_tls(config))
}

pub(crate) async fn secure_with_config(options: Options) -> (Running, Arc<ClientConfig>) {
    let (server, roots) = certified();
    let server = server.with_options(options);
    let config = Arc::new(tls::client_config(roots));
    (Running::start(server, echo).await, config)
}

fn certified() -> (Server, RootCertStore) {
    let (config, roots) = certificate("localhost");
    (Server::new().with_tls(Arc::new(config)), roots)
}

/// Returns a server configuration with a certificate for `name`, and the roots that verify it.
pub(crate) fn certificate(name: &str) -> (rustls::ServerConfig, RootCertStore) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).unwrap();
    let config = tls::server_config(vec![cert.der().clone()], key).unwrap();
    (config, roots)
}

fn url(server: &Running) -> String {
    format!("wss://localhost:{}/", server.address.port())
}

#[tokio::test]
async fn messages_of_any_size_come_back() {
    let (server, client) = secure(Options::default()).await;
    let mut ws = client.connect(&url(&server)).await.unwrap();
    for bytes in [0, 1, 16_383, 16_384, 70_000, 1 << 20] {
        let message = vec![bytes as u8; bytes];
        ws.send(message.clone()).await.unwrap();
        let echoed = in_time(ws.recv()).await.unwrap().unwrap();
        assert!(echoed.as_bytes() == message, "{bytes} bytes");
    }
    let closed = ws.close(CloseCode::NORMAL, "").await.unwrap();
    assert!(closed.clean);
    assert_eq!(in_time(ws.recv()).await.unwrap(), None);
    server.stop().await;
}

#[tokio::test]
async fn many_messages_in_flight_keep_their_order() {
    let (server, client) = secure(Options::default()).await;
    let ws = client.connect(&url(&server)).await.unwrap();
    let (sender, mut receiver) = ws.split();
    let send = tokio::spawn(async move {
        for number in 0..5_000 {
            sender.send(number.to_string()).await.unwrap();
        }
        sender.flush().await.unwrap();
        sender
    });
    for number in 0..5_000 {
        let message = in_time(receiver.recv()).await.unwrap().unwrap();
        assert_eq!(message.as_text(), Some(&*number.to_string()));
    }
    drop((send.await.unwrap(), receiver));
    server.stop().await;
}

#[tokio::test]
async fn frames_that_are_shared_by_connections_arrive_at_each_of_them() {
    let mut wire = Vec::new();
    for number in 0..100_u8 {
        Frames::append(&mut wire, MessageKind::Binary, &[number; 700]);
    }
    let block = Frames::from_framed(wire).unwrap();
    let (server, roots) = certified();
    let server = Running::start(server, move |ws, _| {
        let block = block.clone();
        async move {
            let (sender, _receiver) = ws.split();
            for _ in 0..20 {
                sender.writable().await?;
                sender.try_send_frames([&block]).unwrap();
                sender.send("between").await?;
            }
            sender.close(CloseCode::NORMAL, "").await.map(drop)
        }
    });
    let server = server.await;
    let client = Client::new().with_tls(Arc::new(tls::client_config(roots)));
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(client.connect(&url(&server)).await.unwrap());
    }
    for mut ws in clients {
        for _ in 0..20 {
            for number in 0..100_u8 {
                let message = in_time(ws.recv()).await.unwrap();
                assert!(message == Some([number; 700].to_vec().into()));
            }
            assert_eq!(in_time(ws.recv()).await.unwrap(), Some("between".into()));
        }
        assert_eq!(in_time(ws.recv()).await.unwrap(), None);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_refused() {
    let (server, _) = secure(Options::default()).await;
    let (_, other_roots) = certified();
    for client in [
        Client::new().with_tls(Arc::new(tls::client_config(other_roots))),
        Client::new(),
    ] {
        let error = client.connect(&url(&server)).await.unwrap_err();
        let text = error.to_string();
        assert!(
            matches!(error, Error::Dial(DialError::Tls(_))) && text.contains("certificate"),
            "{text}"
        );
        assert!(
            text.contains("Client::with_tls") && !error.is_transient(),
            "{text}"
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn tls_on_one_side_only_is_named_with_the_remedy() {
    let (server, client) = secure(Options::default()).await;
    let error = client.connect(&url(&server).replace("wss:", "ws:")).await;
    let error = error.unwrap_err();
    assert!(
        matches!(error, Error::Dial(DialError::TlsRequired)),
        "{error}"
    );
    assert!(error.to_string().contains("use wss://") && !error.is_transient());
    server.stop().await;

    let server = Running::echo().await;
    let error = client.connect(&server.url().replace("ws:", "wss:")).await;
    let error = error.unwrap_err();
    assert!(
        matches!(error, Error::Dial(DialError::TlsUnsupported)),
        "{error}"
    );
    assert!(error.to_string().contains("use ws://") && !error.is_transient());
    server.stop().await;
}

#[tokio::test]
async fn an_alert_is_recognized_however_it_is_cut() {
    let alert = b"\x15\x03\x03\x00\x02\x02\x32";
    for cut in 1..=alert.len() {
        let (ours, mut theirs) = tokio::io::duplex(1 << 10);
        let answering = tokio::spawn(async move {
            theirs.write_all(&alert[..cut]).await.unwrap();
            tokio::task::yield_now().await;
            _ = theirs.write_all(&alert[cut..]).await;
            _ = theirs.read_to_end(&mut Vec::new()).await;
        });
        let connected = Client::new().connect_over(ours, "ws://example.com/").await;
        let error = connected.unwrap_err();
        assert!(
            matches!(error, Error::Dial(DialError::TlsRequired)),
            "{error}"
        );
        in_time(answering).await.unwrap();
    }
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused() {
    let (server, client) = secure(Options::default()).await;
    let url = format!("wss://127.0.0.1:{}/", server.address.port());
    let error = client.connect(&url).await.unwrap_err();
    let text = error.to_string();
    assert!(
        matches!(error, Error::Dial(DialError::Tls(_))) && text.contains("not valid for name"),
        "{text}"
    );
    server.stop().await;
}

#[tokio::test]
async fn t01_a_client_that_says_nothing_is_dropped_at_the_deadline() {
    let mut options = Options::default();
    options.handshake_timeout = Duration::from_millis(50);
    let (server, config) = secure_with_config(options).await;
    let mut raw = Raw::connect(server.address).await;
    assert_eq!(
        raw.rest().await,
        b"",
        "the server cannot send a reason without TLS"
    );
    // A client that is silent after the TLS handshake gets a reason.
    let mut stream = handshaken(&server, config).await;
    let mut answer = Vec::new();
    in_time(stream.read_to_end(&mut answer)).await.unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 408 Request Timeout\r\n"));
    drop(stream);
    server.stop().await;
}

/// The alert that the sender will send nothing more (RFC 8446 §6.1).
const CLOSE_NOTIFY: &[u8] = b"\x15\x03\x03\x00\x02\x01\x00";

#[tokio::test]
async fn t10_old_versions_are_told_so() {
    let (server, _) = secure(Options::default()).await;
    let body = [&[3, 1][..], &[7; 32], b"\0\0\x02\0\x2f\x01\0"].concat();
    let hello = [&[1, 0, 0, body.len() as u8][..], &body].concat();
    let record = [&[22, 3, 1, 0, hello.len() as u8][..], &hello].concat();
    let mut raw = Raw::connect(server.address).await;
    let (first, last) = record.split_at(30);
    raw.send(first).await;
    raw.send(last).await;
    assert_eq!(raw.rest().await, b"\x15\x03\x03\x00\x02\x02\x46");
    server.stop().await;
}

#[tokio::test]
async fn t02_close_notify_during_the_handshake_ends_it() {
    let (server, _) = secure(Options::default()).await;
    let mut raw = Raw::connect(server.address).await;
    raw.send(CLOSE_NOTIFY).await;
    assert_eq!(raw.rest().await, b"");
    server.stop().await;

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let closing = async {
        let mut raw = Raw::new(listener.accept().await.unwrap().0);
        raw.send(CLOSE_NOTIFY).await;
        raw.rest().await
    };
    let url = format!("wss://{address}/");
    let mut timeouts = Timeouts::default();
    timeouts.tls = Duration::from_millis(100);
    let client = Client::new().with_timeouts(timeouts);
    let connecting = async { client.connect(&url).await.unwrap_err() };
    let (error, _) = in_time(async { tokio::join!(connecting, closing) }).await;
    // The client waits for more, but not forever.
    assert!(
        matches!(
            error,
            Error::Dial(DialError::TimedOut {
                phase: Phase::Tls,
                ..
            })
        ),
        "{error}"
    );
}

#[test]
fn t08_early_data_is_neither_sent_nor_taken() {
    let (config, roots) = certificate("localhost");
    assert_eq!(config.max_early_data_size, 0);
    assert!(!tls::client_config(roots).enable_early_data);
    assert!(!tls::default_client_config().enable_early_data);
}

#[tokio::test]
async fn h20_http_on_the_port_for_tls_opens_nothing() {
    let (server, _) = secure(Options::default()).await;
    let mut raw = Raw::connect(server.address).await;
    raw.send(REQUEST).await;
    let answer = raw.rest().await;
    assert!(!answer.starts_with(b"HTTP"), "{}", answer.escape_ascii());
    server.stop().await;
}

/// Connects to the server and performs the TLS handshake, without any HTTP.
async fn handshaken(server: &Running, config: Arc<ClientConfig>) -> TlsStream<TcpStream> {
    let stream = TcpStream::connect(server.address).await.unwrap();
    let name = "localhost".try_into().unwrap();
    TlsConnector::from(config)
        .connect(name, stream)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_server_that_closes_says_so_to_tls_too() {
    let (server, config) = secure_with_config(Options::default()).await;
    let mut stream = handshaken(&server, config).await;
    stream.write_all(REQUEST.as_bytes()).await.unwrap();
    stream.write_all(b"\x88\x82\0\0\0\0\x03\xe8").await.unwrap();
    let mut answer = Vec::new();
    // Without a close_notify, this would be an error.
    in_time(stream.read_to_end(&mut answer)).await.unwrap();
    assert_eq!(answer, [ACCEPTED.as_bytes(), b"\x88\x02\x03\xe8"].concat());
    drop(stream);
    server.stop().await;
}

#[tokio::test]
async fn t03_a_stream_cut_without_close_notify_is_no_clean_end() {
    let (report, mut reports) = tokio::sync::mpsc::unbounded_channel();
    let (server, roots) = certified();
    let server = Running::start(server, move |mut ws, _| {
        let report = report.clone();
        async move {
            let error = ws.recv().await.expect_err("there was no Close frame");
            let code = ws.closed().map(|closed| (closed.code, closed.clean));
            report.send((code, ws.recv().await.unwrap())).unwrap();
            Err(error)
        }
    })
    .await;
    let config = Arc::new(tls::client_config(roots));
    let mut stream = handshaken(&server, config).await;
    stream.write_all(REQUEST.as_bytes()).await.unwrap();
    let mut head = vec![0; ACCEPTED.len()];
    in_time(stream.read_exact(&mut head)).await.unwrap();
    // The socket is dropped without a TLS close_notify.
    drop(stream.into_inner());
    assert_eq!(
        in_time(reports.recv()).await,
        Some((Some((1006, false)), None))
    );
    server.stop().await;
}
