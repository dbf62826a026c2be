//! Runs the example programs, and checks with a client what they do.
//!
//! `cargo test` builds examples unless targets are selected; `make unit` builds them first.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failing test should panic")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
};

use linerate::{
    Client, CloseCode, Error, Server, WebSocket,
    handshake::HttpVersion,
    tls::{self, rustls::pki_types::PrivateKeyDer},
};
use linerate_testkit::PATIENCE;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines},
    net::{TcpListener, TcpStream},
    process::{Child, ChildStdout, Command},
    time::timeout,
};

/// The examples that a newcomer reads, each with the maximum number of its lines of code.
const LINES_MAX: [(&str, usize); 14] = [
    ("async_decision", 40),
    ("axum_http2", 40),
    ("axum_state", 40),
    ("chat", 25),
    ("custom_ca", 40),
    ("echo", 20),
    ("http3", 40),
    ("hyper_service", 40),
    ("in_memory", 40),
    ("market", 40),
    ("reconnect", 40),
    ("relay", 40),
    ("stream_file", 40),
    ("unix_socket", 40),
];

/// An example that runs until the test ends.
struct Program {
    child: Child,
    stdout: Lines<BufReader<ChildStdout>>,
}

impl Program {
    fn start(name: &str, arguments: &[&str]) -> Self {
        let mut child = command(name)
            .args(arguments)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot run the example {name}: {error}; {BUILD}"));
        let stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, stdout }
    }

    /// Starts a server on a free port; also returns the URL that it prints.
    async fn serve(name: &str) -> (Self, String) {
        let mut program = Self::start(name, &["127.0.0.1:0"]);
        let url = program.line().await;
        (program, url)
    }

    async fn line(&mut self) -> String {
        let line = in_time(self.stdout.next_line()).await.unwrap();
        line.expect("the program prints a line")
    }

    /// Waits until the program has ended by itself.
    async fn end(mut self) {
        let status = in_time(self.child.wait()).await.unwrap();
        assert!(status.success(), "{status}");
    }

    /// Interrupts the program, as Ctrl-C does, and waits for its end.
    async fn stop(self) {
        let id = self.child.id().unwrap().to_string();
        let killed = Command::new("kill").args(["-INT", &id]).status();
        assert!(killed.await.unwrap().success());
        self.end().await;
    }
}

const BUILD: &str = "build it with `cargo build -p linerate --all-features --examples`";

/// Returns the command of an example, which is in the directory next to that of this test.
fn command(name: &str) -> Command {
    let test = std::env::current_exe().unwrap();
    let profile = test.ancestors().nth(2).unwrap();
    Command::new(profile.join("examples").join(name))
}

/// Returns the path of a temporary file.
fn temporary(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

async fn in_time<F: Future>(future: F) -> F::Output {
    timeout(PATIENCE, future)
        .await
        .expect("it must end in time")
}

async fn connect(url: &str) -> WebSocket {
    in_time(linerate::connect(url)).await.unwrap()
}

async fn receive(ws: &mut WebSocket) -> String {
    let message = in_time(ws.recv()).await.unwrap();
    let message = message.expect("the connection is open");
    message.as_text().expect("a text message").to_owned()
}

async fn echoes(ws: &mut WebSocket) {
    ws.send("Spam").await.unwrap();
    assert_eq!(receive(ws).await, "Spam");
}

/// Closes the connection from the client's side.
async fn leave(mut ws: WebSocket) {
    let closed = in_time(ws.close(CloseCode::NORMAL, "")).await.unwrap();
    assert!(closed.clean, "{closed}");
}

/// Returns the status with which a server refuses a client.
async fn refusal(client: Client, url: &str) -> u16 {
    match in_time(client.connect(url)).await {
        Err(Error::StatusUnexpected(response)) => response.status,
        other => panic!("not refused: {other:?}"),
    }
}

/// Returns the response to a request for a page over HTTP/1.1.
async fn page(url: &str) -> String {
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    in_time(stream.read_to_string(&mut response)).await.unwrap();
    response
}

#[test]
fn examples_are_short() {
    for (name, lines_max) in LINES_MAX {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("examples/{name}.rs"));
        let text = fs::read_to_string(&path).unwrap();
        let lines = text.lines().map(str::trim);
        let code = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
        let lines = code.count();
        assert!(
            lines <= lines_max,
            "{name}: {lines} lines, maximum {lines_max}"
        );
    }
}

