//! Real servers for tests. Each starts on a free port in its own directory and is killed when
//! dropped.
//!
//! If a program is not installed, `start` prints a message and returns `None`, and the test then
//! ends at once. With `CI` in the environment it is a failure instead, so that nothing is skipped
//! there.

use std::{
    env, fs, io,
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::skip;

mod redis;

pub use redis::{RedisCluster, RedisServer, SentinelServer};

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
    child: Child,
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
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks the server to end, and waits until it has. Kills it if that takes too long.
    pub fn terminate(&mut self) {
        self.signal(Signal::TERM);
        let deadline = Instant::now() + END_MAX;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(10));
        }
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
        if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
            let _ = kill_process(pid, signal);
        }
    }

    fn wait_until_ready(&mut self) {
        let deadline = Instant::now() + START_MAX;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_err() {
            let ended = self.child.try_wait().ok().flatten();
            if ended.is_some() || Instant::now() > deadline {
                let log = fs::read_to_string(self.directory.path().join("log"));
                let log = log.unwrap_or_default();
                panic!("{} did not start: {ended:?}\n{log}", self.program.display());
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns a port that nothing listens on. It is below the range that the system uses for outgoing
/// connections, so that it is still free when a killed server restarts.
///
/// # Panics
/// Panics if no port is free.
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let (first, count) = (15_000, 17_000);
    for _ in 0..count {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let start = std::process::id().wrapping_mul(7_919);
        let port = first + (start.wrapping_add(step) % count) as u16;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
    panic!("no free port");
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

fn spawn(program: &Path, arguments: &[String], directory: &Path) -> Child {
    let log = |directory: &Path| -> io::Result<Stdio> {
        let mut options = fs::OpenOptions::new();
        let file = options
            .create(true)
            .append(true)
            .open(directory.join("log"))?;
        Ok(file.into())
    };
    Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(log(directory).expect("the directory can be written"))
        .stderr(log(directory).expect("the directory can be written"))
        .spawn()
        .expect("a program that was found can be started")
}
