//! `[logs]`: the access logs that the log page reads.

use std::{path::PathBuf, time::Duration};

use serde::Deserialize;

use super::{check::Check, unit};

/// What uploads of access logs may take.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct LogsOptions {
    /// Uploads at a time, those included whose connection was lost and those whose figures are looked at; 0 for none.
    pub uploads_max: usize,
    /// Uploads at a time from one address. This machine has no bound, as proxies are on it.
    pub uploads_per_address_max: usize,
    /// Bytes of memory that all uploads may take up together.
    pub memory_bytes_max: u64,
    /// Bytes of one upload.
    pub upload_bytes_max: u64,
    /// How many times its size a file may have once it is decompressed.
    pub ratio_max: u64,
    /// Bytes of each upload from which questions about a part of the requests are answered.
    pub columns_bytes_max: usize,
    /// Bytes of lines that are kept of each upload whose client asks for that, compressed.
    pub rows_bytes_max: usize,
    /// Threads that parse, shared by all uploads; 0 for one each core.
    pub parse_threads: usize,
    /// How long a client may say nothing before it has sent everything.
    #[serde(rename = "silence_s", with = "unit::seconds")]
    pub silence: Duration,
    /// How long figures are kept for a client that asks nothing of them.
    #[serde(rename = "idle_s", with = "unit::seconds")]
    pub idle: Duration,
    /// How long an upload is kept after its connection was lost; zero for not at all.
    #[serde(rename = "resume_s", with = "unit::seconds")]
    pub resume: Duration,
    /// Files that are read as they grow, for all clients that may upload.
    pub tail: Vec<PathBuf>,
    /// Bytes of memory that the figures and lines of these files may take up together; a quarter of the process's budget at
    /// most.
    pub tails_bytes_max: u64,
    /// The database of countries that addresses are looked up in; `None`, so there are no countries.
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
