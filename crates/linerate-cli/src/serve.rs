//! `linerate serve`: the realtime server with its pages.
//!
//! | path | what it is |
//! | --- | --- |
//! | `/` | a page that says what is here, with channels to try out |
//! | `/connection/…`, `/emulation` | clients of Centrifuge, and native ones |
//! | `/raw`, `/sse` | channels as a WebSocket of messages, and as events |
//! | `/api/…` | the server API |
//! | `/admin` | a page for administrators |
//! | `/metrics`, `/live`, `/ready` | for monitoring; on `server.operations_listen`, if that is configured |
//! | `/logs`, `/logs/upload` | a page that takes an access log and draws its figures |
//! | `/assets/…` | what the pages load |
//! | `/echo` | a WebSocket that sends each message back |
//! | `/counters` | a WebSocket that pushes the counters once a second |

mod assets;
mod control;
mod counters;
mod echo;
mod endpoint;
mod flags;
mod follow;
mod limits;
mod logging;
mod notify;
mod routes;
mod service;
mod upload;

use std::io::Write;

use anyhow::Context;
use clap::Args;
use tokio::runtime::Builder;

pub(crate) use flags::loader_of_environment;
use service::Service;

const EXAMPLES: &str = "\
Examples:
  linerate serve
  linerate serve --broker redis://127.0.0.1:6379
  linerate serve --config /etc/linerate.toml --listen 0.0.0.0:8080
  linerate serve --tail /var/log/nginx/access.log
  linerate serve --set channel.batch_interval_ms=200 --set channel.slow=conflate
  linerate serve --config /etc/linerate.toml --print-limits

A flag goes before a variable of the environment, and that before the file. `linerate config default` prints all
there is to configure.

Ctrl-c or SIGTERM drain the server: clients are sent away over `server.drain.window_s`. A second one ends it at once.
SIGHUP loads the configuration and the certificate again.";

/// Serves channels to browsers and programs, and the pages.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    flags: flags::Flags,

    /// Print every limit with its key and its value in force, and serve nothing.
    #[arg(long)]
    print_limits: bool,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    let loader = arguments.flags.loader();
    if arguments.print_limits {
        return limits::print(&loader);
    }
    let config = loader.load()?;
    let logging = logging::start(&config.log)?;
    raise_descriptor_limit(config.server.connections_max);
    // What concerns all workers: the node, signals, operations.
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("control")
        .enable_all()
        .build()?;
    let service = Service::bind(config, runtime.handle())?;
    // Once the address is printed, a signal is a request to stop in order.
    let control = {
        let _entered = runtime.enter();
        control::Control::new(loader, logging, service.address())?
    };
    announce(&service);
    runtime.block_on(control.run(service))?;
    // A thread that waits for a file must not keep the process.
    runtime.shutdown_background();
    Ok(())
}

/// Prints the address, and what is there.
fn announce(service: &Service) {
    let text = format!(
        "linerate serve: {}/\n\
         \x20 /       what is here, with channels to try out\n\
         \x20 /admin  clients, channels, the link to the broker\n\
         \x20 /logs   drop an access log, see its figures\n\
         ctrl-c stops it\n",
        service.url()
    );
    // Whoever started the server may have closed its output; that is no reason not to serve.
    let mut stdout = std::io::stdout().lock();
    _ = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
}

/// Asks for as many file descriptors as there may be connections, and some more.
fn raise_descriptor_limit(connections_max: usize) {
    let wanted = connections_max as u64 + 256;
    match rlimit(wanted).context("can't ask for file descriptors") {
        Ok(allowed) if allowed < wanted => tracing::warn!(
            allowed,
            connections_max,
            "fewer file descriptors than connections are allowed; see LimitNOFILE or `ulimit -n`"
        ),
        Ok(_) => {}
        Err(error) => tracing::warn!(%error),
    }
}

/// Raises the limit towards `wanted`, and returns what it is.
fn rlimit(wanted: u64) -> nix::Result<u64> {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft >= wanted {
        return Ok(soft);
    }
    let raised = wanted.min(hard);
    setrlimit(Resource::RLIMIT_NOFILE, raised, hard)?;
    Ok(raised)
}
