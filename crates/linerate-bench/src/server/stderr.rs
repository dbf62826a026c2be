//! The last lines that a server writes to its standard error, for messages about its failure.

use std::collections::VecDeque;
use std::io::Read;
use std::process::ChildStderr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Number of bytes that are kept, and number of lines that are shown.
const BYTES_MAX: usize = 4 << 10;
const LINES_MAX: usize = 3;

/// Reads everything, so that the server never blocks, and keeps the end.
#[derive(Debug)]
pub(super) struct Tail {
    kept: Arc<Mutex<VecDeque<u8>>>,
    reader: Option<thread::JoinHandle<()>>,
}

impl Tail {
    /// Starts to read.
    pub(super) fn of(stderr: Option<ChildStderr>) -> Self {
        let kept = Arc::default();
        let reader = stderr.map(|stderr| {
            let kept = Arc::clone(&kept);
            thread::spawn(move || keep_end(stderr, &kept))
        });
        Self { kept, reader }
    }

    /// Waits until everything has been read, for at most 0.1 seconds. Children of a server that has
    /// exited may hold the pipe open.
    pub(super) fn wait_for_end(&self) {
        for _ in 0..100 {
            if self
                .reader
                .as_ref()
                .is_none_or(|reader| reader.is_finished())
            {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns the last lines that are not blank, joined into one.
    pub(super) fn last_lines(&self) -> String {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        let first = lines.len().saturating_sub(LINES_MAX);
        lines[first..].join(" | ")
    }
}

fn keep_end(mut input: impl Read, kept: &Mutex<VecDeque<u8>>) {
    let mut buffer = [0; 1_024];
    // A read error ends the output as well.
    while let Ok(bytes @ 1..) = input.read(&mut buffer) {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(&buffer[..bytes]);
        let surplus = kept.len().saturating_sub(BYTES_MAX);
        kept.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept() {
        let tail = Tail::of(None);
        let text = "x".repeat(10_000) + "\nfirst\n\nsecond\n  third";
        keep_end(text.as_bytes(), &tail.kept);
        assert_eq!(tail.kept.lock().unwrap().len(), BYTES_MAX);
        assert_eq!(tail.last_lines(), "first | second | third");
    }

    #[test]
    fn silence_is_an_empty_line() {
        assert_eq!(Tail::of(None).last_lines(), "");
    }
}
