//! `linerate config`: what there is to configure, and whether a file is right.

use std::{io::Write, path::PathBuf};

use clap::{Args, Subcommand};
use linerate_gateway::{
    auth::{Authenticator, Origins},
    config::DEFAULT_TOML,
    server::Certificate,
};

use crate::serve::loader_of_environment;

const EXAMPLES: &str = "\
Examples:
  linerate config default > linerate.toml
  linerate config check linerate.toml
  LINERATE_SERVER_LISTEN=0.0.0.0:80 linerate config check";

/// Shows what there is to configure, or checks a file.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Check a file, with the environment over it, as `linerate serve --config` would load it.
    Check {
        /// The file [default: what LINERATE_CONFIG names, or none].
        file: Option<PathBuf>,
    },
    /// Print every key with its default and what it means, as a file.
    Default,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    match arguments.action {
        Action::Check { file } => check(file),
        // Whoever reads may have seen enough.
        Action::Default => {
            _ = std::io::stdout().write_all(DEFAULT_TOML.as_bytes());
            Ok(())
        }
    }
}

/// Loads the configuration, and reads the files that it names.
fn check(file: Option<PathBuf>) -> anyhow::Result<()> {
    let loader = loader_of_environment(file);
    let config = loader.load()?;
    Authenticator::new(&config.auth)?;
    Origins::new(&config.server.origins)?;
    config.broker.url.read()?;
    if let Some(tls) = &config.server.tls {
        Certificate::load(tls)?;
    }
    let source = loader.path().map_or_else(
        || "the defaults and the environment".to_owned(),
        |path| path.display().to_string(),
    );
    println!("{source}: all is well");
    println!("  listens on {}", config.server.listen);
    println!("  namespaces: {}", config.namespaces.len());
    for warning in config.warnings() {
        println!("  warning: {warning}");
    }
    if config.is_open() {
        println!(
            "  stands open: no key is configured, everybody who can connect may do everything"
        );
    }
    Ok(())
}
