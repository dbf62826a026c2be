//! Locates scenarios, contenders, and records.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use clap::Args;
use linerate_bench::{contender::Contender, scenario::Scenario};

/// Folders of contenders and records, relative to the root of a linerate checkout.
const CONTENDERS: &str = "bench/contenders";
const RECORDS: &str = "bench/record";

/// The folders of contenders and scenarios.
#[derive(Args, Clone, Debug)]
// The subcommands' own `Arguments` already define a group with this name.
#[group(skip)]
pub(super) struct Arguments {
    /// Folder of contenders [default: bench/contenders in the enclosing checkout of linerate].
    #[arg(long, value_name = "DIR")]
    contenders_dir: Option<PathBuf>,

    /// Folder of scenarios, *.toml [default: the scenarios built into this binary].
    #[arg(long, value_name = "DIR")]
    pub(super) scenarios_dir: Option<PathBuf>,
}

impl Arguments {
    /// Returns all scenarios.
    pub(super) fn scenarios(&self) -> anyhow::Result<Vec<Scenario>> {
        Ok(match &self.scenarios_dir {
            Some(folder) => Scenario::load_folder(folder)?,
            None => Scenario::bundled()?,
        })
    }

    /// Returns the folder of contenders, or `None` if none is given and this is not a checkout.
    pub(super) fn contenders_folder(&self) -> Option<PathBuf> {
        let given = self.contenders_dir.clone();
        given.or_else(|| checkout().map(|root| root.join(CONTENDERS)))
    }

    /// Returns all contenders, including those that have not been built.
    pub(super) fn contenders(&self) -> anyhow::Result<Vec<Contender>> {
        let Some(folder) = self.contenders_folder() else {
            bail!(
                "no contenders found: run this in a checkout of linerate after `make contenders`, set \
                 --contenders-dir, or measure a running server with --url"
            );
        };
        let contenders = Contender::discover(&folder)?;
        if contenders.is_empty() {
            bail!(
                "no folder in {} contains a contender.toml",
                folder.display()
            );
        }
        Ok(contenders)
    }
}

/// Returns the path of a new record: in the checkout's folder of records if `is_for_checkout` and
/// there is a checkout, otherwise in the current folder.
pub(super) fn new_record(
    date: &str,
    effort: &str,
    is_for_checkout: bool,
) -> anyhow::Result<PathBuf> {
    let name = match checkout().filter(|_| is_for_checkout) {
        Some(root) => root.join(RECORDS).join(format!("{date}-{effort}")),
        None => PathBuf::from(format!("linerate-bench-{date}")),
    };
    unused(&name).with_context(|| {
        format!(
            "{}.jsonl and 99 numbered variants already exist; choose another name with --record",
            name.display()
        )
    })
}

/// Returns the first of `NAME.jsonl`, `NAME-2.jsonl`, … `NAME-100.jsonl` that does not exist.
fn unused(name: &Path) -> Option<PathBuf> {
    let numbers = (2..=100).map(|number| format!("-{number}"));
    let mut names = std::iter::once(String::new())
        .chain(numbers)
        .map(|number| PathBuf::from(format!("{}{number}.jsonl", name.display())));
    names.find(|name| !name.exists())
}

/// Returns the nearest enclosing folder that has contenders.
fn checkout() -> Option<PathBuf> {
    let here = env::current_dir().ok()?;
    let mut folders = here.ancestors();
    let found = folders.find(|folder| folder.join(CONTENDERS).is_dir())?;
    // For the current folder, an empty path gives shorter output than an absolute one.
    Some(if found == here {
        PathBuf::new()
    } else {
        found.to_path_buf()
    })
}

#[cfg(test)]
mod tests {
    use super::unused;

    #[test]
    fn a_second_record_of_a_day_gets_a_number() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("2026-01-02-quick");
        for expected in ["2026-01-02-quick.jsonl", "2026-01-02-quick-2.jsonl"] {
            let path = unused(&name).unwrap();
            assert_eq!(path.file_name().unwrap(), expected);
            std::fs::write(path, "").unwrap();
        }
    }
}
