//! Redis and NATS in processes of our own.

use std::{
    env, fs,
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// How long a server may take until it lets clients in.
const START_MAX: Duration = Duration::from_secs(20);

/// Which broker.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Nats,
    Redis,
}

/// A broker's server on a free port. Killed when dropped.
pub(crate) struct BrokerServer {
    pub(crate) kind: Kind,
    pub(crate) port: u16,
    directory: TempDir,
    process: Option<Child>,
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
    fn arguments(self, port: u16, directory: &Path) -> Vec<String> {
        let directory = directory.display().to_string();
        let port = port.to_string();
        let arguments: &[&str] = match self {
            Self::Nats => &["-a", "127.0.0.1", "-p", &port, "-js", "-sd", &directory],
            Self::Redis => &[
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
            ],
        };
        arguments
            .iter()
            .map(|argument| (*argument).to_owned())
            .collect()
    }
}

impl BrokerServer {
    /// Starts a server; `None` if none is installed.
    pub(crate) fn start(kind: Kind) -> Option<Self> {
        if Command::new(kind.binary())
            .arg("--version")
            .output()
            .is_err()
        {
            assert!(env::var_os("CI").is_none(), "{kind:?} is not installed");
            eprintln!("skipped: {kind:?} is not installed");
            return None;
        }
        let mut server = Self {
            kind,
            port: free_port(),
            directory: tempfile::tempdir().unwrap(),
            process: None,
        };
        server.restart();
        Some(server)
    }

    /// Ends the server as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Starts the server again, on the same port and with what it has written.
    pub(crate) fn restart(&mut self) {
        self.kill();
        let log = fs::File::create(self.directory.path().join("log")).unwrap();
        let arguments = self.kind.arguments(self.port, self.directory.path());
        let process = Command::new(self.kind.binary())
            .args(arguments)
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        self.process = Some(process);
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let log = fs::read_to_string(self.directory.path().join("log"));
            assert!(start.elapsed() < START_MAX, "no server: {log:?}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Stops the process without ending it.
    pub(crate) fn pause(&self) {
        self.signal("-STOP");
    }

    pub(crate) fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let pid = self.process.as_ref().unwrap().id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status();
        assert!(sent.unwrap().success());
    }
}

impl Drop for BrokerServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns a port that was free a moment ago, for servers that must come back on the same one.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}
