//! A clock that can be set while programs run, by libfaketime.

use std::{env, fs, path::PathBuf};

use tempfile::TempDir;

/// The time of day of the programs that were started with its environment. Their monotonic clock is not touched.
#[derive(Debug)]
pub(crate) struct Clock {
    library: PathBuf,
    directory: TempDir,
}

impl Clock {
    /// Returns a clock that is right. `None` if libfaketime is not installed, which is said.
    ///
    /// # Panics
    /// It is not installed, and `CI` is set.
    pub(crate) fn new() -> Option<Self> {
        let found = glob::glob("/usr/lib/*/faketime/libfaketimeMT.so.1").unwrap();
        let Some(library) = found.flatten().next() else {
            let what = "faketime is not installed; scripts/setup does it";
            assert!(env::var_os("CI").is_none(), "{what}");
            eprintln!("skipped: {what}");
            return None;
        };
        let directory = tempfile::tempdir().unwrap();
        let clock = Self { library, directory };
        clock.step(0);
        Some(clock)
    }

    /// Sets the clock so many seconds before, or after, the right time. Programs see it within a second.
    pub(crate) fn step(&self, seconds: i64) {
        let next = self.directory.path().join("next");
        fs::write(&next, format!("{seconds:+}\n")).unwrap();
        fs::rename(next, self.file()).unwrap();
    }

    /// Returns the environment of programs that go by this clock.
    pub(crate) fn environment(&self) -> [(&'static str, String); 4] {
        [
            ("LD_PRELOAD", self.library.display().to_string()),
            ("FAKETIME_TIMESTAMP_FILE", self.file().display().to_string()),
            ("FAKETIME_CACHE_DURATION", "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ]
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("offset")
    }
}
