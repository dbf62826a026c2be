//! A NATS server of our own, on a free port, that can be killed, paused and started again.

use std::{
    env, fs,
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// How long a server may take until it lets clients in.
const START_MAX: Duration = Duration::from_secs(20);

/// A server with JetStream. Killed when dropped.
pub(crate) struct NatsServer {
    port: u16,
    directory: TempDir,
    process: Option<Child>,
}

impl NatsServer {
    /// Starts a server that lets everybody in; `None` if none is installed.
    pub(crate) fn start() -> Option<Self> {
        Self::with("")
    }

    /// Starts a server with further lines of configuration, in which `DIR` stands for its directory.
    pub(crate) fn with(configuration: &str) -> Option<Self> {
        let found = Command::new(binary()).arg("--version").output();
        if found.is_err() {
            assert!(env::var_os("CI").is_none(), "nats-server is not installed");
            eprintln!("skipped: nats-server is not installed");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().display().to_string();
        let port = free_port();
        let configuration = format!(
            "listen: \"127.0.0.1:{port}\"\njetstream {{ store_dir: \"{path}/js\" }}\n{}\n",
            configuration.replace("DIR", &path)
        );
        fs::write(directory.path().join("nats.conf"), configuration).unwrap();
        let mut server = Self {
            port,
            directory,
            process: None,
        };
        server.restart();
        Some(server)
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Returns the directory of the server.
    pub(crate) fn path(&self) -> &std::path::Path {
        self.directory.path()
    }

    /// Ends the server without a warning, as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Starts the server again, on the same port and with the same streams.
    pub(crate) fn restart(&mut self) {
        self.kill();
        let log = fs::File::create(self.directory.path().join("log")).unwrap();
        let process = Command::new(binary())
            .arg("-c")
            .arg(self.directory.path().join("nats.conf"))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        self.process = Some(process);
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let log = fs::read_to_string(self.directory.path().join("log"));
            assert!(start.elapsed() < START_MAX, "no NATS server: {log:?}");
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
        let process = self.process.as_ref().unwrap();
        let pid = process.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status();
        assert!(sent.unwrap().success());
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn binary() -> String {
    env::var("NATS_SERVER_BIN").unwrap_or_else(|_| "nats-server".to_owned())
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}
