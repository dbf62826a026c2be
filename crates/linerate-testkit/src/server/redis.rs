//! Redis and its sentinels.

use std::{
    fs,
    ops::{Deref, DerefMut},
    process::{Command, Stdio},
};

use super::{ServerProcess, find, free_port};

/// A Redis server.
#[derive(Debug)]
pub struct RedisServer {
    process: ServerProcess,
}

impl RedisServer {
    /// Starts one that writes nothing to disk. `None` if Redis is not installed.
    pub fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// Starts one with further arguments, like `["--appendonly", "yes"]`.
    pub fn start_with(arguments: &[&str]) -> Option<Self> {
        let port = free_port();
        let process = ServerProcess::start("redis-server", port, |_| {
            let port = port.to_string();
            let plain = ["--port", &port, "--bind", "127.0.0.1", "--save", ""];
            let all = plain.iter().chain(arguments);
            all.map(|argument| (*argument).to_owned()).collect()
        })?;
        Some(Self { process })
    }

    /// Returns its URL.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    /// Runs a command by `redis-cli` and returns what that printed.
    ///
    /// # Panics
    /// `redis-cli` is not installed.
    pub fn cli(&self, arguments: &[&str]) -> String {
        redis_cli(self.port(), arguments)
    }
}

impl Deref for RedisServer {
    type Target = ServerProcess;

    fn deref(&self) -> &ServerProcess {
        &self.process
    }
}

impl DerefMut for RedisServer {
    fn deref_mut(&mut self) -> &mut ServerProcess {
        &mut self.process
    }
}

/// A sentinel that watches one master.
#[derive(Debug)]
pub struct SentinelServer {
    process: ServerProcess,
}

impl SentinelServer {
    /// Starts one that decides alone, after a second, that `master` is down. `None` if it is not installed.
    ///
    /// # Panics
    /// Its configuration can't be written.
    pub fn start(name: &str, master: &RedisServer) -> Option<Self> {
        let port = free_port();
        let process = ServerProcess::start("redis-server", port, |directory| {
            let file = directory.join("sentinel.conf");
            let text = format!(
                "port {port}\nbind 127.0.0.1\n\
                 sentinel monitor {name} 127.0.0.1 {} 1\n\
                 sentinel down-after-milliseconds {name} 1000\n\
                 sentinel failover-timeout {name} 3000\n",
                master.port(),
            );
            fs::write(&file, text).expect("the directory can be written");
            vec![file.display().to_string(), "--sentinel".to_owned()]
        })?;
        Some(Self { process })
    }

    /// Runs a command by `redis-cli` and returns what that printed.
    ///
    /// # Panics
    /// `redis-cli` is not installed.
    pub fn cli(&self, arguments: &[&str]) -> String {
        redis_cli(self.port(), arguments)
    }
}

impl Deref for SentinelServer {
    type Target = ServerProcess;

    fn deref(&self) -> &ServerProcess {
        &self.process
    }
}

impl DerefMut for SentinelServer {
    fn deref_mut(&mut self) -> &mut ServerProcess {
        &mut self.process
    }
}

fn redis_cli(port: u16, arguments: &[&str]) -> String {
    let program = find("redis-cli").expect("redis-cli comes with redis-server");
    let output = Command::new(program)
        .args(["-p", &port.to_string()])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("a program that was found can be started");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
