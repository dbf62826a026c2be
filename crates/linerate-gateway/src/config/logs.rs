//! `[logs]`: limits for the access logs on the log page.

use std::{path::PathBuf, time::Duration};

use serde::Deserialize;

use super::{check::Check, unit};

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
    /// Maximum memory for the compressed lines of each upload whose client asks to keep them, in
    /// bytes.
    pub rows_bytes_max: usize,
    /// Number of parser threads, shared by all uploads; 0 for one per core.
    pub parse_threads: usize,
    /// Maximum time that a client may be silent before its upload is complete.
    #[serde(rename = "silence_s", with = "unit::seconds")]
    pub silence: Duration,
    /// How long statistics are kept for a client that does not query them.
    #[serde(rename = "idle_s", with = "unit::seconds")]
    pub idle: Duration,
    /// How long an upload is kept after its connection was lost; zero discards it.
    #[serde(rename = "resume_s", with = "unit::seconds")]
    pub resume: Duration,
    /// Files that are read as they grow, for all clients that may upload.
    pub tail: Vec<PathBuf>,
    /// Maximum memory for the statistics and lines of these files, in bytes; at most a quarter of
    /// the memory budget of the process is used.
    pub tails_bytes_max: u64,
    /// The country database for the addresses in logs; without it countries are unknown.
    pub geoip: Option<PathBuf>,
}

impl LogsOptions {
    pub(super) fn check(&self, check: &mut Check) {
        check.range("uploads_max", self.uploads_max, 0..=100_000);
        let per_address_max = self.uploads_per_address_max;
        check.range("uploads_per_address_max", per_address_max, 1..=100_000);
        check.range(
            "memory_bytes_max",
            self.memory_bytes_max,
            64 << 20..=1 << 50,
        );
        check.range("upload_bytes_max", self.upload_bytes_max, 1..=1 << 50);
        check.range("ratio_max", self.ratio_max, 1..=1 << 50);
        check.range("columns_bytes_max", self.columns_bytes_max, 0..=1 << 40);
        check.range("rows_bytes_max", self.rows_bytes_max, 0..=1 << 40);
        check.range("parse_threads", self.parse_threads, 0..=1_024);
        check.range("silence_s", self.silence.as_secs(), 1..=86_400);
        check.range("idle_s", self.idle.as_secs(), 1..=604_800);
        check.range("resume_s", self.resume.as_secs(), 0..=86_400);
        check.range("tail", self.tail.len(), 0..=64);
        check.range("tails_bytes_max", self.tails_bytes_max, 8 << 20..=1 << 50);
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
            rows_bytes_max: 256 << 20,
            parse_threads: 0,
            silence: Duration::from_secs(60),
            idle: Duration::from_secs(600),
            tail: Vec::new(),
            tails_bytes_max: 512 << 20,
            geoip: None,
            resume: Duration::from_secs(8),
        }
    }
}
