//! Versions of compilers and runtimes.

use std::process::{Command, Stdio};

/// How to ask each tool for its version. Most answer with one line, some of them on standard error.
const TOOLS: [(&str, &[&str]); 8] = [
    ("rustc", &["--version"]),
    ("cargo", &["--version"]),
    ("g++", &["--version"]),
    ("go", &["version"]),
    ("java", &["-version"]),
    ("node", &["--version"]),
    ("python3", &["--version"]),
    ("bun", &["--version"]),
];

/// Returns one line for each tool that is installed.
pub(super) fn versions() -> Vec<String> {
    let versions = TOOLS.into_iter().filter_map(|(tool, arguments)| {
        let output = Command::new(tool)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .ok()
            .filter(|output| output.status.success())?;
        Some(line(tool, &output.stdout, &output.stderr))
    });
    versions.collect()
}

/// Returns the first line that is not blank, preceded by the name of the tool unless it begins with
/// it.
fn line(tool: &str, stdout: &[u8], stderr: &[u8]) -> String {
    let stdout = String::from_utf8_lossy(stdout);
    let stderr = String::from_utf8_lossy(stderr);
    let mut lines = stdout.lines().chain(stderr.lines()).map(str::trim);
    let line = lines.find(|line| !line.is_empty()).unwrap_or_default();
    let name = tool.trim_end_matches(|char: char| char.is_ascii_digit());
    if line.to_lowercase().starts_with(name) {
        line.to_owned()
    } else {
        format!("{tool} {line}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_has_its_tools_name_once() {
        for (tool, stdout, stderr, expected) in [
            ("node", "v22.1.0\n", "", "node v22.1.0"),
            ("python3", "Python 3.13.1\n", "", "Python 3.13.1"),
            ("g++", "g++ (Debian) 14\nCopyright", "", "g++ (Debian) 14"),
            (
                "java",
                "",
                "\nopenjdk version \"21\"\n",
                "java openjdk version \"21\"",
            ),
        ] {
            let line = line(tool, stdout.as_bytes(), stderr.as_bytes());
            assert_eq!(line, expected);
        }
    }

    #[test]
    fn the_compiler_of_this_test_has_a_version() {
        let versions = versions();
        assert!(
            versions.iter().any(|line| line.starts_with("cargo 1.")),
            "{versions:?}"
        );
    }
}
