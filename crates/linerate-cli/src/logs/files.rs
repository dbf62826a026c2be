//! Which files are meant: names, patterns and standard input.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// How many files are read at most: more than a year of daily logs of a hundred hosts.
const FILES_MAX: usize = 65_536;

/// Returns the files that the arguments mean, those of a pattern in the order of their names.
///
/// Shells expand patterns themselves unless they are quoted, as in a unit of systemd. A file whose
/// name is the pattern goes first.
///
/// # Errors
/// A pattern is none, matches nothing, or there are too many files.
pub(super) fn expand(arguments: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for argument in arguments {
        match argument.to_str() {
            Some(pattern) if is_pattern(pattern) && !argument.exists() => {
                files.extend(matching(pattern)?);
            }
            _ => files.push(argument.clone()),
        }
        if files.len() > FILES_MAX {
            bail!("more than {FILES_MAX} files were given");
        }
    }
    Ok(files)
}

/// Returns what to call a file in messages.
pub(super) fn name(file: &Path) -> String {
    if is_stdin(file) {
        "standard input".into()
    } else {
        file.display().to_string()
    }
}

pub(super) fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == OsStr::new("-")
}

fn is_pattern(argument: &str) -> bool {
    argument.contains(['*', '?', '['])
}

fn matching(pattern: &str) -> anyhow::Result<Vec<PathBuf>> {
    let paths = glob::glob(pattern).with_context(|| format!("{pattern} is no pattern"))?;
    let mut files = Vec::new();
    for path in paths.take(FILES_MAX + 1) {
        let path = path.with_context(|| format!("can't look for {pattern}"))?;
        if !path.is_dir() {
            files.push(path);
        }
    }
    if files.is_empty() {
        bail!("no file matches {pattern}");
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{expand, name};

    fn names(folder: &Path, arguments: &[&str]) -> Result<Vec<String>, String> {
        let arguments: Vec<PathBuf> = arguments.iter().map(|name| folder.join(name)).collect();
        let files = expand(&arguments).map_err(|error| error.to_string())?;
        let name = |file: PathBuf| file.strip_prefix(folder).unwrap().display().to_string();
        Ok(files.into_iter().map(name).collect())
    }

    #[test]
    fn patterns_stand_for_files_in_the_order_of_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        for name in ["b.log", "a.log", "a.log.1.gz", "[x].log"] {
            std::fs::write(folder.join(name), "").unwrap();
        }
        std::fs::create_dir(folder.join("c.log")).unwrap();
        assert_eq!(names(folder, &["[ab].log"]).unwrap(), ["a.log", "b.log"]);
        assert_eq!(
            names(folder, &["b.log", "a*", "none.log"]).unwrap(),
            ["b.log", "a.log", "a.log.1.gz", "none.log"]
        );
        assert_eq!(names(folder, &["[x].log"]).unwrap(), ["[x].log"]);
        let error = names(folder, &["z*"]).unwrap_err();
        assert!(
            error.starts_with("no file matches ") && error.ends_with("/z*"),
            "{error}"
        );
        assert!(
            names(folder, &["[z"])
                .unwrap_err()
                .contains("is no pattern")
        );
    }

    #[test]
    fn standard_input_has_a_name() {
        assert_eq!(name(Path::new("-")), "standard input");
        assert_eq!(name(Path::new("./-")), "./-");
    }
}