#[tokio::test]
async fn echo_echoes_and_closes_when_it_is_interrupted() {
    let (program, url) = Program::serve("echo").await;
    let mut ws = connect(&url).await;
    echoes(&mut ws).await;
    program.stop().await;
    assert_eq!(in_time(ws.recv()).await.unwrap(), None);
    assert_eq!(ws.closed().unwrap().code, 1001);
}

#[tokio::test]
async fn chat_sends_to_the_members_of_a_room() {
    let (program, url) = Program::serve("chat").await;
    let user = |token: &str| Client::new().with_header("Authorization", format!("Bearer {token}"));
    assert_eq!(refusal(Client::new(), &url).await, 401);
    assert_eq!(refusal(user("eve-secret"), &url).await, 401);

    let mut ann = in_time(user("ann-secret").connect(&url)).await.unwrap();
    let mut bob = in_time(user("bob-secret").connect(&url)).await.unwrap();
    let elsewhere = url.replace("lobby", "attic");
    let mut alone = in_time(user("bob-secret").connect(&elsewhere))
        .await
        .unwrap();
    // The reply to its own message shows that a client has joined.
    bob.send("here").await.unwrap();
    assert_eq!(receive(&mut bob).await, "bob: here");
    alone.send("here").await.unwrap();
    assert_eq!(receive(&mut alone).await, "bob: here");
    ann.send("Spam").await.unwrap();
    assert_eq!(receive(&mut bob).await, "ann: Spam");
    ann.send("Eggs").await.unwrap();
    while receive(&mut ann).await != "ann: Eggs" {}
    // Nothing came from the other room in between.
    alone.send("still here").await.unwrap();
    assert_eq!(receive(&mut alone).await, "bob: still here");
    program.stop().await;
}

#[tokio::test]
async fn async_decision_looks_up_the_session() {
    let (program, url) = Program::serve("async_decision").await;
    let session = |cookie: &str| Client::new().with_cookie("session", cookie).unwrap();
    assert_eq!(refusal(Client::new(), &url).await, 401);
    assert_eq!(refusal(session("0000"), &url).await, 401);
    let mut ws = in_time(session("7f3a").connect(&url)).await.unwrap();
    assert_eq!(receive(&mut ws).await, "hello ann");
    echoes(&mut ws).await;
    program.stop().await;
}

#[tokio::test]
async fn axum_state_counts_the_messages_of_all_connections() {
    let (program, url) = Program::serve("axum_state").await;
    let mut ws = connect(&format!("{}count", url.replace("http", "ws"))).await;
    for count in ["1", "2"] {
        ws.send("Spam").await.unwrap();
        assert_eq!(receive(&mut ws).await, count);
    }
    assert!(page(&url).await.ends_with("\r\n\r\n2 messages\n"));
    program.stop().await;
    assert_eq!(in_time(ws.recv()).await.unwrap(), None);
    assert_eq!(ws.closed().unwrap().code, 1001);
}

#[tokio::test]
async fn axum_http2_serves_a_page_and_both_versions() {
    let (_program, url) = Program::serve("axum_http2").await;
    assert!(page(&url).await.ends_with("\r\n\r\na page\n"));
    let url = format!("{}echo", url.replace("http", "ws"));
    for client in [Client::new(), Client::new().with_http2_prior_knowledge()] {
        let mut ws = in_time(client.connect(&url)).await.unwrap();
        echoes(&mut ws).await;
        leave(ws).await;
    }
}

#[tokio::test]
async fn hyper_service_echoes_and_refuses() {
    let (_program, url) = Program::serve("hyper_service").await;
    let mut ws = connect(&url).await;
    echoes(&mut ws).await;
    leave(ws).await;
    let foreign = Client::new().with_origin("https://example.com".parse().unwrap());
    assert_eq!(refusal(foreign, &url).await, 403);
    let response = page(&url.replace("ws", "http")).await;
    assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
}

#[tokio::test]
async fn http3_serves_three_versions() {
    let (program, url) = Program::serve("http3").await;
    let trusting = Arc::new(tls::danger_client_config_trusting_anybody());
    let client = || Client::new().with_tls(trusting.clone());
    for (client, version) in [
        (client(), HttpVersion::Http11),
        (client().with_http2(), HttpVersion::Http2),
        (client().with_http3(), HttpVersion::Http3),
    ] {
        let mut ws = in_time(client.connect(&url)).await.unwrap();
        assert_eq!(receive(&mut ws).await, format!("hello over {version:?}"));
        echoes(&mut ws).await;
        leave(ws).await;
    }
    program.stop().await;
}

