//! Compares the public API of the libraries with the lists `crates/*/public-api.txt`, or writes
//! these lists.
//!
//! The API is read from what rustdoc wrote as JSON: see `scripts/rustdoc`. A crate takes part if it
//! has a list, which may be empty at first.
#![forbid(unsafe_code)]

use std::{
    collections::HashSet,
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail, ensure};

/// The name of a crate's list, beside its manifest.
const LIST: &str = "public-api.txt";

const USAGE: &str = "usage: linerate-public-api check|write CRATES_FOLDER DOC_FOLDER";

fn main() -> Result<()> {
    let arguments: Vec<_> = env::args_os().skip(1).collect();
    let [task, crates, docs] = &arguments[..] else {
        bail!(USAGE);
    };
    let task: fn(&Path, &str) -> Result<()> = match task.to_str() {
        Some("check") => check,
        Some("write") => write,
        _ => bail!(USAGE),
    };
    let mut failures = Vec::new();
    for (list, json) in crates_with_lists(Path::new(crates), Path::new(docs))? {
        if let Err(error) = task(&list, &public_api(&json)?) {
            failures.push(error.to_string());
        }
    }
    ensure!(failures.is_empty(), failures.join("\n\n"));
    Ok(())
}

/// Returns the list of each crate that has one, and where rustdoc put its JSON.
fn crates_with_lists(crates: &Path, docs: &Path) -> Result<Vec<(PathBuf, PathBuf)>> {
    let mut found = Vec::new();
    for folder in
        fs::read_dir(crates).with_context(|| format!("cannot read {}", crates.display()))?
    {
        let folder = folder?;
        let list = folder.path().join(LIST);
        if list.exists() {
            let name = folder.file_name().to_string_lossy().replace('-', "_");
            found.push((list, docs.join(name).with_extension("json")));
        }
    }
    ensure!(
        !found.is_empty(),
        "no crate in {} has a {LIST}",
        crates.display()
    );
    found.sort();
    Ok(found)
}

/// Returns the public items of a crate, one per line.
///
/// Blanket impls are left out, because they are the same for all types, and so are auto traits,
/// because they would fill half of the list; tests check that types are `Send`.
fn public_api(json: &Path) -> Result<String> {
    let api = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .build()
        .with_context(|| {
            format!(
                "cannot read {}; if rustc is new, the crate `public-api` in Cargo.toml must match it",
                json.display()
            )
        })?;
    Ok(api.items().map(|item| format!("{item}\n")).collect())
}

fn write(list: &Path, api: &str) -> Result<()> {
    fs::write(list, api).with_context(|| format!("cannot write {}", list.display()))
}

fn check(list: &Path, api: &str) -> Result<()> {
    let listed =
        fs::read_to_string(list).with_context(|| format!("cannot read {}", list.display()))?;
    let changes = changes(&listed, api);
    ensure!(
        changes.is_empty(),
        "the public API differs from {}:\n{changes}if that is intended, run `make public-api`, commit the list, and \
         describe the change in CHANGELOG.md (removed or changed lines under Breaking)",
        list.display()
    );
    Ok(())
}

/// Returns the lines that were removed and added, marked as in a diff.
fn changes(listed: &str, api: &str) -> String {
    let missing_in = |other: &str, lines: &str, mark| {
        let other: HashSet<_> = other.lines().collect();
        let lines = lines.lines().filter(|line| !other.contains(line));
        lines
            .map(|line| format!("  {mark} {line}\n"))
            .collect::<String>()
    };
    missing_in(api, listed, '-') + &missing_in(listed, api, '+')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_show_removed_and_added_items() {
        let listed = "pub fn a::one()\npub fn a::two()\n";
        let api = "pub fn a::one()\npub fn a::three()\n";
        assert_eq!(
            changes(listed, api),
            "  - pub fn a::two()\n  + pub fn a::three()\n"
        );
        assert_eq!(changes(listed, listed), "");
    }

    #[test]
    fn check_names_the_list_and_the_remedy() {
        let folder = env::temp_dir().join(format!("linerate-public-api-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let list = folder.join(LIST);
        write(&list, "pub fn a::one()\n").unwrap();
        check(&list, "pub fn a::one()\n").unwrap();
        let error = check(&list, "").unwrap_err().to_string();
        fs::remove_dir_all(&folder).unwrap();
        assert!(error.contains("- pub fn a::one()"), "{error}");
        assert!(
            error.contains(LIST) && error.contains("make public-api"),
            "{error}"
        );
    }
}
