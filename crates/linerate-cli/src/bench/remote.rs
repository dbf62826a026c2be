//! `linerate bench --url`: measures a server that is already running.

use std::sync::Arc;

use clap::Args;
use linerate::tls;
use linerate_bench::run::{Remote, RemoteError};

/// Selects a running server to measure.
#[derive(Args, Clone, Debug)]
#[group(skip)]
pub(super) struct Arguments {
    /// Measure the server at this ws:// or wss:// URL instead of contenders. It must echo each
    /// message.
    #[arg(long, value_name = "URL", conflicts_with_all = ["contender", "contenders_dir"])]
    pub(super) url: Option<String>,

    /// PID of the server if it runs on this machine. Its CPU time and memory are then measured as
    /// well.
    #[arg(long, value_name = "N", requires = "url")]
    pub(super) pid: Option<u32>,

    /// Confirm that you may put load on this server. Required if it is on another machine.
    #[arg(long, requires = "url")]
    i_own_this_server: bool,

    /// DANGER: accept any certificate. An attacker on the network can then read and change
    /// everything.
    #[arg(long, requires = "url")]
    tls_insecure: bool,
}

impl Arguments {
    /// Finds the server given by `--url`, if any.
    pub(super) fn find(&self) -> anyhow::Result<Option<Remote>> {
        let Some(url) = &self.url else {
            return Ok(None);
        };
        let tls = if self.tls_insecure {
            Arc::new(tls::danger_client_config_trusting_anybody())
        } else {
            tls::default_client_config()
        };
        match Remote::find(url, tls, self.pid, self.i_own_this_server) {
            Ok(remote) => Ok(Some(remote)),
            Err(error @ RemoteError::Elsewhere { .. }) => Err(anyhow::Error::new(error)
                .context("add --i-own-this-server if it is yours and may be put under load")),
            Err(error) => Err(error.into()),
        }
    }
}
