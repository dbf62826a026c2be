//! Redis servers, clusters and sentinels.

use std::{
    fs,
    ops::{Deref, DerefMut},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use super::{ServerProcess, find, free_port};

/// A Redis server, or a sentinel that watches one.
#[derive(Debug)]
pub struct RedisServer {
    process: ServerProcess,
}

impl RedisServer {
    /// Starts a server that writes nothing to disk. `None` if Redis is not installed.
    pub fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// Starts a server with additional arguments, such as `["--appendonly", "yes"]`.
    pub fn start_with(arguments: &[&str]) -> Option<Self> {
        Self::start_on(free_port(), arguments)
    }

    /// Starts a server that accepts only TLS, with a certificate and its key in PEM files.
    pub fn start_tls(certificate: &Path, key: &Path) -> Option<Self> {
        let port = free_port();
        let (tls_port, certificate, key) = (
            port.to_string(),
            certificate.display().to_string(),
            key.display().to_string(),
        );
        let arguments = [
            &["--port", "0", "--tls-port", &tls_port][..],
            &["--tls-cert-file", &certificate],
            &["--tls-key-file", &key],
            &["--tls-ca-cert-file", &certificate],
            &["--tls-auth-clients", "no"],
        ];
        Self::start_on(port, &arguments.concat())
    }

    fn start_on(port: u16, arguments: &[&str]) -> Option<Self> {
        let process = ServerProcess::start("redis-server", port, |_| {
            let port = port.to_string();
            let plain = ["--port", &port, "--bind", "127.0.0.1", "--save", ""];
            let soon = ["--repl-diskless-sync-delay", "0"];
            let all = plain.iter().chain(&soon).chain(arguments);
            all.map(|argument| (*argument).to_owned()).collect()
        })?;
        Some(Self { process })
    }

    /// Starts a sentinel that decides alone, after one second, that `master` is down. `None` if
    /// Redis is not installed.
    ///
    /// # Panics
    /// Panics if its configuration cannot be written.
    pub fn start_sentinel(name: &str, master: &Self) -> Option<Self> {
        let port = free_port();
        let process = ServerProcess::start("redis-server", port, |directory| {
            let file = directory.join("sentinel.conf");
            let text = format!(
                "port {port}\nbind 127.0.0.1\n\
                 sentinel monitor {name} 127.0.0.1 {} 1\n\
                 sentinel down-after-milliseconds {name} 1000\n\
                 sentinel failover-timeout {name} 3000\n",
                master.port(),
            );
            fs::write(&file, text).expect("the directory can be written");
            vec![file.display().to_string(), "--sentinel".to_owned()]
        })?;
        Some(Self { process })
    }

    /// Returns the URL of the server.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    /// Runs a command with `redis-cli` and returns its output.
    ///
    /// # Panics
    /// Panics if `redis-cli` is not installed.
    pub fn cli(&self, arguments: &[&str]) -> String {
        let program = find("redis-cli").expect("redis-cli comes with redis-server");
        let output = Command::new(program)
            .args(["-p", &self.port().to_string()])
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .expect("a program that was found can be started");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

impl Deref for RedisServer {
    type Target = ServerProcess;

    fn deref(&self) -> &ServerProcess {
        &self.process
    }
}

impl DerefMut for RedisServer {
    fn deref_mut(&mut self) -> &mut ServerProcess {
        &mut self.process
    }
}

/// The masters of a cluster, each with a third of the slots, and replicas.
#[derive(Debug)]
pub struct RedisCluster {
    /// The masters, in the order of their slots.
    pub masters: Vec<RedisServer>,
    /// Replicas of the first masters, as many as were requested.
    pub replicas: Vec<RedisServer>,
}

impl RedisCluster {
    /// Starts three masters and replicas of the first of them, and waits until the cluster works.
    /// `None` if Redis is not installed.
    ///
    /// # Panics
    /// Panics if the cluster does not work within half a minute.
    pub fn start(replicas: usize) -> Option<Self> {
        let masters = (0..3).map(|_| Self::node());
        let masters: Vec<_> = masters.collect::<Option<_>>()?;
        let replicas = (0..replicas).map(|_| Self::node());
        let cluster = Self {
            masters,
            replicas: replicas.collect::<Option<_>>()?,
        };
        for (master, (first, last)) in cluster.masters.iter().zip(RANGES) {
            master.cli(&["CLUSTER", "ADDSLOTSRANGE", first, last]);
        }
        for node in cluster.nodes().skip(1) {
            let (port, bus) = (node.port().to_string(), cluster_port(node));
            cluster.masters[0].cli(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
        }
        let count = format!("cluster_known_nodes:{}", cluster.nodes().count());
        cluster.wait("not all nodes know each other", |node| {
            node.cli(&["CLUSTER", "INFO"]).contains(&count)
        });
        for (replica, master) in cluster.replicas.iter().zip(&cluster.masters) {
            let id = master.cli(&["CLUSTER", "MYID"]);
            replica.cli(&["CLUSTER", "REPLICATE", &id]);
        }
        cluster.wait("not all nodes are healthy", |node| {
            let info = node.cli(&["CLUSTER", "INFO"]);
            info.contains("cluster_state:ok") && info.contains("cluster_slots_assigned:16384")
        });
        cluster.wait("not all replicas are up to date", |node| {
            let info = node.cli(&["INFO", "replication"]);
            info.contains("role:master") || info.contains("master_link_status:up")
        });
        Some(cluster)
    }

    /// Waits until `is_so` is true for each node.
    ///
    /// # Panics
    /// Panics if it is not true within half a minute.
    pub fn wait(&self, what: &str, is_so: impl Fn(&RedisServer) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !self.nodes().all(&is_so) {
            assert!(Instant::now() < deadline, "cluster is not ready: {what}");
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Returns the URL of the cluster, which names one node.
    pub fn url(&self) -> String {
        format!("redis+cluster://{}", self.masters[2].address())
    }

    fn nodes(&self) -> impl Iterator<Item = &RedisServer> {
        self.masters.iter().chain(&self.replicas)
    }

    fn node() -> Option<RedisServer> {
        let bus = free_port().to_string();
        RedisServer::start_with(&[
            "--cluster-enabled",
            "yes",
            "--cluster-node-timeout",
            "1000",
            "--cluster-port",
            &bus,
        ])
    }
}

/// The slots of the masters.
const RANGES: [(&str, &str); 3] = [("0", "5460"), ("5461", "10922"), ("10923", "16383")];

fn cluster_port(node: &RedisServer) -> String {
    let answer = node.cli(&["CONFIG", "GET", "cluster-port"]);
    answer.lines().last().unwrap_or_default().to_owned()
}
