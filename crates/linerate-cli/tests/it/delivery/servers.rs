//! Redis and NATS in processes of our own, and what can be done to them.

use std::{
    env, fs,
    io::{Read, Write},
    net::TcpStream,
    ops::{Deref, DerefMut},
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use linerate_testkit::{
    server::{ServerProcess, find, free_port},
    skip,
};
use serde_json::Value;

use super::{clock::Clock, nats};

/// Bytes of the disk of a broker that is to become full.
const DISK: &str = "size=64m";

/// Bytes that JetStream may store.
const NATS_STORED_MAX: &str = "32MB";

/// How long a replica may take to copy what there is.
const COPIED_MAX: Duration = Duration::from_secs(20);

/// Which broker.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Nats,
    Redis,
}

/// What is special about a server.
#[derive(Default)]
pub(crate) struct Special<'a> {
    /// The time of day that it goes by. NATS knows no other than the right one: Go does not ask the library.
    pub(crate) clock: Option<&'a Clock>,
    /// True if it writes to a small disk of its own.
    pub(crate) has_disk: bool,
    /// True if it stores little.
    pub(crate) is_small: bool,
    /// The port of the server that this one copies.
    pub(crate) copies: Option<u16>,
}

/// A broker's server on a free port. Killed when dropped.
pub(crate) struct BrokerServer {
    pub(crate) kind: Kind,
    // Before the process, since its directory is removed with it.
    disk: Option<Disk>,
    process: ServerProcess,
}

impl Kind {
    pub(crate) fn url(self, port: u16) -> String {
        match self {
            Self::Nats => format!("nats://127.0.0.1:{port}"),
            Self::Redis => format!("redis://127.0.0.1:{port}"),
        }
    }

    fn binary(self) -> String {
        let (variable, name) = match self {
            Self::Nats => ("NATS_SERVER_BIN", "nats-server"),
            Self::Redis => ("REDIS_SERVER_BIN", "redis-server"),
        };
        env::var(variable).unwrap_or_else(|_| name.to_owned())
    }

    /// Both write to a file before they answer; what is written survives the process, though not the machine.
    fn arguments(self, port: u16, directory: &Path, special: &Special<'_>) -> Vec<String> {
        let directory = directory.display().to_string();
        let port = port.to_string();
        let copied = special.copies.map(|port| port.to_string());
        let mut arguments = match self {
            Self::Nats => vec!["-a", "127.0.0.1", "-p", &port, "-js", "-sd", &directory],
            Self::Redis => vec![
                "--bind",
                "127.0.0.1",
                "--port",
                &port,
                "--dir",
                &directory,
                "--save",
                "",
                "--appendonly",
                "yes",
                "--repl-diskless-sync-delay",
                "0",
            ],
        };
        if let (Self::Redis, Some(port)) = (self, &copied) {
            arguments.extend(["--replicaof", "127.0.0.1", port]);
        }
        let configuration = format!("{directory}/nats.conf");
        if self == Self::Nats && special.is_small {
            let limits = format!("jetstream {{ max_file_store: {NATS_STORED_MAX} }}\n");
            fs::write(&configuration, limits).unwrap();
            arguments.extend(["-c", &configuration]);
        }
        arguments.into_iter().map(ToOwned::to_owned).collect()
    }
}

impl BrokerServer {
    /// Starts a server; `None` if something that it needs is not there, which is said.
    pub(crate) fn start(kind: Kind, special: &Special<'_>) -> Option<Self> {
        let port = free_port();
        let binary = kind.binary();
        find(&binary)?;
        if special.has_disk && !can_mount() {
            return None;
        }
        let mut disk = None;
        let process = ServerProcess::start("env", port, |directory| {
            let directory = match special.has_disk {
                true => &disk.insert(Disk::mount(directory.join("disk"))).path,
                false => directory,
            };
            let environment = special.clock.iter().flat_map(|clock| clock.environment());
            let environment = environment.map(|(name, value)| format!("{name}={value}"));
            let program = environment.chain([binary]);
            program
                .chain(kind.arguments(port, directory, special))
                .collect()
        })?;
        let server = Self {
            kind,
            disk,
            process,
        };
        if special.copies.is_some() && kind == Kind::Redis {
            server.wait_for_copy();
        }
        Some(server)
    }

    /// Lets a replica answer for itself. NATS has none here: the server begins with nothing.
    pub(crate) fn promote(&self) {
        if self.kind == Kind::Redis {
            self.redis("REPLICAOF NO ONE");
        }
    }

