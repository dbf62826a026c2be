//! The servers: separate programs, which are told where to listen and where Redis is.

use std::path::{Path, PathBuf};
use std::process::Command;

use linerate_harness::port;

use super::StoryError;
use super::dialect::{Dialect, Transport};
use crate::server::{Launcher, Server, ServerError};

/// A server and the protocol that its clients use.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Name of the server in tables.
    pub name: String,
    /// The program.
    pub program: PathBuf,
    /// Arguments of the program. `{listen}` and `{redis}` in them are replaced by addresses.
    pub arguments: Vec<String>,
    /// Protocol that its clients use.
    pub dialect: Dialect,
    /// Transport that its clients use.
    pub transport: Transport,
    /// True if clients can ask for batches.
    pub batches: bool,
}

impl Peer {
    /// Returns the name of the protocol of its clients in tables.
    pub fn protocol(&self) -> &'static str {
        self.dialect.name(self.transport)
    }

    /// Starts the server on `cores`. It is killed when the result is dropped.
    ///
    /// # Errors
    ///
    /// Returns an error if the server does not start.
    pub fn start(
        &self,
        launcher: &Launcher,
        cores: &[u32],
        redis: &Server,
    ) -> Result<Server, StoryError> {
        let redis = redis.address().to_string();
        let command = launcher.command(cores, &self.program);
        spawn(&self.name, command, cores, |command, port| {
            let listen = format!("127.0.0.1:{port}");
            command.args(self.arguments.iter().map(|argument| {
                argument
                    .replace("{listen}", &listen)
                    .replace("{redis}", &redis)
            }));
            // By default, Go would start as many threads as the machine has cores.
            command.env("GOMAXPROCS", cores.len().to_string());
        })
    }
}

/// Starts a private `redis-server` without persistence on a free port of the loopback interface.
///
/// # Errors
///
/// Returns an error if `redis-server` is not installed or does not start.
pub fn start_redis(launcher: &Launcher, cores: &[u32]) -> Result<Server, StoryError> {
    let program = "redis-server";
    let command = launcher.command(cores, Path::new(program));
    spawn(program, command, cores, |command, port| {
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1"]);
        command.args(["--save", "", "--appendonly", "no"]);
    })
}

/// Starts a program on a free port, with the arguments that `configure` adds for that port.
fn spawn(
    name: &str,
    mut command: Command,
    cores: &[u32],
    configure: impl FnOnce(&mut Command, u16),
) -> Result<Server, StoryError> {
    let port = port::free().map_err(ServerError::Port);
    let server = port.and_then(|port| {
        configure(&mut command, port);
        Server::spawn(command, cores, port)
    });
    server.map_err(|error| StoryError::NotRunning {
        program: name.into(),
        what: error.to_string(),
    })
}
