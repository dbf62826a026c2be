//! Where things are: scenarios, contenders, records.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use clap::Args;
use linerate_bench::{contender::Contender, scenario::Scenario};

/// Where contenders are in a checkout of linerate, and where records are kept.
const CONTENDERS: &str = "bench/contenders";
const RECORDS: &str = "bench/record";

/// Where to look for what is measured and who.
#[derive(Args, Clone, Debug)]
// The verbs' own arguments have the group of this name.
#[group(skip)]
pub(super) struct Arguments {
    /// Folder of contenders [default: bench/contenders of the checkout around this folder].
    #[arg(long, value_name = "DIR")]
    contenders_dir: Option<PathBuf>,

    /// Folder of scenarios, *.toml [default: those that this binary brings along].
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

    /// Returns where contenders are, if anywhere.
    pub(super) fn contenders_folder(&self) -> Option<PathBuf> {
        let given = self.contenders_dir.clone();
        given.or_else(|| checkout().map(|root| root.join(CONTENDERS)))
    }

    /// Returns all contenders, also those that are absent.
    pub(super) fn contenders(&self) -> anyhow::Result<Vec<Contender>> {
        let Some(folder) = self.contenders_folder() else {
            bail!(
                "there are no contenders here: run this in a checkout of linerate after `make contenders`, or give \
                 --contenders-dir, or measure a server that runs already with --url"
            );
        };
        let contenders = Contender::discover(&folder)?;
        if contenders.is_empty() {
            bail!("no folder in {} has a contender.toml", folder.display());
        }
        Ok(contenders)
    }
}

/// Returns a file for a new record: in a checkout where records are kept, elsewhere in this folder.
pub(super) fn new_record(
    date: &str,
    effort: &str,
    is_for_checkout: bool,
) -> anyhow::Result<PathBuf> {
    let name = match checkout().filter(|_| is_for_checkout) {
        Some(root) => root.join(RECORDS).join(format!("{date}-{effort}")),
        None => PathBuf::from(format!("linerate-bench-{date}")),
    };
    unused(&name).with_context(|| format!("{}.jsonl and 99 more exist already", name.display()))
}

/// Returns a name with `.jsonl` that no file has.
fn unused(name: &Path) -> Option<PathBuf> {
    let numbers = (2..=100).map(|number| format!("-{number}"));
    let mut names = std::iter::once(String::new())
        .chain(numbers)
        .map(|number| PathBuf::from(format!("{}{number}.jsonl", name.display())));
    names.find(|name| !name.exists())
}

/// Returns the nearest folder around this one that has contenders.
fn checkout() -> Option<PathBuf> {
    let here = env::current_dir().ok()?;
    let mut folders = here.ancestors();
    let found = folders.find(|folder| folder.join(CONTENDERS).is_dir())?;
    // Shorter to read where it is this very folder.
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
