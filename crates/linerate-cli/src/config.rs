//! `linerate config`: prints the default configuration, or checks a configuration file.

use std::{io::Write, path::PathBuf};

use clap::{Args, Subcommand};
use linerate_gateway::Gateway;

use crate::serve::loader_of_environment;

const EXAMPLES: &str = "\
Examples:
  linerate config default > linerate.toml
  linerate config check linerate.toml
  LINERATE_SERVER_LISTEN=0.0.0.0:80 linerate config check";

/// Prints the default configuration, or checks a configuration file.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Check a configuration file, combined with environment variables, as `linerate serve
    /// --config` would load it.
    Check {
        /// The configuration file [default: the file named by LINERATE_CONFIG, or none].
        file: Option<PathBuf>,
    },
    /// Print a configuration file with every key, its default and its meaning.
    Default,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    match arguments.action {
        Action::Check { file } => check(file),
        // An error means that the reader closed the pipe early.
        Action::Default => {
            let default = loader_of_environment(None).default_toml();
            _ = std::io::stdout().write_all(default.as_bytes());
            Ok(())
        }
    }
}

/// Loads the configuration and the files that it names, and prints a summary.
fn check(file: Option<PathBuf>) -> anyhow::Result<()> {
    let loader = loader_of_environment(file);
    let config = loader.load()?;
    Gateway::check(&config)?;
    let source = loader.path().map_or_else(
        || "defaults and environment".to_owned(),
        |path| path.display().to_string(),
    );
    println!("{source}: configuration is valid");
    println!("  listens on {}", config.server.listen);
    println!("  namespaces: {}", config.namespaces.len());
    for warning in config.warnings() {
        println!("  warning: {warning}");
    }
    if config.is_open() {
        println!(
            "  is open: no key is configured, so every client that can connect may do everything"
        );
    }
    Ok(())
}
