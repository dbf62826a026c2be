//! Real servers for tests: started on a free port in a directory of their own, killed when dropped.
//!
//! A program that is not installed makes `start` print so and return `None`; the test then ends at once. With
//! `CI` in the environment it is a failure, so that nothing is skipped where it counts.

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

/// How long a server may take until it accepts connections.
const START_MAX: Duration = Duration::from_secs(20);

/// How long a server may take to end.
const END_MAX: Duration = Duration::from_secs(20);

/// A server's process.
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
    /// `None` if the program is not installed. `arguments` are told the directory that it may write to; its
    /// output goes to the file `log` there.
    ///
    /// # Panics
    /// It does not start, or it is not installed and `CI` is set.
    pub fn start(
        program: &str,
        port: u16,
        arguments: impl FnOnce(&Path) -> Vec<String>,
    ) -> Option<Self> {
        let program = find(program)?;
        let directory = TempDir::new().expect("temporary directories can be made");
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

    /// Kills it without a warning, if it still runs, and waits until it is gone.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks it to end, and waits until it is gone; kills it if that takes too long.
    pub fn terminate(&mut self) {
        self.signal(Signal::TERM);
        let deadline = Instant::now() + END_MAX;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(10));
        }
        self.kill();
    }

    /// Starts it again as it was started before, on the same port, in the same directory.
    ///
    /// # Panics
    /// It does not start.
    pub fn restart(&mut self) {
        self.kill();
        self.child = spawn(&self.program, &self.arguments, self.directory.path());
        self.wait_until_ready();
    }

    /// Stops it from running: its connections stay, and nobody answers.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it run again.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Returns the port that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns its host and port.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns the directory that it may write to.
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

/// Returns a port that nothing listens on, below those that the system gives to outgoing connections, so that it
/// is still free when a server that was killed comes back.
///
/// # Panics
/// There is none.
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

/// Returns where `program` is installed; prints that the test is skipped if it is nowhere.
///
/// # Panics
/// It is nowhere, and `CI` is set.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    // Debian puts servers where only root's PATH leads.
    let directories = env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    let found = directories
        .map(|directory| directory.join(program))
        .find(|file| file.is_file());
    if found.is_none() {
        skip(format!("{program} is not installed; scripts/setup does it"));
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
