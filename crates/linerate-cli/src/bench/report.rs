//! `linerate bench report`: writes the HTML and Markdown reports of a run.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use clap::Args;
use linerate_bench::{record::Record, report, summary::Summary};

use super::table;
use crate::terminal::print;

/// Writes the HTML page and the Markdown report of a record.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// A record written by `linerate bench`.
    #[arg(value_name = "RECORD")]
    record: PathBuf,

    /// Folder for the reports [default: the folder of the record].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    write(&arguments.record, arguments.out.as_deref())
}

/// Writes the reports of a record to `folder`, or next to it, and prints the summary.
pub(super) fn write(path: &Path, folder: Option<&Path>) -> anyhow::Result<()> {
    let folder = folder.or(path.parent()).unwrap_or(Path::new(""));
    let mut record = Record::read(path)?;
    if record.measurements.is_empty() {
        bail!("{} contains no measurements", path.display());
    }
    forget_unmeasured(&mut record);
    let name = path
        .file_stem()
        .context("the record's path has no file name")?;
    let files = [
        ("html", report::html(&record)),
        ("md", report::markdown(&record)),
    ];
    if !folder.as_os_str().is_empty() {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let mut told = table::summary(&Summary::of(&record));
    told += &format!("\n{}\n", path.display());
    for (extension, text) in files {
        let file = folder.join(name).with_extension(extension);
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        told += &format!("{}\n", file.display());
    }
    Ok(print(&told)?)
}

/// Removes the cells that a stopped run had planned but not measured.
fn forget_unmeasured(record: &mut Record) {
    let measurements = record.measurements.iter();
    let measured: HashSet<&str> = measurements.map(|it| it.cell.as_str()).collect();
    record
        .cells
        .retain(|cell| measured.contains(cell.id().as_str()));
}
