//! `linerate bench compare`: shows what changed between two records.

use std::path::PathBuf;

use clap::Args;
use linerate_bench::{compare, record::Record};

use crate::terminal::print;

/// Shows what changed between two records, and which changes exceed the noise.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// The earlier record, which serves as the baseline.
    #[arg(value_name = "BEFORE")]
    before: PathBuf,

    /// The later record, which is compared with the baseline.
    #[arg(value_name = "AFTER")]
    after: PathBuf,

    /// Print the comparison as one JSON object.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let before = Record::read(&arguments.before)?;
    let after = Record::read(&arguments.after)?;
    let comparison = compare::compare(&before, &after);
    let text = if arguments.json {
        serde_json::to_string(&comparison)? + "\n"
    } else {
        comparison.to_string()
    };
    Ok(print(&text)?)
}
