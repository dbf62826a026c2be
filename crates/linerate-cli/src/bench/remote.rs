//! `linerate bench --url`: somebody's own server.

use std::sync::Arc;

use clap::Args;
use linerate::tls;
use linerate_bench::run::{Remote, RemoteError};

/// Which server that runs already is measured.
#[derive(Args, Clone, Debug)]
#[group(skip)]
pub(super) struct Arguments {
    /// Measure the server at this ws:// or wss:// address, which has to send each message back, instead of contenders.
    #[arg(long, value_name = "URL", conflicts_with_all = ["contender", "contenders_dir"])]
    pub(super) url: Option<String>,

    /// The number of the server's process on this machine: its CPU time and memory are measured too.
    #[arg(long, value_name = "N", requires = "url")]
    pub(super) pid: Option<u32>,

    /// The server is on another machine, and may be put under load: it is mine.
    #[arg(long, requires = "url")]
    i_own_this_server: bool,

    /// DANGER: accept any certificate. Whoever sits in between can read and change everything.
    #[arg(long, requires = "url")]
    tls_insecure: bool,
}

impl Arguments {
    /// Finds the server, if one is asked for.
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
