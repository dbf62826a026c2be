//! Tests of `linerate serve --takeover`.
#![cfg(target_os = "linux")]

mod clients;
mod kills;
mod peers;
mod supervisor;
mod webhooks;

use std::{
    io::Read,
    net::SocketAddr,
    path::PathBuf,
    process::{Command, ExitStatus, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use linerate::Client;
use serde_json::json;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::{JoinHandle, spawn_blocking},
    time::timeout,
};

use crate::support::{PATIENCE, Response, Server, linerate, server_close};

/// A folder with the takeover socket of a server.
struct Deploys(TempDir);

impl Deploys {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn socket(&self) -> PathBuf {
        self.0.path().join("takeover.sock")
    }

    /// Returns the flags of all servers, with further ones.
    fn flags(&self, more: &[&str]) -> Vec<String> {
        let socket = format!("server.takeover_socket={}", self.socket().display());
        let more = more.iter().map(|flag| (*flag).to_owned());
        ["--set".to_owned(), socket]
            .into_iter()
            .chain(more)
            .collect()
    }

    fn start(&self, more: &[&str]) -> Server {
        let flags = self.flags(more);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        Server::start_logging(&flags)
    }

    /// Returns a command that starts a server at an address and prints when it serves.
    fn command(&self, address: SocketAddr) -> Command {
        let mut command = linerate(&["serve", "--listen", &address.to_string(), "--workers", "2"]);
        command.args(self.flags(&[]));
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        command
    }
}

/// Waits until a server ends by itself; returns its log.
async fn ended(mut server: Server) -> (ExitStatus, String) {
    let waiting = spawn_blocking(move || {
        let mut log = String::new();
        let mut errors = server.child.stderr.take().unwrap();
        errors.read_to_string(&mut log).unwrap();
        (server.child.wait().unwrap(), log)
    });
    timeout(PATIENCE, waiting).await.unwrap().unwrap()
}

/// Clients that connect, ask and leave, continuously.
struct Visitors {
    is_over: Arc<AtomicBool>,
    answers: Arc<AtomicU64>,
    tasks: Vec<JoinHandle<()>>,
}

impl Visitors {
    fn arrive(address: SocketAddr) -> Self {
        let (is_over, answers) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let visit = |_| {
            let (is_over, answers) = (is_over.clone(), answers.clone());
            tokio::spawn(async move {
                while !is_over.load(Ordering::Relaxed) {
                    ask(address).await;
                    answers.fetch_add(1, Ordering::Relaxed);
                }
            })
        };
        let tasks = (0..4).map(visit).collect();
        Self {
            is_over,
            answers,
            tasks,
        }
    }

    /// Waits until some more have been answered.
    async fn some(&self) {
        let before = self.answers.load(Ordering::Relaxed);
        let some = async {
            while self.answers.load(Ordering::Relaxed) < before + 40 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, some)
            .await
            .expect("visitors are answered");
    }

    async fn leave(self) {
        self.is_over.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.expect("every visitor was answered");
        }
    }
}

