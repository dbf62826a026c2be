//! The `linerate` binary: its verbs, each in a file of its own.
#![forbid(unsafe_code)]

mod bench;
mod certificate;
mod connect;
mod echo;
mod logs;
mod publish;
mod serve;
mod terminal;
mod workers;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

/// tokio aligns its tasks and sockets to 128 bytes, for which glibc's malloc wastes about 100 bytes
/// each.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// WebSocket at line rate: realtime server, echo server, client, log viewer and benchmark.
#[derive(Debug, Parser)]
#[command(version, about, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  linerate serve
  linerate logs /var/log/nginx/access.log
  linerate publish news hello
  echo hello | linerate connect ws://127.0.0.1:8080/echo
  linerate echo --listen 127.0.0.1:9001
  linerate bench --url ws://127.0.0.1:9001/

`linerate VERB --help` has more. LINERATE_LOG sets what is logged, `LINERATE_LOG=linerate=debug` for instance.";

#[derive(Debug, Subcommand)]
enum Verb {
    /// Compare WebSocket servers, or measure one.
    Bench(Box<bench::Arguments>),
    /// Open a WebSocket: type to send, see what arrives.
    Connect(connect::Arguments),
    /// Send each message back: for conformance tests and benchmarks.
    Echo(echo::Arguments),
    /// Show the figures of access logs.
    Logs(logs::Arguments),
    /// Publish in a channel.
    Publish(publish::Arguments),
    /// Serve the pages, the log viewer and the echo endpoint.
    Serve(serve::Arguments),
}

fn main() -> anyhow::Result<()> {
    let filter = EnvFilter::try_from_env("LINERATE_LOG").unwrap_or_else(|_| "warn".into());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    match Arguments::parse().verb {
        Verb::Bench(arguments) => bench::run(*arguments),
        Verb::Connect(arguments) => connect::run(arguments),
        Verb::Echo(arguments) => echo::run(arguments),
        Verb::Logs(arguments) => logs::run(arguments),
        Verb::Publish(arguments) => publish::run(arguments),
        Verb::Serve(arguments) => serve::run(arguments),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_arguments_of_all_verbs_fit_together() {
        super::Arguments::command().debug_assert();
    }
}
