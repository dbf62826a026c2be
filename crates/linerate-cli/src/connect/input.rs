//! The lines of standard input.

use std::{
    io::{self, BufRead, Read},
    thread,
};

use anyhow::bail;
use tokio::sync::mpsc;

/// The longest line: no larger a message is sent.
const LINE_BYTES_MAX: usize = 16 << 20;

/// How many lines are read ahead.
const LINES_AHEAD: usize = 16;

/// Starts to read lines. The thread is left behind at the end, because nothing can interrupt a
/// read from a terminal.
pub(super) fn lines() -> mpsc::Receiver<anyhow::Result<String>> {
    let (sender, receiver) = mpsc::channel(LINES_AHEAD);
    thread::spawn(move || {
        let mut input = io::stdin().lock();
        for number in 1.. {
            let line = next_line(&mut input, number, LINE_BYTES_MAX).transpose();
            let Some(line) = line else { return };
            let is_last = line.is_err();
            if sender.blocking_send(line).is_err() || is_last {
                return;
            }
        }
    });
    receiver
}

/// Reads a line without its end; `None` at the end of the input.
fn next_line(
    input: &mut impl BufRead,
    number: u64,
    bytes_max: usize,
) -> anyhow::Result<Option<String>> {
    let mut line = Vec::new();
    // Room for the longest line and its end, which may be CR LF.
    input
        .take(bytes_max as u64 + 2)
        .read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.pop_if(|last| *last == b'\n').is_some() {
        line.pop_if(|last| *last == b'\r');
    }
    if line.len() > bytes_max {
        bail!("line {number} of the input is longer than {bytes_max} bytes");
    }
    match String::from_utf8(line) {
        Ok(line) => Ok(Some(line)),
        Err(_) => bail!("line {number} of the input is not UTF-8, as text messages are"),
    }
}

#[cfg(test)]
mod tests {
    use super::next_line;

    #[test]
    fn lines_lose_their_ends_and_nothing_else() {
        let mut input = &b"one\r\n\n two \nthree"[..];
        for expected in ["one", "", " two ", "three"] {
            assert_eq!(
                next_line(&mut input, 1, 5).unwrap().as_deref(),
                Some(expected)
            );
        }
        assert_eq!(next_line(&mut input, 1, 5).unwrap(), None);
    }

    #[test]
    fn a_line_of_the_greatest_length_is_taken_and_one_byte_more_is_not() {
        for end in ["", "\n", "\r\n"] {
            let line = format!("12345{end}");
            assert_eq!(
                next_line(&mut line.as_bytes(), 1, 5).unwrap().as_deref(),
                Some("12345")
            );
            let line = format!("123456{end}");
            let error = next_line(&mut line.as_bytes(), 7, 5).unwrap_err();
            assert_eq!(
                error.to_string(),
                "line 7 of the input is longer than 5 bytes"
            );
        }
    }

    #[test]
    fn what_is_not_utf8_is_an_error() {
        let error = next_line(&mut &b"a\xff\n"[..], 3, 5).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("line 3 of the input is not UTF-8")
        );
    }
}