/// Connects and asks; every connection must be accepted and answered.
async fn ask(address: SocketAddr) {
    let mut stream = TcpStream::connect(address).await.expect("not refused");
    let head = format!("GET /live HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.expect("not closed");
    let response = Response::try_read_from(&mut stream).await;
    assert_eq!(response.expect("an answer").status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn during_ten_takeovers_no_client_is_refused() {
    let deploys = Deploys::new();
    let mut running = deploys.start(&[]);
    let address = running.address;
    let visitors = Visitors::arrive(address);
    for _ in 0..10 {
        visitors.some().await;
        let started = spawn_blocking({
            let flags = deploys.flags(&["--takeover"]);
            move || {
                let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
                Server::start_logging(&flags)
            }
        });
        let new = timeout(PATIENCE, started).await.unwrap().unwrap();
        assert_eq!(new.address, address);
        let old = std::mem::replace(&mut running, new);
        let (status, log) = ended(old).await;
        assert!(status.success(), "{log}");
        for line in [
            "takeover: a new process is starting",
            "takeover: the new process is ready",
            "takeover: the new process is responsible",
            "takeover: the new process serves",
            "draining",
        ] {
            assert!(log.contains(line), "{line}\n{log}");
        }
    }
    visitors.some().await;
    visitors.leave().await;
    let metrics = running.get("/metrics").await;
    for count in ["started\"} 1", "succeeded\"} 1", "failed\"} 0"] {
        let line = format!("linerate_takeovers_total{{result=\"{count}");
        assert!(metrics.text().contains(&line), "{line}\n{}", metrics.text());
    }
    let log = running.stop_and_read_log();
    for line in [
        "takeover: asking the running process",
        "takeover: welcome",
        "takeover: listener ready",
        "takeover: serving",
    ] {
        assert!(log.contains(line), "{line}\n{log}");
    }
}

#[tokio::test]
async fn websockets_are_drained_and_requests_complete() {
    let deploys = Deploys::new();
    let old = deploys.start(&[]);
    let mut raw = old.connect("/raw?channel=demo:x").await;
    let native = Client::new().with_subprotocol("linerate.v1");
    let mut native = native
        .connect(&old.url("/connection/websocket"))
        .await
        .unwrap();
    let mut centrifuge = old.connect("/connection/websocket").await;
    for ws in [&mut native, &mut centrifuge] {
        ws.send(r#"{"id":1,"connect":{}}"#).await.unwrap();
        assert!(ws.recv().await.unwrap().is_some());
    }
    old.api("publish", json!({"channel": "demo:x", "data": 1}))
        .await;
    assert!(raw.recv().await.unwrap().is_some());
    // A request of which a half has arrived, on a connection that has served another.
    let mut request = TcpStream::connect(old.address).await.unwrap();
    let head = format!("Host: {}\r\n", old.address);
    let first = format!("GET /live HTTP/1.1\r\n{head}\r\n");
    request.write_all(first.as_bytes()).await.unwrap();
    let mut answer = [0; 15];
    request.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200 OK");
    let second = format!("POST /api/info HTTP/1.1\r\n{head}Content-Length: 2\r\n\r\n{{");
    request.write_all(second.as_bytes()).await.unwrap();

    let new = deploys.start(&["--takeover"]);
    request.write_all(b"}").await.unwrap();
    let mut rest = String::new();
    let reading = timeout(PATIENCE, request.read_to_string(&mut rest));
    reading.await.unwrap().unwrap();
    assert!(
        rest.contains("HTTP/1.1 200 OK") && rest.contains("\"result\""),
        "{rest}"
    );
    assert_eq!(
        server_close(&mut raw).await,
        (1001, "server shutting down".to_owned())
    );
    for ws in [&mut native, &mut centrifuge] {
        assert_eq!(server_close(ws).await, (3001, "shutdown".to_owned()));
    }
    let (status, log) = ended(old).await;
    assert!(status.success(), "{log}");
    // Those who come back reach the new process.
    let mut again = new.connect("/raw?channel=demo:x").await;
    new.api("publish", json!({"channel": "demo:x", "data": 2}))
        .await;
    assert!(
        timeout(PATIENCE, again.recv())
            .await
            .unwrap()
            .unwrap()
            .is_some()
    );
}

#[tokio::test]
async fn the_first_process_starts_as_usual_and_mistakes_are_explained() {
    let deploys = Deploys::new();
    let first = deploys.start(&["--takeover"]);
    ask(first.address).await;
    let log = first.stop_and_read_log();
    let lines = log
        .lines()
        .filter(|line| line.contains("starting as usual"));
    assert_eq!(lines.count(), 1, "{log}");

    for (arguments, expected) in [
        (&["--takeover"][..], "requires server.takeover_socket"),
        (&["--detach"], "--takeover"),
        (
            &["--set", "server.takeover_socket=run/t.sock"],
            "must be an absolute path",
        ),
        (
            &["--set", "server.takeover_executable=/bin/true"],
            "has no effect without",
        ),
    ] {
        let output = linerate(&["serve", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .output();
        let output = output.unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(errors.contains(expected), "{arguments:?}: {errors}");
    }
}
