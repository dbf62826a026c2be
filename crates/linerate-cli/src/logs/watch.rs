//! `--watch` without the interactive view: prints the statistics whenever their log has grown.

use std::io::{self, Write};
use std::thread;
use std::time::{Duration, Instant};

use super::View;
use super::counter::Counter;
use super::follow::Follower;
use anyhow::Context;

/// How often the files are checked for new data.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Minimum time between two reports.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Keeps reading and printing until all sources have ended. Files never end, only standard input
/// does.
///
/// # Errors
/// Returns an error if a source cannot be read, or if writing fails for a reason other than a
/// closed pipe.
pub(super) fn watch(mut follower: Follower, log: &mut Counter, view: &View) -> anyhow::Result<()> {
    let mut printed: Option<Instant> = None;
    let mut is_changed = true;
    loop {
        let has_grown = follower.poll(log)?;
        is_changed |= has_grown;
        let has_ended = follower.has_ended();
        let is_due = printed.is_none_or(|printed| printed.elapsed() >= REPORT_INTERVAL);
        if is_changed && (is_due || has_ended) {
            if !write(&view.render(log.settled())?)? {
                return Ok(());
            }
            printed = Some(Instant::now());
            is_changed = false;
        }
        if has_ended {
            return Ok(());
        }
        if !has_grown {
            thread::sleep(POLL_INTERVAL);
        }
    }
}

/// Writes the statistics; returns false if the reader has closed the pipe.
fn write(text: &str) -> anyhow::Result<bool> {
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        result => result.map(|()| true).context("cannot write the statistics"),
    }
}
