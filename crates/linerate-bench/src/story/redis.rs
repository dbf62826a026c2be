//! A private Redis server without persistence.

use std::net::SocketAddr;
use std::path::Path;

use linerate_harness::port;

use super::StoryError;
use crate::server::{Launcher, Server, ServerError};

/// A running Redis server. It is killed when this value is dropped.
#[derive(Debug)]
pub struct Redis(Server);

impl Redis {
    /// Starts `redis-server` on a free port of the loopback interface.
    ///
    /// # Errors
    ///
    /// Returns an error if `redis-server` is not installed or does not start.
    pub fn start(launcher: &Launcher, cores: &[u32]) -> Result<Self, StoryError> {
        let not_running = |error: ServerError| StoryError::NotRunning {
            program: "redis-server".into(),
            what: error.to_string(),
        };
        let port = port::free().map_err(ServerError::Port);
        let port = port.map_err(not_running)?;
        let mut command = launcher.command(cores, Path::new("redis-server"));
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1"]);
        command.args(["--save", "", "--appendonly", "no"]);
        Server::spawn(command, cores, port)
            .map(Self)
            .map_err(not_running)
    }

    /// Returns the address on which Redis listens.
    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }
}
