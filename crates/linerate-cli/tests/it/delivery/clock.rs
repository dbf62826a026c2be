//! A clock that can be set while programs run, by a library that is loaded before theirs.

use std::{fs, os::unix::fs::FileExt, path::PathBuf, process::Command};

use tempfile::TempDir;

/// The library, in C, because it takes the place of functions of C's.
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/delivery/clock.c");

/// The time of day of the programs that were started with its environment. Their monotonic clock is not touched.
#[derive(Debug)]
pub(crate) struct Clock {
    directory: TempDir,
    file: fs::File,
}

impl Clock {
    /// Returns a clock that is right.
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = fs::File::create(directory.path().join("ahead")).unwrap();
        let clock = Self { directory, file };
        let mut compile = Command::new("cc");
        compile.args(["-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o"]);
        compile.arg(clock.library()).arg(SOURCE);
        assert!(compile.status().unwrap().success(), "{compile:?}");
        clock.step(0);
        clock
    }

    /// Sets the clock so many seconds before, or after, the right time. Programs see it at once.
    pub(crate) fn step(&self, seconds: i64) {
        self.file.write_all_at(&seconds.to_ne_bytes(), 0).unwrap();
    }

    /// Returns the environment of programs that go by this clock.
    pub(crate) fn environment(&self) -> [(&'static str, String); 2] {
        let ahead = self.directory.path().join("ahead");
        [
            ("LD_PRELOAD", self.library().display().to_string()),
            ("CLOCK_FILE", ahead.display().to_string()),
        ]
    }

    fn library(&self) -> PathBuf {
        self.directory.path().join("clock.so")
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::Clock;

    /// Returns how many seconds the clock of a program is before ours.
    fn ahead(clock: &Clock) -> i64 {
        let mut date = Command::new("date");
        let date = date.arg("+%s").envs(clock.environment());
        let told = String::from_utf8(date.output().unwrap().stdout).unwrap();
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
        told.trim().parse::<i64>().unwrap() - now as i64
    }

    #[test]
    fn programs_go_by_a_clock_that_is_set() {
        let clock = Clock::new();
        for seconds in [0, 3_600, -3_600] {
            clock.step(seconds);
            let ahead = ahead(&clock);
            assert!((seconds - 60..=seconds).contains(&ahead), "{ahead}");
        }
    }
}
