//! Tests of the path from a socket to a request, with real sockets.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Extension, Router,
    body::{Body, to_bytes},
    http::Method,
    response::IntoResponse,
    routing::{any, get, post},
};
use linerate::handshake::Scheme;
use linerate_testkit::PATIENCE;
use rustls::pki_types::ServerName;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::timeout,
};
use tokio_rustls::TlsConnector;

use super::{
    Certificate, ConnectionGuard, Frontend, Hosts, LongRequest, Peer, Phase, Stop,
    timed::BODY_TIMEOUT,
};
use crate::config::{Config, ServerOptions, TlsOptions};

/// A PROXY protocol header for `192.0.2.1`.
const PROXY: &[u8] =
    b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x01\x7f\0\0\x01\x04\xd2\x1f\x90";

/// A server whose `/` returns the origin of a request, and whose `/wait` responds when the
/// connection must close.
struct Served {
    address: SocketAddr,
    frontend: Arc<Frontend>,
    stop: Stop,
}

async fn whence(Extension(peer): Extension<Peer>) -> String {
    let scheme = if peer.scheme == Scheme::Https {
        "https"
    } else {
        "http"
    };
    format!("{scheme} {}", peer.address)
}

/// Returns whether the whole body arrived.
async fn take(body: Body) -> &'static str {
    match to_bytes(body, 1_024).await {
        Ok(_) => "taken",
        Err(_) => "given up",
    }
}

async fn wait(Extension(guard): Extension<ConnectionGuard>) -> impl IntoResponse {
    guard.goodbye().await;
    "goodbye"
}

/// Has a permit for each request that waits for a late response.
static WAITING: Semaphore = Semaphore::const_new(0);

/// Responds after a minute and a half, as a long poll may.
async fn late(Extension(long): Extension<LongRequest>, method: Method) -> &'static str {
    if method == Method::GET {
        long.begin();
    }
    WAITING.add_permits(1);
    tokio::time::sleep(Duration::from_secs(90)).await;
    "late"
}

impl Served {
    /// Starts a server that accepts any host name.
    async fn start(options: &ServerOptions) -> Self {
        let mut config = Config::default();
        config.server = ServerOptions {
            hosts: vec!["*".to_owned()],
            ..options.clone()
        };
        Self::start_with(&config).await
    }