#[tokio::test]
async fn custom_ca_trusts_only_its_authority() {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let config = tls::server_config(vec![cert.der().clone()], key).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("wss://localhost:{}/", listener.local_addr().unwrap().port());
    let server = Server::new().with_tls(Arc::new(config));
    tokio::spawn(server.serve(
        listener,
        |mut ws, _| async move {
            ws.for_each(|message, replies| {
                replies.push(message);
                Ok(())
            })
            .await
        },
        std::future::pending(),
    ));

    let path = temporary("custom_ca.pem");
    fs::write(&path, cert.pem()).unwrap();
    let mut program = Program::start("custom_ca", &[path.to_str().unwrap(), &url]);
    assert!(program.line().await.contains("hello"));
    program.end().await;

    let other = generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    fs::write(&path, other.cert.pem()).unwrap();
    let output = command("custom_ca").arg(&path).arg(&url).output();
    assert!(!in_time(output).await.unwrap().status.success());
}

#[tokio::test]
async fn in_memory_passes() {
    Program::start("in_memory", &[]).end().await;
}

#[tokio::test]
async fn market_sends_prices() {
    let (program, url) = Program::serve("market").await;
    let mut ws = connect(&url).await;
    for _ in 0..3 {
        assert!(receive(&mut ws).await.contains(r#""symbol":"SPAM""#));
    }
    program.stop().await;
}

#[tokio::test]
async fn reconnect_returns_after_a_failure_but_not_after_a_normal_end() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/", listener.local_addr().unwrap());
    let mut program = Program::start("reconnect", &[&url]);
    for (number, last) in [("1", false), ("2", true)] {
        let (stream, _) = in_time(listener.accept()).await.unwrap();
        let (mut ws, _) = in_time(linerate::accept(stream)).await.unwrap();
        assert_eq!(receive(&mut ws).await, "subscribe");
        ws.send(number).await.unwrap();
        assert!(program.line().await.contains(number));
        let code = if last {
            CloseCode::NORMAL
        } else {
            CloseCode::GOING_AWAY
        };
        in_time(ws.close(code, "")).await.unwrap();
    }
    program.end().await;
}

#[tokio::test]
async fn relay_forwards_to_the_same_path() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = format!("ws://{}", listener.local_addr().unwrap());
    tokio::spawn(linerate::serve(
        listener,
        |mut ws, request| async move {
            ws.send(request.target()).await?;
            while let Some(message) = ws.recv().await? {
                ws.send(message).await?;
            }
            Ok(())
        },
        std::future::pending(),
    ));
    let mut program = Program::start("relay", &["127.0.0.1:0", &upstream]);
    let url = format!("{}attic?full", program.line().await);
    let mut ws = connect(&url).await;
    assert_eq!(receive(&mut ws).await, "/attic?full");
    echoes(&mut ws).await;
    leave(ws).await;
    assert!(program.line().await.starts_with(&upstream));
    program.stop().await;
}

#[tokio::test]
async fn stream_file_copies_a_file_that_exceeds_the_limit_of_messages() {
    let path = temporary("stream_file");
    let content: Vec<u8> = (0..3 << 20).map(|index: u32| (index / 7) as u8).collect();
    fs::write(&path, &content).unwrap();
    let arguments = ["serve", path.to_str().unwrap(), "127.0.0.1:0"];
    let mut server = Program::start("stream_file", &arguments);
    let url = server.line().await;
    let output = command("stream_file").args(["fetch", &url]).output();
    let output = in_time(output).await.unwrap();
    assert!(output.status.success());
    assert!(output.stdout == content, "the copy differs");
    server.stop().await;
}

#[tokio::test]
async fn unix_socket_accepts_its_own_user() {
    // The path of a socket may have about a hundred bytes, which the build directory may exceed.
    let path = std::env::temp_dir().join(format!("linerate-example-{}", std::process::id()));
    let mut program = Program::start("unix_socket", &[path.to_str().unwrap()]);
    assert_eq!(program.line().await, path.to_str().unwrap());
    let client = Client::new();
    let mut ws = in_time(client.connect_unix(&path, "ws://localhost/"))
        .await
        .unwrap();
    echoes(&mut ws).await;
    program.stop().await;
    fs::remove_file(path).unwrap();
}
