//! What is to be published: an argument, all of standard input, or its lines.

use std::{
    io::{self, BufRead, Read},
    thread,
};

use anyhow::{Context, bail};
use bytes::Bytes;
use tokio::sync::mpsc;

/// Bytes of a payload.
const PAYLOAD_BYTES_MAX: usize = 16 << 20;

/// Lines that are read ahead.
const LINES_AHEAD: usize = 1_024;

/// Lines that are published together, if they are there.
const BATCH_LINES_MAX: usize = 256;

/// Bytes of lines that are published together.
const BATCH_BYTES_MAX: usize = 256 << 10;

/// What is to be published, in order.
pub(super) struct Payloads(Source);

enum Source {
    Lines {
        lines: mpsc::Receiver<anyhow::Result<Bytes>>,
        /// Why there will be no more, once what was before it is published.
        error: Option<anyhow::Error>,
    },
    One(Option<Bytes>),
}

impl Payloads {
    /// Takes one payload.
    pub(super) fn one(payload: Bytes) -> Self {
        Self(Source::One(Some(payload)))
    }

    /// Reads all of standard input as one payload.
    pub(super) fn whole_input() -> anyhow::Result<Self> {
        let mut payload = Vec::new();
        let mut input = io::stdin().lock().take(PAYLOAD_BYTES_MAX as u64 + 1);
        input
            .read_to_end(&mut payload)
            .context("can't read standard input")?;
        if payload.len() > PAYLOAD_BYTES_MAX {
            bail!("input is longer than {PAYLOAD_BYTES_MAX} bytes; publish lines with --lines");
        }
        // A payload of no bytes is one; an input of no bytes is none.
        let payload = (!payload.is_empty()).then(|| payload.into());
        Ok(Self(Source::One(payload)))
    }

    /// Starts to read lines. The thread is left behind at the end, because nothing can interrupt a read from a
    /// terminal.
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

    /// Waits for the next payloads: those that are there, at least one.
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

/// Reads a line without its end; `None` at the end of the input. Empty lines are left out.
fn next_line(
    input: &mut impl BufRead,
    number: u64,
    bytes_max: usize,
) -> anyhow::Result<Option<Bytes>> {
    loop {
        let mut line = Vec::new();
        // Room for the longest line and its end, which may be CR LF.
        let limit = bytes_max as u64 + 2;
        let read = (&mut *input).take(limit).read_until(b'\n', &mut line);
        if read.context("can't read standard input")? == 0 {
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
