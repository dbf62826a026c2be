//! `linerate serve`: the realtime server with its web pages.
//!
//! | path | what it is |
//! | --- | --- |
//! | `/` | an overview page, with channels to try out |
//! | `/connection/…`, `/emulation` | endpoints for Centrifuge clients and native clients |
//! | `/raw`, `/sse` | channels as a plain WebSocket and as server-sent events |
//! | `/api/…` | the server API |
//! | `/admin` | a page for administrators |
//! | `/channel`, `/channel/clients` | a page to try a channel, and how clients connect |
//! | `/metrics`, `/live`, `/ready` | monitoring; on `server.operations_listen`, if configured |
//! | `/logs`, `/logs/upload` | a page that accepts an access log and charts its statistics |
//! | `/assets/…`, `/favicon.ico` | files that the pages load |
//! | `/echo` | a WebSocket that echoes each message |
//! | `/counters` | a WebSocket that pushes the counters once a second |

pub(crate) mod assets;
mod banner;
mod control;
mod counters;
#[cfg_attr(not(unix), path = "elsewhere/detach.rs")]
mod detach;
mod endpoint;
mod error_page;
mod flags;
mod limits;
mod logging;
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/notify.rs")]
mod notify;
mod routes;
mod uploads;

use anyhow::Context;
use clap::Args;
use linerate_gateway::Gateway;
use linerate_uploads::Service;
use tokio::runtime::Builder;

use banner::Banner;
use control::Control;
pub(crate) use flags::loader_of_environment;
use routes::Pages;
use uploads::{Keys, LogsSection};

use crate::platform;

const EXAMPLES: &str = "\
Examples:
  linerate serve
  linerate serve --broker redis://127.0.0.1:6379
  linerate serve --config /etc/linerate.toml --listen 0.0.0.0:8080
  linerate serve --tail /var/log/nginx/access.log
  linerate serve --set channel.batch_interval_ms=200 --set channel.slow=conflate
  linerate serve --config /etc/linerate.toml --print-limits
  linerate serve --config /etc/linerate.toml --takeover

Flags override environment variables, which override the configuration file. `linerate config default` prints all \
configuration keys.

Ctrl-c or SIGTERM drains the server: clients are disconnected over the period `server.drain.window_s`. A second signal \
stops the server immediately. SIGHUP reloads the configuration and the certificate.

With --takeover, a new process takes over the listeners and the clients of a running one, so that clients stay \
connected during a deploy. Both need the same `server.takeover_socket`, and clients move only with Redis or NATS as the \
broker. The old process then drains the clients that stay, and exits.";

/// Runs the realtime server, which serves channels to browsers and programs, and its web pages.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    flags: flags::Flags,

    /// Print every limit with its key and effective value, then exit.
    #[arg(long)]
    print_limits: bool,

    /// Take over the listeners and clients of the process that listens on `server.takeover_socket`,
    /// which then exits. Start as usual if no process does.
    #[arg(long, conflicts_with = "print_limits")]
    takeover: bool,

    /// Run the server in the background, and exit when it serves. For `ExecReload` in systemd
    /// units.
    #[arg(long, requires = "takeover")]
    detach: bool,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    let loader = arguments.flags.loader();
    if arguments.print_limits {
        return limits::print(&loader);
    }
    if arguments.detach {
        return detach::start();
    }
    let config = loader.load()?;
    let banner = Banner::new(&config);
    let logging = logging::start(&config.log)?;
    raise_descriptor_limit(config.server.connections_max);
    if !config.server.huge_pages
        && let Err(error) = platform::avoid_huge_pages()
    {
        tracing::warn!(%error, "cannot keep the allocator from using huge pages");
    }
    // This runtime handles everything that concerns all workers: the node, signals, operations.
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("control")
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let logs: LogsSection = config.section()?;
        let gateway = match arguments.takeover {
            true => Gateway::take_over(config).await?,
            false => Gateway::bind(config)?,
        };
        let keys = Keys(gateway.access());
        let uploads = Service::start(&logs.0, keys, gateway.budget().clone())?;
        let pages = Pages::new(&gateway, uploads);
        // Signals must be handled before the address is printed: from then on, a signal must stop
        // the server gracefully.
        let control = Control::new(loader, logs, logging)?;
        let url = gateway.url();
        control.run(gateway, pages, || banner.print(&url)).await
    })?;
    // A thread that is blocked on a file must not keep the process alive.
    runtime.shutdown_background();
    Ok(())
}

/// Raises the file descriptor limit to the maximum number of connections plus 256.
fn raise_descriptor_limit(connections_max: usize) {
    let wanted = connections_max as u64 + 256;
    match platform::raise_descriptor_limit(wanted).context("cannot raise the file descriptor limit")
    {
        Ok(allowed) if allowed < wanted => tracing::warn!(
            allowed,
            connections_max,
            "file descriptor limit is too low for connections_max; raise LimitNOFILE or `ulimit -n`"
        ),
        Ok(_) => {}
        Err(error) => tracing::warn!(%error),
    }
}
