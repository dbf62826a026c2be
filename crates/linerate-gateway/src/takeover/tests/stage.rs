//! Gateways with a takeover socket, and clients of them.

use std::{net::SocketAddr, path::PathBuf};

use linerate_testkit::PATIENCE;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::{
    Gateway, Running,
    config::{Config, Loader},
};

/// A folder with a takeover socket.
pub(super) struct Stage(TempDir);

impl Stage {
    pub(super) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(super) fn path(&self) -> PathBuf {
        self.0.path().join("takeover.sock")
    }

    /// Returns a configuration with further keys of `[server]`.
    pub(super) fn config(&self, more: &str) -> Config {
        let text = format!(
            "[server]\nlisten = \"127.0.0.1:0\"\noperations_listen = \"127.0.0.1:0\"\nworkers = 2\n\
             takeover_socket = {:?}\n{more}\n[server.drain]\nwindow_s = 0\n",
            self.path()
        );
        let loader = Loader::new().with_text("test.toml", &text);
        loader.load().unwrap()
    }

    /// Starts a gateway that can be taken over.
    pub(super) fn start(&self) -> (Running, SocketAddr) {
        let gateway = Gateway::bind(self.config("")).unwrap();
        let address = gateway.address();
        (gateway.start().unwrap(), address)
    }

    /// Takes over from a gateway that runs.
    pub(super) async fn take_over(&self, more: &str) -> (Running, SocketAddr) {
        let gateway = Gateway::take_over(self.config(more)).await.unwrap();
        let address = gateway.address();
        let mut running = gateway.start().unwrap();
        running.take_over().await.unwrap();
        (running, address)
    }
}

/// Asks a gateway for a page; fails if it is not answered.
pub(super) async fn ask(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    let mut text = String::new();
    let reading = timeout(PATIENCE, stream.read_to_string(&mut text));
    reading.await.expect("an answer")?;
    Ok(text)
}

/// Checks that a gateway accepts connections on all its sockets.
pub(super) async fn check_serves(address: SocketAddr) {
    for _ in 0..10 {
        // `/live` is at the address of monitoring only.
        let text = ask(address, "/live").await.unwrap();
        assert!(text.starts_with("HTTP/1.1 404"), "{text}");
    }
}
