//! A node: `linerate serve` with channels, on a port that it keeps over restarts.

use std::{
    fs,
    net::SocketAddr,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use linerate_testkit::server::free_port;
use tempfile::TempDir;
use tokio::{
    io::AsyncWriteExt,
    net::TcpStream,
    task::{JoinHandle, spawn_blocking},
    time::{sleep, timeout},
};

use crate::support::{Response, linerate};

/// What requests to the server API show.
pub(crate) const API_KEY: &str = "of-no-use-elsewhere";

/// How long a request may take.
const REQUEST_MAX: Duration = Duration::from_secs(10);

/// How often a node is asked whether it is ready.
const READY_INTERVAL: Duration = Duration::from_millis(50);

/// `linerate serve` with channels whose names begin with `kept:`, `short:` and `plain:`. Killed when dropped.
pub(crate) struct Node {
    pub(crate) address: SocketAddr,
    directory: TempDir,
    process: Option<Child>,
}

/// When a node was ready.
pub(crate) struct Readiness {
    changes: Arc<Mutex<Vec<(Instant, bool)>>>,
    watch: JoinHandle<()>,
}

impl Node {
    pub(crate) async fn start(broker: &str) -> Self {
        let port = free_port();
        let directory = tempfile::tempdir().unwrap();
        let configuration = format!(
            r#"
[server]
listen = "127.0.0.1:{port}"
workers = 2
[broker]
url = "{broker}"
[auth]
anonymous = true
api_key = "{API_KEY}"
[channel]
history_size = 10_000
history_ttl_s = 300
recover = true
positioned = true
allow_subscribe = true
allow_anonymous = true
[[namespace]]
name = "kept"
durable = true
[[namespace]]
name = "short"
durable = true
history_size = 5
[[namespace]]
name = "plain"
history_size = 0
recover = false
positioned = false
"#
        );
        fs::write(directory.path().join("linerate.toml"), configuration).unwrap();
        let mut node = Self {
            address: SocketAddr::from(([127, 0, 0, 1], port)),
            directory,
            process: None,
        };
        node.restart().await;
        node
    }

    /// Ends the process as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Asks the process to end, and waits until it has sent its clients away.
    pub(crate) async fn terminate(&mut self) {
        let Some(mut process) = self.process.take() else {
            return;
        };
        let pid = process.id().to_string();
        let told = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(told.unwrap().success());
        let ended = spawn_blocking(move || process.wait()).await.unwrap();
        assert!(ended.unwrap().success());
    }

    /// Starts the process, and waits until it is ready.
    pub(crate) async fn restart(&mut self) {
        self.kill();
        let log = fs::File::create(self.directory.path().join("log")).unwrap();
        let process = linerate(&["serve", "--config"])
            .arg(self.directory.path().join("linerate.toml"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        self.process = Some(process);
        let start = Instant::now();
        while !is_ready(self.address).await {
            let log = fs::read_to_string(self.directory.path().join("log"));
            assert!(
                start.elapsed() < Duration::from_secs(20),
                "no node: {log:?}"
            );
            sleep(READY_INTERVAL).await;
        }
    }

    /// Starts to watch whether the node is ready.
    pub(crate) fn watch(&self) -> Readiness {
        let (address, changes) = (self.address, Arc::new(Mutex::new(Vec::new())));
        let seen: Arc<Mutex<Vec<(Instant, bool)>>> = Arc::clone(&changes);
        let watch = tokio::spawn(async move {
            loop {
                let is_ready = is_ready(address).await;
                note(&mut seen.lock().unwrap(), is_ready);
                sleep(READY_INTERVAL).await;
            }
        });
        Readiness { changes, watch }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Readiness {
    /// Returns how long after `since` the node said for the first time that it is, or is not, ready.
    pub(crate) fn after(&self, since: Instant, is_ready: bool) -> Option<Duration> {
        let changes = self.changes.lock().unwrap();
        let mut after = changes.iter().filter(|(at, _)| *at >= since);
        let (at, _) = after.find(|(_, state)| *state == is_ready)?;
        Some(*at - since)
    }

    /// Waits until the node is ready.
    pub(crate) async fn ready(&self) {
        let start = Instant::now();
        loop {
            if self
                .changes
                .lock()
                .unwrap()
                .last()
                .is_some_and(|(_, is_ready)| *is_ready)
            {
                return;
            }
            assert!(
                start.elapsed() < Duration::from_secs(30),
                "never ready again"
            );
            sleep(READY_INTERVAL).await;
        }
    }
}

impl Drop for Readiness {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

fn note(seen: &mut Vec<(Instant, bool)>, is_ready: bool) {
    if seen.last().is_none_or(|(_, before)| *before != is_ready) {
        seen.push((Instant::now(), is_ready));
    }
}

/// Publishes JSON through the server API. Returns whether the node says that it is published.
pub(crate) async fn publish(address: SocketAddr, channel: &str, payload: &str) -> bool {
    let body = format!(r#"{{"channel":"{channel}","data":{payload}}}"#);
    let headers = format!(
        "X-API-Key: {API_KEY}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
        body.len()
    );
    let response = request(address, "POST", "/api/publish", &headers, &body).await;
    response
        .is_some_and(|response| response.status == 200 && !response.text().contains("\"error\""))
}

async fn is_ready(address: SocketAddr) -> bool {
    let response = request(address, "GET", "/ready", "", "").await;
    response.is_some_and(|response| response.status == 200)
}

async fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> Option<Response> {
    let exchange = async {
        let mut stream = TcpStream::connect(address).await.ok()?;
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
        let request = format!("{head}{headers}\r\n{body}");
        stream.write_all(request.as_bytes()).await.ok()?;
        Response::try_read_from(&mut stream).await
    };
    timeout(REQUEST_MAX, exchange).await.ok()?
}
