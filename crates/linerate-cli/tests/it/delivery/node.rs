//! A node: `linerate serve` with channels, on a port that stays the same across restarts.

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

use super::{
    backend::Backend, certificates::Certificates, clock::Clock, database::Database,
    webhook::Receiver,
};
use crate::{
    kafka::Kafka,
    support::{Response, linerate},
};

/// The key for requests to the server API.
pub(crate) const API_KEY: &str = "of-no-use-elsewhere";

/// How long a request may take.
const REQUEST_MAX: Duration = Duration::from_secs(10);

/// How long to wait for the response of `/ready`. A node that does not respond is not ready.
const READY_MAX: Duration = Duration::from_secs(2);

/// How often `/ready` is requested.
const READY_INTERVAL: Duration = Duration::from_millis(50);

/// `linerate serve` with channels. Killed when dropped.
pub(crate) struct Node {
    pub(crate) address: SocketAddr,
    /// The address of `/ready`.
    operations: SocketAddr,
    directory: TempDir,
    environment: Vec<(&'static str, String)>,
    process: Option<Child>,
}

/// Deviations from a default node.
#[derive(Default)]
pub(crate) struct Special<'a> {
    /// The backend that is asked who may connect and subscribe.
    pub(crate) backend: Option<&'a Backend>,
    pub(crate) certificates: Option<&'a Certificates>,
    /// The database whose changes the node publishes.
    pub(crate) database: Option<&'a Database>,
    /// The Kafka server whose records the node publishes.
    pub(crate) kafka: Option<&'a Kafka>,
    /// The Kafka server to which the node writes publications.
    pub(crate) written: Option<&'a Kafka>,
    /// The clock that the node uses.
    pub(crate) clock: Option<&'a Clock>,
    /// True if the broker can store only little.
    pub(crate) has_small_broker: bool,
    /// The webhook that is told what happens to clients.
    pub(crate) webhook: Option<&'a Receiver>,
}

/// Records when a node was ready.
pub(crate) struct Readiness {
    changes: Arc<Mutex<Vec<(Instant, bool)>>>,
    watch: JoinHandle<()>,
}

