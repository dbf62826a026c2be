//! Real servers for tests. Each starts on a free port in its own directory and is killed when
//! dropped.
//!
//! If a program is not installed, `start` prints a message and returns `None`, and the test then
//! ends at once. With `CI` in the environment it is a failure instead, so that nothing is skipped
//! there.

use std::{
    env, fs, io,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use linerate_harness::{child::ChildProcess, port};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::skip;

mod kafka;
mod postgres;
mod redis;

pub use kafka::{KAFKA_LOGIN, KafkaServer};
pub use postgres::PostgresServer;
pub use redis::{RedisCluster, RedisServer};

/// The maximum time until a server accepts connections.
const START_MAX: Duration = Duration::from_secs(20);

/// The maximum time until a server ends.
const END_MAX: Duration = Duration::from_secs(20);

/// The process of a server.
#[derive(Debug)]
pub struct ServerProcess {
    program: PathBuf,
    arguments: Vec<String>,
    port: u16,
    child: ChildProcess,
    directory: TempDir,
}

impl ServerProcess {
    /// Starts `program` and waits until it accepts connections on `port` of 127.0.0.1.
    ///
    /// Returns `None` if the program is not installed. `arguments` receives the directory that the
    /// program may write to. The output of the program goes to the file `log` there.
    ///
    /// # Panics
    /// Panics if the program does not start, or if it is not installed and `CI` is set.
    pub fn start(
        program: &str,
        port: u16,
        arguments: impl FnOnce(&Path) -> Vec<String>,
    ) -> Option<Self> {
        let program = find(program)?;
        let directory = TempDir::new().expect("temporary directories can be created");
        let arguments = arguments(directory.path());
        let child = spawn(&program, &arguments, directory.path());
        let mut server = Self {
            program,
            arguments,
            port,
            child,
            directory,
        };
        server.wait_until_ready();
        Some(server)
    }

    /// Kills the server without a warning, if it still runs, and waits until it has ended.
    pub fn kill(&mut self) {
        self.child.kill();
    }

    /// Asks the server to end, and waits until it has. Kills it if that takes too long.
    pub fn terminate(&mut self) {
        self.signal(Signal::TERM);
        self.child.wait(END_MAX);
        self.kill();
    }

    /// Ends the server with SIGQUIT, at which some servers end as in a crash, and waits until it
    /// has. Kills it if that takes too long.
    pub fn quit(&mut self) {
        self.signal(Signal::QUIT);
        self.child.wait(END_MAX);
        self.kill();
    }

    /// Starts the server again in the same way, on the same port and in the same directory.
    ///
    /// # Panics
    /// Panics if the server does not start.
    pub fn restart(&mut self) {
        self.kill();
        self.child = spawn(&self.program, &self.arguments, self.directory.path());
        self.wait_until_ready();
    }

    /// Pauses the server: its connections stay open, but it does not answer.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Resumes the server after [`pause`](Self::pause).
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Returns the port that the server listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the host and the port of the server.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns the directory that the server may write to.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    fn signal(&self, signal: Signal) {
        // This fails if the server has ended.
        _ = self.child.signal(signal);
    }

    fn wait_until_ready(&mut self) {
        let address = (Ipv4Addr::LOCALHOST, self.port).into();
        if let Err(why) = self.child.wait_until_listening(address, START_MAX) {
            let log = fs::read_to_string(self.directory.path().join("log"));
            let log = log.unwrap_or_default();
            panic!("{} did not start: {why:?}\n{log}", self.program.display());
        }
    }
}

/// Returns a port that nothing listens on. It is below the range that the system uses for outgoing
/// connections, so that it is still free when a killed server restarts.
///
/// # Panics
/// Panics if no port is free.
pub fn free_port() -> u16 {
    port::free().expect("a port is free")
}

/// Returns the path of `program`. Prints that the test is skipped if it is not installed.
///
/// # Panics
/// Panics if the program is not installed and `CI` is set.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    // Debian installs servers in directories that are only in root's PATH.
    let directories = env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    let found = directories
        .map(|directory| directory.join(program))
        .find(|file| file.is_file());
    if found.is_none() {
        skip(format!("{program} is not installed; run scripts/setup"));
    }
    found
}

fn spawn(program: &Path, arguments: &[String], directory: &Path) -> ChildProcess {
    let log = |directory: &Path| -> io::Result<Stdio> {
        let mut options = fs::OpenOptions::new();
        let file = options
            .create(true)
            .append(true)
            .open(directory.join("log"))?;
        Ok(file.into())
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(log(directory).expect("the directory can be written"))
        .stderr(log(directory).expect("the directory can be written"));
    ChildProcess::spawn(&mut command).expect("a program that was found can be started")
}
