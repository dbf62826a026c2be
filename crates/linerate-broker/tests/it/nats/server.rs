//! A NATS server for tests.

use std::{
    env, fs,
    ops::{Deref, DerefMut},
};

use linerate_testkit::server::{ServerProcess, free_port};

/// A server with JetStream. Killed when dropped.
pub(crate) struct NatsServer(ServerProcess);

impl NatsServer {
    /// Starts a server without authentication. `None` if NATS is not installed.
    pub(crate) fn start() -> Option<Self> {
        Self::with("")
    }

    /// Starts a server with additional lines of configuration, in which `DIR` stands for its
    /// directory.
    pub(crate) fn with(configuration: &str) -> Option<Self> {
        let program = env::var("NATS_SERVER_BIN").unwrap_or_else(|_| "nats-server".to_owned());
        let port = free_port();
        let process = ServerProcess::start(&program, port, |directory| {
            let path = directory.display().to_string();
            let configuration = format!(
                "listen: \"127.0.0.1:{port}\"\njetstream {{ store_dir: \"{path}/js\" }}\n{}\n",
                configuration.replace("DIR", &path)
            );
            let file = directory.join("nats.conf");
            fs::write(&file, configuration).unwrap();
            vec!["-c".to_owned(), file.display().to_string()]
        })?;
        Some(Self(process))
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://{}", self.address())
    }
}

impl Deref for NatsServer {
    type Target = ServerProcess;

    fn deref(&self) -> &ServerProcess {
        &self.0
    }
}

impl DerefMut for NatsServer {
    fn deref_mut(&mut self) -> &mut ServerProcess {
        &mut self.0
    }
}
