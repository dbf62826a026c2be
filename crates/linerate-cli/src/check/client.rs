//! `linerate check --listen`: sends one input to each client that connects.

use std::{
    io,
    net::SocketAddr,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use linerate::tls::rustls::ServerConfig;
use linerate_check::{ClientPlan, Finding, Row};
use tokio::net::TcpListener;

/// How long to wait for a client started by `--run` to connect.
const ARRIVAL_MAX: Duration = Duration::from_secs(10);

/// Checks clients that connect to `address`; returns the URL they connect to, and the findings.
pub(super) async fn check(
    address: SocketAddr,
    command: Option<&str>,
    rows: &[Row],
    (patience, echoes, tls): (Duration, bool, Option<Arc<ServerConfig>>),
    tell: impl FnMut(&Finding),
) -> anyhow::Result<(String, Vec<Finding>)> {
    let bound = TcpListener::bind(address).await;
    let listener = bound.with_context(|| format!("cannot listen on {address}"))?;
    let scheme = if tls.is_some() { "wss" } else { "ws" };
    let url = format!("{scheme}://{}/", listener.local_addr()?);
    eprintln!("{url}");
    let listening = ClientPlan {
        listener,
        patience,
        arrival: command.map(|_| ARRIVAL_MAX),
        echoes,
        tls,
    };
    let mut started = ClientProcess(None);
    let next = || match command {
        Some(command) => started.start(command, &url),
        None => Ok(()),
    };
    let findings = linerate_check::listen(&listening, rows, next, tell).await;
    Ok((url.clone(), findings.context("cannot accept clients")?))
}

/// The client that was started for an input. It is killed when the next one starts.
struct ClientProcess(Option<Child>);

impl ClientProcess {
    fn start(&mut self, command: &str, url: &str) -> io::Result<()> {
        self.end();
        let command = command.replace("{url}", url);
        let child = Command::new("sh")
            .args(["-c", &command])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        self.0 = Some(child);
        Ok(())
    }

    fn end(&mut self) {
        if let Some(mut child) = self.0.take() {
            // It may have exited already.
            _ = child.kill();
            _ = child.wait();
        }
    }
}

impl Drop for ClientProcess {
    fn drop(&mut self) {
        self.end();
    }
}
