//! The payloads to publish: an argument, all of standard input, or its lines.

use std::{
    io::{self, BufRead, Read},
    thread,
};

use anyhow::{Context, bail};
use bytes::Bytes;
use tokio::sync::mpsc;

/// Maximum size of a payload.
const PAYLOAD_BYTES_MAX: usize = 16 << 20;

/// Maximum number of lines that are read ahead.
const LINES_AHEAD: usize = 1_024;

/// Maximum number of lines in a batch. A batch contains only lines that are already available.
const BATCH_LINES_MAX: usize = 256;

/// A batch that has reached this size gets no further lines.
const BATCH_BYTES_MAX: usize = 256 << 10;

/// The payloads to publish, in order.
pub(super) struct Payloads(Source);

enum Source {
    Lines {
        lines: mpsc::Receiver<anyhow::Result<Bytes>>,
        /// The error that ended the input. It is reported after the lines before it are published.
        error: Option<anyhow::Error>,
    },
    One(Option<Bytes>),
}

impl Payloads {
    /// Creates the input from a single payload.
    pub(super) fn one(payload: Bytes) -> Self {
        Self(Source::One(Some(payload)))
    }

    /// Reads all of standard input as one payload.
    pub(super) fn whole_input() -> anyhow::Result<Self> {
        let mut payload = Vec::new();
        let mut input = io::stdin().lock().take(PAYLOAD_BYTES_MAX as u64 + 1);
        input
            .read_to_end(&mut payload)
            .context("cannot read standard input")?;
        if payload.len() > PAYLOAD_BYTES_MAX {
            bail!(
                "input is longer than {PAYLOAD_BYTES_MAX} bytes; use --lines to publish each line separately"
            );
        }
        // An empty argument is a valid payload, but an empty input means that there is nothing to
        // publish.
        let payload = (!payload.is_empty()).then(|| payload.into());
        Ok(Self(Source::One(payload)))
    }

    /// Starts a thread that reads lines. The thread is never joined, because nothing can interrupt
    /// a read from a terminal.
    pub(super) fn lines() -> Self {
        let (sender, lines) = mpsc::channel(LINES_AHEAD);
        thread::spawn(move || {
            let mut input = io::stdin().lock();
            for number in 1.. {
                let line = next_line(&mut input, number, PAYLOAD_BYTES_MAX).transpose();
                let Some(line) = line else { return };
                let is_last = line.is_err();
                if sender.blocking_send(line).is_err() || is_last {
                    return;
                }
            }
        });
        let error = None;
        Self(Source::Lines { lines, error })
    }

    /// Waits for at least one payload; returns it with those that are already available.
    pub(super) async fn next(&mut self) -> Option<anyhow::Result<Vec<Bytes>>> {
        match &mut self.0 {
            Source::One(payload) => payload.take().map(|payload| Ok(vec![payload])),
            Source::Lines { lines, error } => {
                if let Some(error) = error.take() {
                    return Some(Err(error));
                }
                match lines.recv().await? {
                    Ok(first) => Some(Ok(gather(first, lines, error))),
                    Err(error) => Some(Err(error)),
                }
            }
        }
    }
}

fn gather(
    first: Bytes,
    lines: &mut mpsc::Receiver<anyhow::Result<Bytes>>,
    error: &mut Option<anyhow::Error>,
) -> Vec<Bytes> {
    let mut bytes = first.len();
    let mut batch = vec![first];
    while batch.len() < BATCH_LINES_MAX && bytes < BATCH_BYTES_MAX {
        match lines.try_recv() {
            Ok(Ok(line)) => {
                bytes += line.len();
                batch.push(line);
            }
            Ok(Err(later)) => {
                *error = Some(later);
                break;
            }
            Err(_) => break,
        }
    }
    batch
}

/// Reads the next line that is not empty and strips its line ending. Returns `None` at the end of
/// the input.
fn next_line(
    input: &mut impl BufRead,
    number: u64,
    bytes_max: usize,
) -> anyhow::Result<Option<Bytes>> {
    loop {
        let mut line = Vec::new();
        // Enough for the longest line and its line ending, which may be CR LF.
        let limit = bytes_max as u64 + 2;
        let read = (&mut *input).take(limit).read_until(b'\n', &mut line);
        if read.context("cannot read standard input")? == 0 {
            return Ok(None);
        }
        if line.pop_if(|last| *last == b'\n').is_some() {
            line.pop_if(|last| *last == b'\r');
        }
        if line.len() > bytes_max {
            bail!("line {number} of the input is longer than {bytes_max} bytes");
        }
        if !line.is_empty() {
            return Ok(Some(line.into()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::next_line;

    #[test]
    fn lines_lose_their_ends_and_empty_ones_are_left_out() {
        let mut input = &b"a\r\n\n\nb\nc"[..];
        for expected in ["a", "b", "c"] {
            let line = next_line(&mut input, 1, 10).unwrap();
            assert_eq!(line.as_deref(), Some(expected.as_bytes()));
        }
        assert_eq!(next_line(&mut input, 1, 10).unwrap(), None);
    }

    #[test]
    fn lines_are_bounded() {
        assert!(next_line(&mut &b"0123456789\r\n"[..], 1, 10).is_ok());
        let error = next_line(&mut &b"0123456789a\n"[..], 7, 10).unwrap_err();
        assert!(error.to_string().contains("line 7"), "{error}");
        assert!(error.to_string().contains("10 bytes"), "{error}");
    }
}
