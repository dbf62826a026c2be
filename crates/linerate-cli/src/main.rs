//! The `linerate` binary. Each subcommand has its own module.
#![forbid(unsafe_code)]

#[cfg_attr(not(target_os = "linux"), path = "elsewhere/bench.rs")]
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
mod platform;
mod publish;
mod serve;
mod terminal;
mod token;
mod workers;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

/// tokio aligns its tasks and sockets to 128 bytes, and glibc's malloc wastes about 100 bytes on
/// each of these allocations. mimalloc does not.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// WebSocket at line rate: realtime server, echo server, client, log viewer, benchmark and
/// conformance checker.
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

Run `linerate COMMAND --help` for more. LINERATE_LOG sets what is logged, for example `LINERATE_LOG=linerate=debug`.";

#[derive(Debug, Subcommand)]
enum Verb {
    /// Compare WebSocket servers, or measure one.
    Bench(Box<bench::Arguments>),
    /// Check a WebSocket server or client against the standard.
    Check(Box<check::Arguments>),
    /// Print the default configuration, or check a configuration file.
    Config(config::Arguments),
    /// Open a WebSocket, send lines of input, and show the messages that arrive.
    Connect(Box<connect::Arguments>),
    /// Run an echo server, for conformance tests and benchmarks.
    Echo(echo::Arguments),
    /// Show statistics of access logs.
    Logs(logs::Arguments),
    /// Publish to a channel.
    Publish(publish::Arguments),
    /// Run the realtime server and its web pages.
    Serve(Box<serve::Arguments>),
    /// Create a token for testing.
    Token(token::Arguments),
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("Error: {}", terminal::with_causes(&error));
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    // `linerate serve` configures its own log.
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

/// Logs at the level set by `LINERATE_LOG`, or only warnings and errors if it is unset or invalid.
fn log_warnings() {
    let asked = std::env::var("LINERATE_LOG").unwrap_or_default();
    let filter = log_filter::parse(&asked).ok().filter(|_| !asked.is_empty());
    let filter = filter.or_else(|| log_filter::parse("warn").ok());
    let filter = filter.unwrap_or_else(|| EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(terminal::has_colors(&std::io::stderr()))
        .init();
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_arguments_of_all_verbs_fit_together() {
        super::Arguments::command().debug_assert();
    }

    #[test]
    fn each_paragraph_of_the_help_is_one_line_which_fits_any_terminal() {
        let mut commands = vec![super::Arguments::command()];
        while let Some(command) = commands.pop() {
            let help = command.get_after_help().map(ToString::to_string);
            let is_text = |line: &str| !line.is_empty() && !line.starts_with(' ');
            let help = help.unwrap_or_default();
            for (line, next) in help.lines().zip(help.lines().skip(1)) {
                assert!(!is_text(line) || !is_text(next), "{line}\n{next}");
            }
            commands.extend(command.get_subcommands().cloned());
        }
    }
}
