//! The servers: separate programs, which are told where to listen and where Redis is.

use std::path::PathBuf;

use linerate_harness::port;

use super::dialect::Dialect;
use super::{Redis, StoryError};
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
    /// True if clients can ask for batches.
    pub batches: bool,
}

impl Peer {
    /// Starts the server on `cores`. It is killed when the result is dropped.
    ///
    /// # Errors
    ///
    /// Returns an error if the server does not start.
    pub fn start(
        &self,
        launcher: &Launcher,
        cores: &[u32],
        redis: &Redis,
    ) -> Result<Server, StoryError> {
        let not_running = |error: ServerError| StoryError::NotRunning {
            program: self.name.clone(),
            what: error.to_string(),
        };
        let port = port::free().map_err(ServerError::Port);
        let port = port.map_err(not_running)?;
        let listen = format!("127.0.0.1:{port}");
        let redis = redis.address().to_string();
        let mut command = launcher.command(cores, &self.program);
        command.args(self.arguments.iter().map(|argument| {
            argument
                .replace("{listen}", &listen)
                .replace("{redis}", &redis)
        }));
        // By default, Go would start as many threads as the machine has cores.
        command.env("GOMAXPROCS", cores.len().to_string());
        Server::spawn(command, cores, port).map_err(not_running)
    }
}
