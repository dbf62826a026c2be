//! The servers: each its own program, which gets to know where to listen and where Redis is.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::dialect::Dialect;
use super::{Redis, StoryError};
use crate::server::{Launcher, Server, free_port};

/// A server and the protocol that its clients speak.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The name in tables.
    pub name: String,
    /// The program.
    pub program: PathBuf,
    /// Its arguments, in which `{listen}` and `{redis}` stand for addresses.
    pub arguments: Vec<String>,
    /// What its clients speak.
    pub dialect: Dialect,
    /// Whether clients can ask for batches.
    pub batches: bool,
}

/// A server that runs; it ends with this value.
#[derive(Debug)]
pub struct PeerServer(Server);

impl Peer {
    /// Starts the server on `cores`.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(
        &self,
        launcher: &Launcher,
        cores: &[u32],
        redis: &Redis,
    ) -> Result<PeerServer, StoryError> {
        let not_running = |error: crate::server::ServerError| StoryError::NotRunning {
            program: self.name.clone(),
            what: error.to_string(),
        };
        let port = free_port().map_err(not_running)?;
        let listen = format!("127.0.0.1:{port}");
        let redis = redis.address().to_string();
        let mut command = launcher.command(cores, &self.program);
        command.args(self.arguments.iter().map(|argument| {
            argument
                .replace("{listen}", &listen)
                .replace("{redis}", &redis)
        }));
        // Go would start as many threads as the machine has cores, and Node knows no better.
        command.env("GOMAXPROCS", cores.len().to_string());
        Server::spawn(command, cores, port)
            .map(PeerServer)
            .map_err(not_running)
    }
}

impl PeerServer {
    /// Returns where it listens.
    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }

    /// Returns what looks into its process.
    pub fn probe(&mut self) -> &mut Server {
        &mut self.0
    }
}
