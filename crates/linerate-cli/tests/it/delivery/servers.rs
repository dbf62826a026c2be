//! Redis and NATS servers, and the faults that can be inflicted on them.

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

/// Size of a broker's disk that is made to fill up.
const DISK: &str = "size=64m";

/// Maximum amount of data that JetStream may store.
const NATS_STORED_MAX: &str = "32MB";

/// How long a replica may take to copy the existing data.
const COPIED_MAX: Duration = Duration::from_secs(20);

/// The kind of broker.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Nats,
    Redis,
}

/// Deviations from a default server.
#[derive(Default)]
pub(crate) struct Special<'a> {
    /// The clock that the server uses. It has no effect on NATS, because Go does not read the time
    /// through the C library.
    pub(crate) clock: Option<&'a Clock>,
    /// True if the server writes to its own small disk.
    pub(crate) has_disk: bool,
    /// True if the server can store only little.
    pub(crate) is_small: bool,
    /// The port of the server of which this one is a replica.
    pub(crate) copies: Option<u16>,
}

/// A broker's server on a free port. Killed when dropped.
pub(crate) struct BrokerServer {
    pub(crate) kind: Kind,
    // Declared before the process, so that it is dropped first: the process removes its directory.
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

    /// Returns the arguments of the server. Both kinds write to a file before they respond, so that
    /// data survives a crash of the process, though not of the machine.
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
    /// Starts a server. Returns `None`, and reports the skipped test, if a requirement is missing.
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

    /// Promotes a replica. NATS has no replica in these tests; its server starts empty.
    pub(crate) fn promote(&self) {
        if self.kind == Kind::Redis {
            self.redis("REPLICAOF NO ONE");
        }
    }

    /// Fills the server, so that it cannot store anything more.
    pub(crate) async fn fill(&self) {
        match self.kind {
            Kind::Redis => {
                self.redis("CONFIG SET maxmemory 1");
            }
            Kind::Nats => {
                let stream = r#"{"name":"FILLER","subjects":["filler"],"storage":"file"}"#;
                self.nats("STREAM.CREATE.FILLER", stream).await;
                let payload = "x".repeat(512 << 10);
                // Enough to fill it: a little more than the limit divided by the size of a message.
                for _ in 0..80 {
                    let answer = nats::request(self.port(), "filler", &payload).await;
                    if answer.is_none_or(|answer| answer["error"].is_object()) {
                        break;
                    }
                }
            }
        }
    }

    /// Makes room in the server again.
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

    /// Makes the server discard its data; Redis discards only some of it, after a short time.
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

    /// Stops the server from discarding data.
    pub(crate) fn keep(&self) {
        if self.kind == Kind::Redis {
            self.redis("CONFIG SET maxmemory 0");
        }
    }

    /// Fills the server's own disk.
    pub(crate) fn fill_disk(&self) {
        let disk = self.disk.as_ref().expect("a server with a disk");
        let mut file = fs::File::create(disk.filler()).unwrap();
        for size in [1 << 20, 1 << 10, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
    }

    /// Frees the server's disk. NATS is restarted, because it disables JetStream permanently when
    /// the disk is full.
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
            assert!(
                start.elapsed() < COPIED_MAX,
                "the replica did not copy the data"
            );
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Runs a command and returns the raw response.
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

    /// Sends a request to the JetStream API.
    async fn nats(&self, what: &str, body: &str) -> Value {
        let subject = format!("$JS.API.{what}");
        let answer = nats::request(self.port(), &subject, body).await;
        let answer = answer.unwrap_or_else(|| panic!("no response to {what}"));
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

/// A small file system in memory. It is unmounted when dropped, even if it is still in use.
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
        // Unmount lazily, because the server may still write to it.
        _ = Command::new("umount").arg("-l").arg(&self.path).status();
    }
}

/// Returns whether file systems can be mounted, and reports the skipped test if not.
///
/// # Panics
/// Panics if they cannot be mounted and `CI` is set.
fn can_mount() -> bool {
    let is_root = nix::unistd::geteuid().is_root();
    if !is_root {
        skip("only root can mount the small disk that is made to fill up");
    }
    is_root
}
