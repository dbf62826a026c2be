//! `linerate logs`: the figures of access logs, for people or as JSON.

mod chart;
mod report;
mod source;

use std::{
    io::{self, IsTerminal, Write},
    path::PathBuf,
};

use anyhow::{Context, bail};
use clap::Args;
use linerate_logview::{
    aggregate::{Aggregator, Limits},
    summary::Summary,
};

const EXAMPLES: &str = "\
Examples:
  linerate logs /var/log/nginx/access.log
  linerate logs access.log.1 access.log --json | jq .top_paths
  gunzip -c access.log.*.gz | linerate logs -";

/// Shows the figures of access logs in the common or combined format (nginx, Apache).
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Logs, which together are read as one; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Print all figures as one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    let mut log = Aggregator::new(Limits::default());
    source::read_all(&arguments.files, &mut log)?;
    if log.lines() > 0 && log.requests() == 0 {
        let names: Vec<_> = arguments
            .files
            .iter()
            .map(|file| source::name(file))
            .collect();
        bail!(
            "{} is no access log in the common or combined format: none of {} lines is a request",
            names.join(", "),
            log.lines()
        );
    }
    let summary = log.summary();
    let text = if arguments.json {
        to_json(&summary)?
    } else {
        report::report(&summary, width())
    };
    match io::stdout().lock().write_all(text.as_bytes()) {
        // Whoever reads has seen enough, as `head` has.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("can't write the figures"),
    }
}

fn to_json(summary: &Summary) -> anyhow::Result<String> {
    Ok(serde_json::to_string(summary)? + "\n")
}

/// Returns how many columns the report may have.
fn width() -> usize {
    const DEFAULT: usize = 80;
    if !io::stdout().is_terminal() {
        return DEFAULT;
    }
    let columns = terminal_size::terminal_size().map_or(DEFAULT, |(width, _)| width.0.into());
    columns.clamp(60, 160)
}