    async fn start_with(config: &Config) -> Self {
        let (stop, stopped) = Stop::new();
        let frontend =
            Arc::new(Frontend::new(&config.server, Hosts::new(config), 1, stopped).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = Router::new()
            .route("/", get(whence))
            .route("/wait", get(wait))
            .route("/late", any(late))
            .route("/take", post(take))
            .route("/echo", post(|body: Body| async { body }));
        tokio::spawn(frontend.clone().serve(listener, app));
        Self {
            address,
            frontend,
            stop,
        }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends bytes and a request with these headers, and returns everything received.
    async fn ask(&self, before: &[u8], headers: &str) -> String {
        let mut stream = self.connect().await;
        stream.write_all(before).await.unwrap();
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{headers}\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        rest(&mut stream).await
    }
}

async fn rest(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut bytes = Vec::new();
    // A reset also ends the connection.
    _ = timeout(PATIENCE, stream.read_to_end(&mut bytes))
        .await
        .unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn trusting(networks: &[&str]) -> ServerOptions {
    ServerOptions {
        trusted_proxies: networks.iter().map(|net| net.parse().unwrap()).collect(),
        ..Config::default().server
    }
}

#[tokio::test]
async fn forwarded_headers_of_strangers_are_not_believed() {
    let headers = "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\n";
    let served = Served::start(&Config::default().server).await;
    assert!(served.ask(b"", headers).await.ends_with("http 127.0.0.1"));
    let served = Served::start(&trusting(&["127.0.0.0/8"])).await;
    assert!(served.ask(b"", headers).await.ends_with("https 192.0.2.1"));
}

#[tokio::test]
async fn a_proxy_header_is_believed_where_it_is_configured_and_from_whom_it_is_trusted() {
    let mut options = trusting(&["127.0.0.1/32"]);
    options.proxy_protocol = true;
    let served = Served::start(&options).await;
    assert!(served.ask(PROXY, "").await.ends_with("http 192.0.2.1"));
    assert_eq!(
        served.ask(b"", "").await,
        "",
        "a trusted proxy must send a header"
    );

    let mut options = trusting(&["192.0.2.0/24"]);
    options.proxy_protocol = true;
    let served = Served::start(&options).await;
    assert!(served.ask(PROXY, "").await.starts_with("HTTP/1.1 400"));
    assert!(served.ask(b"", "").await.ends_with("http 127.0.0.1"));
}

#[tokio::test]
async fn one_connection_too_many_from_an_address_is_refused() {
    let mut options = trusting(&["127.0.0.1/32"]);
    options.connections_per_address_max = 1;
    let served = Served::start(&options).await;
    let mut waiting = served.connect().await;
    let head = b"GET /wait HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n";
    waiting.write_all(head).await.unwrap();
    let refused = async {
        loop {
            let answer = served.ask(b"", "X-Forwarded-For: 192.0.2.1\r\n").await;
            if !answer.starts_with("HTTP/1.1 200") {
                return answer;
            }
        }
    };
    let answer = timeout(PATIENCE, refused).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 429"), "{answer}");
    assert!(answer.contains("retry-after"), "{answer}");
    let other = served.ask(b"", "X-Forwarded-For: 192.0.2.2\r\n").await;
    assert!(other.ends_with("http 192.0.2.2"));
}

#[tokio::test]
async fn g07_a_drain_ends_connections_over_its_window_and_lets_nobody_in() {
    let served = Served::start(&Config::default().server).await;
    let mut waiting = Vec::new();
    for _ in 0..20 {
        let mut stream = served.connect().await;
        stream
            .write_all(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
            .await
            .unwrap();
        waiting.push(stream);
    }
    while served.frontend.admission.open() < 20 {
        tokio::task::yield_now().await;
    }
    let window = Duration::from_millis(500);
    let started = Instant::now();
    let since = tokio::time::Instant::now();
    served.stop.enter(Phase::Leaving { since, window });
    let mut ends = Vec::new();
    for stream in &mut waiting {
        let said = rest(stream).await;
        assert!(said.ends_with("goodbye"), "{said}");
        ends.push(started.elapsed());
    }
    assert!(
        ends.iter().max().unwrap() > &(window / 4),
        "not all at once: {ends:?}"
    );
    assert!(TcpStream::connect(served.address).await.is_err());
    assert_eq!(served.frontend.admission.open(), 0);
}

#[tokio::test]
async fn who_has_just_connected_when_the_server_stops_is_still_answered() {
    let served = Served::start(&Config::default().server).await;
    let mut stream = served.connect().await;
    while served.frontend.admission.open() < 1 {
        tokio::task::yield_now().await;
    }
    served.stop.leave_at_once();
    // The connection notices it before the request arrives.
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .await
        .unwrap();
    let said = rest(&mut stream).await;
    assert!(said.ends_with("http 127.0.0.1"), "{said}");
    assert_eq!(served.frontend.admission.open(), 0);
}

#[tokio::test]
async fn when_it_is_over_everybody_is_cut_off() {
    let served = Served::start(&Config::default().server).await;
    let mut stream = served.connect().await;
    stream
        .write_all(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
        .await
        .unwrap();
    served.stop.enter(Phase::Over);
    rest(&mut stream).await;
}

#[tokio::test]
async fn r03_a_body_that_never_ends_is_given_up() {
    let served = Served::start(&Config::default().server).await;
    let head = b"POST /take HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 9\r\n\r\n";
    let mut whole = served.connect().await;
    whole.write_all(head).await.unwrap();
    whole.write_all(b"123456789").await.unwrap();
    assert!(rest(&mut whole).await.ends_with("taken"));

    let mut slow = served.connect().await;
    slow.write_all(head).await.unwrap();
    slow.write_all(b"1").await.unwrap();
    while served.frontend.admission.open() == 0 {
        tokio::task::yield_now().await;
    }
    // Wait until the header section has been read, because its timeout is shorter than that of the
    // body.
    tokio::time::sleep(Duration::from_millis(300)).await;
    tokio::time::pause();
    tokio::time::advance(BODY_TIMEOUT).await;
    tokio::time::resume();
    assert!(rest(&mut slow).await.ends_with("given up"));
}

#[tokio::test]
async fn a_long_request_keeps_its_connection_and_others_do_not() {
    let served = Served::start(&Config::default().server).await;
    let mut streams = Vec::new();
    for method in ["GET", "POST"] {
        let mut stream = served.connect().await;
        let request = format!("{method} /late HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        streams.push(stream);
    }
    let waiting = timeout(PATIENCE, WAITING.acquire_many(2)).await;
    waiting.unwrap().unwrap().forget();
    tokio::time::pause();
    for _ in 0..19 {
        tokio::time::advance(Duration::from_secs(5)).await;
    }
    tokio::time::resume();
    assert!(rest(&mut streams[0]).await.ends_with("late"));
    assert_eq!(rest(&mut streams[1]).await, "");
}

/// Writes a new certificate for `localhost` and returns it.
fn certify(options: &TlsOptions) -> Vec<u8> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(&options.certificate, made.cert.pem()).unwrap();
    std::fs::write(&options.key, made.signing_key.serialize_pem()).unwrap();
    made.cert.der().to_vec()
}

fn tls_options(directory: &std::path::Path) -> TlsOptions {
    TlsOptions {
        certificate: directory.join("certificate.pem"),
        key: directory.join("key.pem"),
    }
}

/// Starts a server with TLS. The folder contains its certificate and key.
async fn serve_tls() -> (Served, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let tls = tls_options(directory.path());
    certify(&tls);
    let options = ServerOptions {
        tls: Some(tls),
        ..Config::default().server
    };
    (Served::start(&options).await, directory)
}

/// Sends a request over TLS to the server, which must present this certificate.
async fn ask_tls(served: &Served, expected: &[u8]) -> String {
    let config = linerate::tls::danger_client_config_trusting_anybody();
    let connector = TlsConnector::from(Arc::new(config));
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = connector
        .connect(name, served.connect().await)
        .await
        .unwrap();
    let shown = stream.get_ref().1.peer_certificates().unwrap()[0].to_vec();
    assert_eq!(shown, expected);
    let head = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(head).await.unwrap();
    rest(&mut stream).await
}

#[tokio::test]
async fn t06_a_new_certificate_is_used_for_new_connections_and_a_broken_one_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let tls = tls_options(directory.path());
    let first = certify(&tls);
    let options = ServerOptions {
        tls: Some(tls.clone()),
        ..Config::default().server
    };
    let served = Served::start(&options).await;
    assert!(ask_tls(&served, &first).await.ends_with("https 127.0.0.1"));

    let certificate = served.frontend.certificate.clone().unwrap();
    assert!(!certificate.reload_if_changed().unwrap());
    std::fs::write(&tls.certificate, "no certificate").unwrap();
    assert!(certificate.reload().is_err());
    assert!(
        !certificate.reload_if_changed().unwrap(),
        "it is not tried again"
    );
    ask_tls(&served, &first).await;

    let second = certify(&tls);
    certificate.reload().unwrap();
    ask_tls(&served, &second).await;
}

#[tokio::test]
async fn who_does_not_speak_tls_or_says_nothing_is_cut_off() {
    let (served, _directory) = serve_tls().await;
    let mut plain = served.connect().await;
    plain
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .await
        .unwrap();
    assert!(!rest(&mut plain).await.contains("HTTP/1.1"));
    let mut silent = served.connect().await;
    assert_eq!(rest(&mut silent).await, "");
}

/// The kernel cannot buffer all of it, so that the server has to wait in both directions.
#[tokio::test]
async fn long_bodies_go_both_ways_over_tls() {
    const BYTES: usize = 16 << 20;
    let (served, _directory) = serve_tls().await;
    let config = linerate::tls::danger_client_config_trusting_anybody();
    let connector = TlsConnector::from(Arc::new(config));
    let name = ServerName::try_from("localhost").unwrap();
    let stream = connector.connect(name, served.connect().await).await;
    let (mut reader, mut writer) = tokio::io::split(stream.unwrap());
    let sent: Vec<u8> = (0..BYTES).map(|number| (number / 1_000) as u8).collect();
    let head = format!(
        "POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {BYTES}\r\n\r\n"
    );
    let mut request = head.into_bytes();
    request.extend_from_slice(&sent);
    let writing = tokio::spawn(async move { writer.write_all(&request).await });
    let mut answer = Vec::new();
    // The end must be announced: rustls would report an error otherwise.
    let read = timeout(PATIENCE, reader.read_to_end(&mut answer)).await;
    read.unwrap().unwrap();
    writing.await.unwrap().unwrap();
    let end = answer
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"));
    assert!(answer[end + 4..] == sent);
}

#[test]
fn a_certificate_that_is_none_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let tls = tls_options(directory.path());
    let error = Certificate::load(&tls).unwrap_err().to_string();
    assert!(error.contains("certificate.pem: "), "{error}");
    certify(&tls);
    let other = rcgen::KeyPair::generate().unwrap();
    std::fs::write(&tls.key, other.serialize_pem()).unwrap();
    let error = Certificate::load(&tls).unwrap_err().to_string();
    assert!(error.contains("key.pem: "), "{error}");
    assert!(!error.contains("PRIVATE"), "{error}");
}