impl Node {
    pub(crate) async fn start(broker: &str, special: &Special<'_>) -> Self {
        let local = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let (address, operations) = (local(free_port()), local(free_port()));
        let tls = special.certificates.map_or(String::new(), |certificates| {
            let [certificate, key] = [certificates.certificate(), certificates.key()];
            format!("[server.tls]\ncertificate = {certificate:?}\nkey = {key:?}")
        });
        let stream_bytes_max = match special.has_small_broker {
            true => 4 << 20,
            false => 64 << 20,
        };
        let (ask_connect, ask_subscribe, backend) = match special.backend {
            Some(backend) => (
                "[client]\nconnect_backend = \"app\"",
                "subscribe_backend = \"app\"",
                backend.toml(),
            ),
            None => ("", "", String::new()),
        };
        let database = special.database.map(Database::toml).unwrap_or_default();
        let kafka = special.kafka.map(|kafka| kafka.toml("{key}"));
        let kafka = kafka.unwrap_or_default();
        let written = special
            .written
            .map(|kafka| kafka.producer_toml(&["historied:*", "durable:*", "short:*"]));
        let written = written.unwrap_or_default();
        let webhook = special.webhook.map(Receiver::toml).unwrap_or_default();
        let configuration = format!(
            r#"
[server]
listen = "{address}"
operations_listen = "{operations}"
workers = 2
{tls}
[broker]
url = "{broker}"
stream_bytes_max = {stream_bytes_max}
[auth]
anonymous = true
api_key = "{API_KEY}"
{ask_connect}
[channel]
allow_subscribe = true
allow_anonymous = true
{ask_subscribe}
[[namespace]]
name = "default"
[[namespace]]
name = "historied"
history_size = 10_000
recover = true
positioned = true
[[namespace]]
name = "durable"
history_size = 10_000
durable = true
recover = true
positioned = true
[[namespace]]
name = "short"
history_size = 5
durable = true
recover = true
positioned = true
{backend}{database}{kafka}{written}{webhook}"#
        );
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("linerate.toml"), configuration).unwrap();
        let environment = special.clock.iter().flat_map(|clock| clock.environment());
        let mut node = Self {
            address,
            operations,
            directory,
            environment: environment.collect(),
            process: None,
        };
        node.restart().await;
        node
    }

    /// Sends a signal to the process.
    pub(crate) fn signal(&self, signal: &str) {
        let pid = self.process.as_ref().expect("a node that runs").id();
        let mut kill = Command::new("kill");
        kill.args([signal, &pid.to_string()]);
        assert!(kill.status().unwrap().success());
    }

    /// Changes the configuration so that history is kept for `seconds`. It takes effect on SIGHUP.
    pub(crate) fn configure_ttl(&self, seconds: u64) {
        let file = self.directory.path().join("linerate.toml");
        let configuration = fs::read_to_string(&file).unwrap();
        let lines = configuration.lines();
        let lines = lines.filter(|line| !line.starts_with("history_ttl_s"));
        let changed: Vec<_> = lines
            .map(|line| match line {
                "[channel]" => format!("[channel]\nhistory_ttl_s = {seconds}"),
                line => line.to_owned(),
            })
            .collect();
        fs::write(file, changed.join("\n")).unwrap();
    }

    /// Returns everything that the process has logged, including before restarts.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    /// Kills the process with SIGKILL.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Sends SIGTERM to the process, and waits until it has drained its clients and exited.
    pub(crate) async fn terminate(&mut self) {
        self.signal("-TERM");
        let mut process = self.process.take().expect("a node that runs");
        let ended = spawn_blocking(move || process.wait()).await.unwrap();
        assert!(ended.unwrap().success());
    }

    /// Starts the process, and waits until it is ready.
    pub(crate) async fn restart(&mut self) {
        self.kill();
        let mut log = fs::OpenOptions::new();
        let log = log.create(true).append(true);
        let log = log.open(self.directory.path().join("log")).unwrap();
        let process = linerate(&["serve", "--config"])
            .arg(self.directory.path().join("linerate.toml"))
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        self.process = Some(process);
        let start = Instant::now();
        while !is_ready(self.operations).await {
            let log = self.log();
            assert!(start.elapsed() < Duration::from_secs(20), "no node: {log}");
            sleep(READY_INTERVAL).await;
        }
    }

    /// Returns the value of a metric.
    pub(crate) async fn metric(&self, name: &str) -> Option<f64> {
        let response = request(self.operations, "GET", "/metrics", "", "").await?;
        let mut lines = response.text().lines();
        let value = lines.find_map(|line| line.strip_prefix(name))?;
        value.trim().parse().ok()
    }

    /// Starts to record whether the node is ready.
    pub(crate) fn watch(&self) -> Readiness {
        let (address, changes) = (self.operations, Arc::new(Mutex::new(Vec::new())));
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
    /// Returns how long after `since` the node first reported that it is (or is not) ready.
    pub(crate) fn after(&self, since: Instant, is_ready: bool) -> Option<Duration> {
        let changes = self.changes.lock().unwrap();
        let mut after = changes.iter().filter(|(at, _)| *at >= since);
        let (at, _) = after.find(|(_, state)| *state == is_ready)?;
        Some(*at - since)
    }

    /// Returns how long after `since` the node was ready again, or `None` if it was ready all the
    /// time.
    pub(crate) fn green_after(&self, since: Instant) -> Option<Duration> {
        let red = self.after(since, false)?;
        Some(red + self.after(since + red, true)?)
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

/// Publishes JSON through the server API. Returns whether the node has acknowledged it.
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
    let response = timeout(READY_MAX, request(address, "GET", "/ready", "", "")).await;
    response.is_ok_and(|response| response.is_some_and(|response| response.status == 200))
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
