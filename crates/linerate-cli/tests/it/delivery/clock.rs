//! A clock that can be changed while programs run, by means of a preloaded library.

use std::{fs, os::unix::fs::FileExt, path::PathBuf, process::Command};

use tempfile::TempDir;

/// The source of the library. It is written in C because it replaces functions of the C library.
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/delivery/clock.c");

/// The time of day of all programs started with its environment. Their monotonic clocks are
/// unaffected.
#[derive(Debug)]
pub(crate) struct Clock {
    directory: TempDir,
    file: fs::File,
}

impl Clock {
    /// Creates a clock that shows the correct time.
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

    /// Sets the clock `seconds` ahead of the correct time, or behind it if negative. Programs see
    /// the change immediately.
    pub(crate) fn step(&self, seconds: i64) {
        self.file.write_all_at(&seconds.to_ne_bytes(), 0).unwrap();
    }

    /// Returns the environment variables for programs that use this clock.
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

    /// Returns how many seconds the clock of a program is ahead of our clock.
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
