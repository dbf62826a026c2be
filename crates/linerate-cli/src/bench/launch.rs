//! `linerate bench launch`: the process that becomes a contender's server.

use std::{ffi::OsString, path::Path};

use anyhow::Context;
use clap::Args;
use linerate_bench::server;

/// How `linerate bench` leads itself here.
pub(super) const VERBS: [&str; 2] = ["bench", "launch"];

/// What [`server::Launcher`] passes on.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// The process whose end is the server's end.
    #[arg(long)]
    parent: u32,

    /// The cores that the server may use.
    #[arg(long, value_delimiter = ',')]
    cores: Vec<u32>,

    /// The server's program, and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let (program, rest) = arguments
        .command
        .split_first()
        .context("a program is needed")?;
    let error = server::launch(arguments.parent, &arguments.cores, Path::new(program), rest);
    Err(error.into())
}
