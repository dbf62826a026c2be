//! `[logs]` in a configuration: limits for the access logs on the log page.

use std::{ops::RangeInclusive, path::PathBuf, time::Duration};

use linerate_logview::spill::SpillSpace;
use serde::{Deserialize, Deserializer};

/// The section with every key, its default and its meaning.
pub const DEFAULT_TOML: &str = include_str!("default.toml");

/// Limits on uploads of access logs.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct LogsOptions {
    /// Maximum number of uploads at a time, including those whose connection was lost and those
    /// whose statistics are still viewed; 0 disables uploads.
    pub uploads_max: usize,
    /// Maximum number of uploads at a time from one address. This machine is not limited, because
    /// proxies run on it.
    pub uploads_per_address_max: usize,
    /// Maximum memory for all uploads together, in bytes.
    pub memory_bytes_max: u64,
    /// Maximum size of one upload, in bytes.
    pub upload_bytes_max: u64,
    /// Maximum decompressed size of a file as a multiple of its compressed size.
    pub ratio_max: u64,
    /// Maximum memory for each upload to answer queries about a subset of its requests, in bytes.
    pub columns_bytes_max: usize,
    /// Maximum disk space for the requests of all uploads that do not fit into memory, in bytes; 0
    /// stores nothing on disk.
    pub spill_bytes_max: u64,
    /// The directory for these temporary files; by default `$TMPDIR`, or else `/var/tmp`.
    pub spill_directory: Option<PathBuf>,
    /// Maximum memory for the compressed lines of each upload whose client asks to keep them, in
    /// bytes.
    pub rows_bytes_max: usize,
    /// Number of parser threads, shared by all uploads; 0 for one per core.
    pub parse_threads: usize,
    /// Maximum time that a client may be silent before its upload is complete.
    #[serde(rename = "silence_s", deserialize_with = "seconds")]
    pub silence: Duration,
    /// How long statistics are kept for a client that does not query them.
    #[serde(rename = "idle_s", deserialize_with = "seconds")]
    pub idle: Duration,
    /// How long an upload is kept after the last page that shows it was closed, or after its
    /// connection was lost; zero discards it.
    #[serde(rename = "resume_s", deserialize_with = "seconds")]
    pub resume: Duration,
    /// Maximum number of clients that view one upload at a time, in addition to the one that
    /// uploads.
    pub viewers_max: usize,
    /// Files that are read as they grow, for all clients that may upload.
    pub tail: Vec<PathBuf>,
    /// Maximum memory for the statistics and lines of these files, in bytes; at most a quarter of
    /// the memory budget of the process is used.
    pub tails_bytes_max: u64,
    /// The country database for the addresses in logs; without it countries are unknown.
    pub geoip: Option<PathBuf>,
    /// The database of the autonomous systems of addresses; without it requests cannot be counted
    /// by them.
    pub asn: Option<PathBuf>,
}

impl LogsOptions {
    /// Returns the keys whose values have a range, with their values.
    pub fn ranges(&self) -> Vec<(&'static str, u64, RangeInclusive<u64>)> {
        let count = |count: usize| count as u64;
        vec![
            ("uploads_max", count(self.uploads_max), 0..=100_000),
            (
                "uploads_per_address_max",
                count(self.uploads_per_address_max),
                1..=100_000,
            ),
            (
                "memory_bytes_max",
                self.memory_bytes_max,
                64 << 20..=1 << 50,
            ),
            ("upload_bytes_max", self.upload_bytes_max, 1..=1 << 50),
            ("ratio_max", self.ratio_max, 1..=1 << 50),
            (
                "columns_bytes_max",
                count(self.columns_bytes_max),
                0..=1 << 40,
            ),
            ("spill_bytes_max", self.spill_bytes_max, 0..=1 << 50),
            ("rows_bytes_max", count(self.rows_bytes_max), 0..=1 << 40),
            ("parse_threads", count(self.parse_threads), 0..=1_024),
            ("silence_s", self.silence.as_secs(), 1..=86_400),
            ("idle_s", self.idle.as_secs(), 1..=604_800),
            ("resume_s", self.resume.as_secs(), 0..=86_400),
            ("viewers_max", count(self.viewers_max), 1..=100_000),
            ("tail", count(self.tail.len()), 0..=64),
            ("tails_bytes_max", self.tails_bytes_max, 8 << 20..=1 << 50),
        ]
    }

    /// Returns the disk space for the requests of uploads, or `None` if nothing may be stored
    /// there.
    pub fn spill_space(&self) -> Option<SpillSpace> {
        let directory = self.spill_directory.clone();
        let directory = directory.unwrap_or_else(SpillSpace::default_directory);
        let bytes_max = self.spill_bytes_max;
        let space = SpillSpace::new(directory, bytes_max, "logs.spill_bytes_max");
        (bytes_max > 0).then(|| space.with_fair_shares())
    }

    /// Returns the maximum bytes that all followed logs may use together, in a process that may use
    /// `process_bytes_max`.
    pub fn tails_budget_bytes(&self, process_bytes_max: u64) -> u64 {
        self.tails_bytes_max.min(process_bytes_max / 4)
    }
}

impl Default for LogsOptions {
    fn default() -> Self {
        Self {
            uploads_max: 64,
            uploads_per_address_max: 8,
            memory_bytes_max: 1 << 30,
            upload_bytes_max: 64 << 30,
            ratio_max: 2_000,
            columns_bytes_max: 40 << 20,
            spill_bytes_max: 8 << 30,
            spill_directory: None,
            rows_bytes_max: 256 << 20,
            parse_threads: 0,
            silence: Duration::from_secs(60),
            idle: Duration::from_secs(600),
            tail: Vec::new(),
            tails_bytes_max: 512 << 20,
            geoip: None,
            asn: None,
            resume: Duration::from_secs(600),
            viewers_max: 32,
        }
    }
}

fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::{DEFAULT_TOML, LogsOptions};

    #[derive(Deserialize)]
    struct File {
        logs: LogsOptions,
    }

    #[test]
    fn documented_defaults_are_the_defaults_and_in_their_ranges() {
        let File { logs } = toml::from_str(DEFAULT_TOML).unwrap();
        assert_eq!(logs, LogsOptions::default());
        for (key, value, allowed) in logs.ranges() {
            assert!(allowed.contains(&value), "{key}");
            assert!(DEFAULT_TOML.contains(&format!("\n{key} = ")), "{key}");
        }
    }

    #[test]
    fn every_key_is_documented() {
        let error = toml::from_str::<LogsOptions>("unknown = 1").err().unwrap();
        let known: Vec<&str> = error.message().split('`').skip(3).step_by(2).collect();
        assert!(known.len() > 10, "{error}");
        for key in known {
            let is_key = |line: &str| {
                line.trim_start_matches('#')
                    .starts_with(&format!("{key} = "))
            };
            assert!(DEFAULT_TOML.lines().any(is_key), "{key}");
        }
    }
}
