//! The `linerate` binary: its verbs, each in a file of its own.
#![forbid(unsafe_code)]

mod bench;
mod certificate;
mod check;
mod compression;
mod config;
mod connect;
mod echo;
mod log_filter;
mod logs;
mod memory;
mod publish;
mod serve;
mod terminal;
mod token;
mod workers;

use std::process::ExitCode;

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
  linerate serve --broker redis://127.0.0.1:6379
  linerate config default
  linerate logs /var/log/nginx/access.log
  linerate publish news hello
  echo hello | linerate connect ws://127.0.0.1:8080/echo
  linerate echo --listen 127.0.0.1:9001
  linerate bench --url ws://127.0.0.1:9001/
  linerate check ws://127.0.0.1:9001/

`linerate VERB --help` has more. LINERATE_LOG sets what is logged, `LINERATE_LOG=linerate=debug` for instance.";

#[derive(Debug, Subcommand)]
enum Verb {
    /// Compare WebSocket servers, or measure one.
    Bench(Box<bench::Arguments>),
    /// Check a WebSocket server against the standard.
    Check(Box<check::Arguments>),
    /// Show what there is to configure, or check a file.
    Config(config::Arguments),
    /// Open a WebSocket: type to send, see what arrives.
    Connect(Box<connect::Arguments>),
    /// Send each message back: for conformance tests and benchmarks.
    Echo(echo::Arguments),
    /// Show the figures of access logs.
    Logs(logs::Arguments),
    /// Publish in a channel.
    Publish(publish::Arguments),
    /// Serve channels to browsers and programs, and the pages.
    Serve(Box<serve::Arguments>),
    /// Make a token to try things out with.
    Token(token::Arguments),
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    // The server has a log of its own.
    if !matches!(arguments.verb, Verb::Serve(_)) {
        log_warnings();
    }
    if matches!(arguments.verb, Verb::Echo(_) | Verb::Serve(_)) {
        memory::give_back()?;
    }
    match arguments.verb {
        Verb::Bench(arguments) => bench::run(*arguments),
        Verb::Check(arguments) => return Ok(check::run(&arguments)),
        Verb::Config(arguments) => config::run(arguments),
        Verb::Connect(arguments) => connect::run(*arguments),
        Verb::Echo(arguments) => echo::run(arguments),
        Verb::Logs(arguments) => logs::run(arguments),
        Verb::Publish(arguments) => publish::run(arguments),
        Verb::Serve(arguments) => serve::run(*arguments),
        Verb::Token(arguments) => token::run(arguments),
    }?;
    Ok(ExitCode::SUCCESS)
}

/// Logs what the environment asks for, or warnings.
fn log_warnings() {
    let asked = std::env::var("LINERATE_LOG").unwrap_or_default();
    let filter = log_filter::parse(&asked).ok().filter(|_| !asked.is_empty());
    let filter = filter.or_else(|| log_filter::parse("warn").ok());
    let filter = filter.unwrap_or_else(|| EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(terminal::stderr_has_colors())
        .init();
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_arguments_of_all_verbs_fit_together() {
        super::Arguments::command().debug_assert();
    }
}
