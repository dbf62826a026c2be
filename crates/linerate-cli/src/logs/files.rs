//! Expansion of the file arguments: names, patterns and standard input.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// Maximum number of files: more than a year of daily logs from a hundred hosts.
const FILES_MAX: usize = 65_536;

/// Returns the files that the arguments refer to; those of a pattern are sorted by name.
///
/// Shells expand patterns themselves unless they are quoted; a systemd unit, for example, passes
/// them on as they are. If a file with the literal name of the pattern exists, that file is used.
///
/// # Errors
/// Returns an error if a pattern is invalid or matches no file, or if there are more than
/// [`FILES_MAX`] files.
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
            bail!("more than {FILES_MAX} files given");
        }
    }
    Ok(files)
}

/// Returns the name of a file for use in messages.
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
    let paths = glob::glob(pattern).with_context(|| format!("invalid pattern {pattern}"))?;
    let mut files = Vec::new();
    for path in paths.take(FILES_MAX + 1) {
        let path = path.with_context(|| format!("cannot search for {pattern}"))?;
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
                .contains("invalid pattern ")
        );
    }

    #[test]
    fn standard_input_has_a_name() {
        assert_eq!(name(Path::new("-")), "standard input");
        assert_eq!(name(Path::new("./-")), "./-");
    }
}