    /// Lets it take no more than it has.
    pub(crate) async fn fill(&self) {
        match self.kind {
            Kind::Redis => {
                self.redis("CONFIG SET maxmemory 1");
            }
            Kind::Nats => {
                let stream = r#"{"name":"FILLER","subjects":["filler"],"storage":"file"}"#;
                self.nats("STREAM.CREATE.FILLER", stream).await;
                let payload = "x".repeat(512 << 10);
                // Until it is full: the limit divided by the size of a message, and some.
                for _ in 0..80 {
                    let answer = nats::request(self.port(), "filler", &payload).await;
                    if answer.is_none_or(|answer| answer["error"].is_object()) {
                        break;
                    }
                }
            }
        }
    }

    /// Lets it take more again.
    pub(crate) async fn empty(&self) {
        match self.kind {
            Kind::Redis => {
                self.redis("CONFIG SET maxmemory 0");
            }
            Kind::Nats => {
                self.nats("STREAM.DELETE.FILLER", "").await;
            }
        }
    }

    /// Throws away what it keeps, or in Redis some of it, soon.
    pub(crate) async fn evict(&self) {
        match self.kind {
            Kind::Redis => {
                let memory = self.redis("INFO memory");
                let used = memory
                    .lines()
                    .find_map(|line| line.strip_prefix("used_memory:"));
                let used: u64 = used.expect("Redis says so").trim().parse().unwrap();
                self.redis("CONFIG SET maxmemory-policy allkeys-random");
                self.redis(&format!("CONFIG SET maxmemory {}", used + (64 << 10)));
            }
            Kind::Nats => {
                let names = self.nats("STREAM.NAMES", "").await;
                for name in names["streams"].as_array().into_iter().flatten() {
                    let name = name.as_str().expect("a name");
                    self.nats(&format!("STREAM.PURGE.{name}"), "").await;
                }
            }
        }
    }

    /// Lets it keep what it has again.
    pub(crate) fn keep(&self) {
        if self.kind == Kind::Redis {
            self.redis("CONFIG SET maxmemory 0");
        }
    }

    /// Leaves nothing of the disk that it has for itself.
    pub(crate) fn fill_disk(&self) {
        let disk = self.disk.as_ref().expect("a server with a disk");
        let mut file = fs::File::create(disk.filler()).unwrap();
        for size in [1 << 20, 1 << 10, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
    }

    /// Gives it its disk back. NATS turns JetStream off for good when that is full, so it is started again.
    pub(crate) fn empty_disk(&mut self) {
        let disk = self.disk.as_ref().expect("a server with a disk");
        fs::remove_file(disk.filler()).unwrap();
        if self.kind == Kind::Nats {
            self.process.restart();
        }
    }

    fn wait_for_copy(&self) {
        let start = Instant::now();
        while !self
            .redis("INFO replication")
            .contains("master_link_status:up")
        {
            assert!(start.elapsed() < COPIED_MAX, "the replica copies nothing");
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Runs a command and returns the answer as it is.
    fn redis(&self, command: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port())).unwrap();
        stream
            .write_all(format!("{command}\r\nQUIT\r\n").as_bytes())
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(!answer.starts_with('-'), "{command}: {answer}");
        answer
    }

    /// Asks JetStream.
    async fn nats(&self, what: &str, body: &str) -> Value {
        let subject = format!("$JS.API.{what}");
        let answer = nats::request(self.port(), &subject, body).await;
        let answer = answer.unwrap_or_else(|| panic!("no answer to {what}"));
        assert!(!answer["error"].is_object(), "{what}: {answer}");
        answer
    }
}

impl Deref for BrokerServer {
    type Target = ServerProcess;

    fn deref(&self) -> &ServerProcess {
        &self.process
    }
}

impl DerefMut for BrokerServer {
    fn deref_mut(&mut self) -> &mut ServerProcess {
        &mut self.process
    }
}

/// A small file system in memory. Unmounted when dropped, whoever still uses it.
struct Disk {
    path: PathBuf,
}

impl Disk {
    fn mount(path: PathBuf) -> Self {
        fs::create_dir(&path).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", DISK, "tmpfs"]).arg(&path);
        assert!(mount.status().unwrap().success(), "{mount:?}");
        Self { path }
    }

    fn filler(&self) -> PathBuf {
        self.path.join("filler")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily, since the server may still write to it.
        _ = Command::new("umount").arg("-l").arg(&self.path).status();
    }
}

/// Returns whether file systems can be mounted; says so if not.
///
/// # Panics
/// They can't, and `CI` is set.
fn can_mount() -> bool {
    let is_root = nix::unistd::geteuid().is_root();
    if !is_root {
        skip("only root can mount the small disk that is to become full");
    }
    is_root
}
