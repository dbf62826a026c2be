//! `linerate bench launch`: the process that becomes a contender's server.

use std::{ffi::OsString, path::Path};

use anyhow::Context;
use clap::Args;
use linerate_bench::server;

/// The subcommands with which `linerate bench` starts this one.
pub(super) const VERBS: [&str; 2] = ["bench", "launch"];

/// The arguments that [`server::Launcher`] passes.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// PID of the parent process; the server ends when the parent does.
    #[arg(long)]
    parent: u32,

    /// CPU cores that the server may use, separated by commas.
    #[arg(long, value_delimiter = ',')]
    cores: Vec<u32>,

    /// The server's program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let (program, rest) = arguments
        .command
        .split_first()
        .context("no program given")?;
    let error = server::launch(arguments.parent, &arguments.cores, Path::new(program), rest);
    Err(error.into())
}
