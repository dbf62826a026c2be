//! `linerate serve`: the realtime server with its pages.
//!
//! | path | what it is |
//! | --- | --- |
//! | `/` | a page with a live demo of channels and live counters |
//! | `/admin` | a page that shows what the node does, for holders of the admin key |
//! | `/logs` | a page that takes an access log and draws its figures |
//! | `/assets/…` | what the pages load |
//! | `/echo` | a WebSocket that sends each message back |
//! | `/counters` | a WebSocket that pushes the counters once a second |
//! | `/logs/upload` | a WebSocket that takes a log and pushes its figures |

mod assets;
mod connections;
mod counters;
mod echo;
mod endpoint;
mod http;
mod routes;
mod upload;

use std::{io::Write, sync::Arc};

use clap::Args;

use crate::workers;
use connections::Connections;
use routes::Shared;

const EXAMPLES: &str = "\
Examples:
  linerate serve
  linerate serve --listen 127.0.0.1:0 --workers 1
  linerate serve --listen 0.0.0.0:8080 --connections-max 50000 --uploads-max 16

Ctrl-c or SIGTERM stop it: open WebSockets are closed with 1001 and get six seconds to agree.";

/// Serves the pages, the log viewer and the echo endpoint.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    workers: workers::Arguments,

    /// Connections open at a time; more are refused with 503.
    #[arg(long, value_name = "N", default_value = "10000",
        value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    connections_max: u32,

    /// Logs uploaded at a time; more are refused and may be tried again later.
    #[arg(long, value_name = "N", default_value = "64",
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    uploads_max: u32,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    let workers = workers::Workers::bind(&arguments.workers)?;
    let connections = Connections::new(arguments.connections_max as usize);
    let app = routes::routes(Arc::new(Shared::new(arguments.uploads_max as usize)));
    announce(&workers);
    workers.run(move |listener, shutdown| {
        http::serve(listener, app.clone(), connections.clone(), shutdown)
    })
}

/// Prints the address, and what is there.
fn announce(workers: &workers::Workers) {
    let text = format!(
        "linerate serve: http://{}/\n\
         \x20 /      what is here, with live counters\n\
         \x20 /logs  drop an access log, see its figures\n\
         \x20 /echo  a WebSocket that sends each message back\n\
         ctrl-c stops it\n",
        workers.address()
    );
    // Whoever started the server may have closed its output; that is no reason not to serve.
    let mut stdout = std::io::stdout().lock();
    _ = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
}
