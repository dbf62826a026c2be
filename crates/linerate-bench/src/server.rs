//! Servers under test: each a separate process that is started, pinned, inspected and ended here.

mod certificate;
mod launcher;
mod stderr;
mod tree;

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linerate_harness::child::{ChildProcess, ListenError};
use linerate_harness::port;
use rustix::process::{Pid, Signal, kill_process_group};
use thiserror::Error;

use crate::cell::{Deflate, Mode, Service};
use crate::load::{Probe, Usage};
pub use certificate::{Certificate, CertificateError};
pub use launcher::{Launcher, launch};
use stderr::Tail;
pub use tree::ProcessTree;

/// A server that accepts no connection within this time after its start has failed.
const START_MAX: Duration = Duration::from_secs(10);

/// How to start a server.
#[derive(Clone, Copy, Debug)]
pub struct StartOptions<'a> {
    /// The program that becomes the server and ties its lifetime to ours.
    pub launcher: &'a Launcher,
    /// The contender's program.
    pub program: &'a PathBuf,
    /// What the server has to do.
    pub mode: Mode,
    /// Numbers of the cores that the server may use. It is told to handle connections with as many
    /// threads.
    pub cores: &'a [u32],
    /// The certificate that the server presents in a mode with TLS.
    pub certificate: &'a Certificate,
}

/// The process groups of all running servers, so that [`end_all`] can kill them.
static GROUPS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// A running server. It is killed, with its children, when this value is dropped.
#[derive(Debug)]
pub struct Server {
    child: ChildProcess,
    address: SocketAddr,
    processes: ProcessTree,
    stderr: Tail,
}

impl Server {
    /// Starts a server on a free port and waits until it accepts connections.
    ///
    /// The server ends with the calling thread at the latest, so that thread has to stay alive as
    /// long as the server is needed.
    ///
    /// # Errors
    ///
    /// Returns an error if the program cannot be run, exits at once, or accepts no connection
    /// within ten seconds.
    pub fn start(start: &StartOptions<'_>) -> Result<Self, ServerError> {
        let port = port::free().map_err(ServerError::Port)?;
        let mut command = start.launcher.command(start.cores, start.program);
        command.args(arguments(start, port));
        if start.mode.small_pages {
            // Of the allocators in use, only mimalloc requests huge pages on its own.
            command.env("MIMALLOC_ALLOW_THP", "0");
        }
        Self::spawn(command, start.cores, port)
    }

    /// Starts the program of a launcher's `command` and waits until it accepts connections on
    /// `port` of the loopback interface.
    pub(crate) fn spawn(
        mut command: Command,
        cores: &[u32],
        port: u16,
    ) -> Result<Self, ServerError> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0);
        let mut child = ChildProcess::spawn(&mut command).map_err(|source| ServerError::Spawn {
            program: command.get_program().into(),
            source,
        })?;
        groups().insert(child.id());
        let stderr = Tail::of(child.take_stderr());
        let mut server = Self {
            address: (Ipv4Addr::LOCALHOST, port).into(),
            processes: ProcessTree::new(child.process(), cores.len() as u32),
            child,
            stderr,
        };
        let listening = server.child.wait_until_listening(server.address, START_MAX);
        listening.map_err(|why| match why {
            ListenError::Exited(status) => ServerError::Ended(server.describe_end(status)),
            ListenError::TimedOut => ServerError::Deaf {
                seconds: START_MAX.as_secs(),
                stderr: server.stderr.last_lines(),
            },
        })?;
        Ok(server)
    }

    /// Returns how the server ended and the last lines that it wrote to standard error; `None`
    /// while it is running.
    pub fn end(&mut self) -> Option<String> {
        let status = self.child.exit_status()?;
        Some(self.describe_end(status))
    }

    fn describe_end(&self, status: ExitStatus) -> String {
        // The rest of its output may still be in the pipe.
        self.stderr.wait_for_end();
        let how = describe(status);
        match self.stderr.last_lines() {
            lines if lines.is_empty() => how,
            lines => format!("{how}: {lines}"),
        }
    }

    /// Waits until the server uses no more CPU time, for at most 0.2 seconds.
    pub fn wait_until_idle(&self) {
        self.processes.wait_until_idle();
    }

    /// Returns the address on which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Probe for Server {
    fn usage(&mut self) -> io::Result<Option<Usage>> {
        match self.end() {
            Some(end) => Err(io::Error::other(end)),
            None => self.processes.usage(),
        }
    }

    fn reset_peak(&mut self) -> io::Result<()> {
        self.processes.reset_peak()
    }

    fn cores(&self) -> u32 {
        self.processes.cores()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // If workers are left, the group outlives its leader, so it is killed even if the leader
        // has exited. This fails only if the group is empty.
        kill_group(self.child.id());
        groups().remove(&self.child.id());
    }
}

/// Kills all servers at once, for a process that will not get to drop them. Loads that are using
/// them will fail.
pub fn end_all() {
    groups().iter().copied().for_each(kill_group);
}

fn groups() -> MutexGuard<'static, BTreeSet<u32>> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn kill_group(leader: u32) {
    if let Some(group) = Pid::from_raw(leader as i32) {
        _ = kill_process_group(group, Signal::KILL);
    }
}

/// Returns the arguments that `bench/contenders/README.md` defines.
fn arguments(start: &StartOptions<'_>, port: u16) -> Vec<String> {
    let mut arguments = vec![
        "--port".into(),
        port.to_string(),
        "--threads".into(),
        start.cores.len().to_string(),
    ];
    let service = match start.mode.service {
        Service::Acknowledge => "acknowledge",
        Service::Echo => "echo",
        Service::Fanout => "fanout",
    };
    arguments.extend(["--service", service].map(String::from));
    if start.mode.tls {
        let files = [start.certificate.chain_file(), start.certificate.key_file()];
        arguments.push("--tls".into());
        arguments.extend(files.map(|file| file.display().to_string()));
    }
    match start.mode.deflate {
        Deflate::NoTakeover => arguments.extend(["--deflate", "no-takeover"].map(String::from)),
        Deflate::Off => {}
        Deflate::Takeover => arguments.extend(["--deflate", "takeover"].map(String::from)),
    }
    arguments
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("the server exited with status {code}"),
        (None, Some(signal)) => format!("the server was killed by signal {signal}"),
        (None, None) => "the server exited".into(),
    }
}

/// The reason why a server is not available.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServerError {
    /// It is running, but accepts no connections.
    #[error("accepted no connection within {seconds} s{}{stderr}", colon(stderr))]
    Deaf {
        /// How long the connection was retried, in seconds.
        seconds: u64,
        /// The last lines that it wrote to standard error.
        stderr: String,
    },
    /// It ended by itself. The text says how, and what it wrote last.
    #[error("{0}")]
    Ended(String),
    /// No port is free.
    #[error("no free port")]
    Port(#[source] io::Error),
    /// The launcher cannot be run.
    #[error("cannot run {}", program.display())]
    Spawn {
        /// The launcher.
        program: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

fn colon(stderr: &str) -> &'static str {
    if stderr.is_empty() { "" } else { ": " }
}

#[cfg(test)]
mod tests;
