//! Redis and NATS in processes of our own.

use std::{
    env,
    ops::{Deref, DerefMut},
    path::Path,
};

use linerate_testkit::server::{ServerProcess, free_port};

/// Which broker.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Nats,
    Redis,
}

/// A broker's server on a free port. Killed when dropped.
pub(crate) struct BrokerServer {
    pub(crate) kind: Kind,
    process: ServerProcess,
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
        let port = free_port();
        let process = ServerProcess::start(&kind.binary(), port, |directory| {
            kind.arguments(port, directory)
        })?;
        Some(Self { kind, process })
    }
}

impl Deref for BrokerServer {
    type Target = ServerProcess;

    fn deref(&self) -> &ServerProcess {
        &self.process
    }
}

impl DerefMut for BrokerServer {
    fn deref_mut(&mut self) -> &mut ServerProcess {
        &mut self.process
    }
}
