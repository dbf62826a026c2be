//! What standard input without a prompt asks for: to send first the files, then its lines.

use std::{
    fs::File,
    io::{self, BufRead, Read},
    path::{Path, PathBuf},
    thread,
};

use anyhow::{Context, anyhow, bail};
use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use clap::ValueEnum;
use linerate::Message;
use tokio::sync::mpsc;

use super::action::Action;

/// The longest line that is accepted.
const LINE_BYTES_MAX: usize = 16 << 20;

/// The longest file that is accepted.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Maximum number of messages that are read ahead.
const MESSAGES_AHEAD: usize = 16;

/// How a line of input is interpreted.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Format {
    /// A binary message in Base64, with or without padding.
    Base64,
    /// A binary message in hexadecimal digits, with or without spaces.
    Hex,
    /// A text message.
    Text,
}

/// Starts a thread that reads the input. The thread is never joined, because nothing can
/// interrupt a read from a terminal.
pub(super) fn actions(
    format: Format,
    files: Vec<PathBuf>,
) -> mpsc::Receiver<anyhow::Result<Action>> {
    let (sender, receiver) = mpsc::channel(MESSAGES_AHEAD);
    thread::spawn(move || {
        let mut input = io::stdin().lock();
        let lines = (1..).map_while(|number| {
            let line = next_line(&mut input, number, LINE_BYTES_MAX).transpose()?;
            let decode = |line| {
                let message = format.message(line);
                message.map_err(|error| anyhow!("line {number} of the input is {error}"))
            };
            Some(line.and_then(decode))
        });
        let files = files.iter().map(|file| content(file).map(Message::from));
        for message in files.chain(lines) {
            let is_last = message.is_err();
            let action = message.map(Action::Send);
            if sender.blocking_send(action).is_err() || is_last {
                return;
            }
        }
    });
    receiver
}

impl Format {
    /// Decodes a line into a message.
    ///
    /// # Errors
    /// Returns an error, such as "not valid Base64", if the line does not have this format.
    pub(super) fn message(self, line: Vec<u8>) -> anyhow::Result<Message> {
        match self {
            Self::Base64 => match BASE64.decode(line.trim_ascii()) {
                Ok(bytes) => Ok(bytes.into()),
                Err(_) => bail!("not valid Base64"),
            },
            Self::Hex => match bytes_of_hex(&line) {
                Some(bytes) => Ok(bytes.into()),
                None => bail!("not an even number of hex digits"),
            },
            Self::Text => match String::from_utf8(line) {
                Ok(line) => Ok(line.into()),
                Err(_) => bail!("not valid UTF-8, which text messages require"),
            },
        }
    }
}

/// The standard alphabet, with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

fn bytes_of_hex(line: &[u8]) -> Option<Vec<u8>> {
    let digits = line.iter().filter(|byte| !byte.is_ascii_whitespace());
    let digits: Option<Vec<u8>> = digits
        .map(|digit| char::from(*digit).to_digit(16).map(|digit| digit as u8))
        .collect();
    let digits = digits?;
    let (pairs, []) = digits.as_chunks::<2>() else {
        return None;
    };
    Some(pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

/// Returns the content of a file that is to be sent.
///
/// # Errors
/// Returns an error if the file cannot be read or is longer than 64 MiB.
pub(super) fn content(file: &Path) -> anyhow::Result<Vec<u8>> {
    content_up_to(file, FILE_BYTES_MAX)
}

fn content_up_to(file: &Path, bytes_max: u64) -> anyhow::Result<Vec<u8>> {
    let name = file.display();
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|file| file.take(bytes_max + 1).read_to_end(&mut bytes));
    read.with_context(|| format!("cannot read {name}"))?;
    if bytes.len() as u64 > bytes_max {
        bail!("{name} is longer than {bytes_max} bytes");
    }
    Ok(bytes)
}

/// Reads a line and strips its line ending. Returns `None` at the end of the input.
fn next_line(
    input: &mut impl BufRead,
    number: u64,
    bytes_max: usize,
) -> anyhow::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    // Enough for the longest line and its line ending, which may be CR LF.
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
    Ok(Some(line))
}

#[cfg(test)]
mod tests {
    use super::{Format, content_up_to, next_line};

    #[test]
    fn lines_lose_their_ends_and_nothing_else() {
        let mut input = &b"one\r\n\n two \nthree"[..];
        for expected in ["one", "", " two ", "three"] {
            assert_eq!(
                next_line(&mut input, 1, 5).unwrap().as_deref(),
                Some(expected.as_bytes())
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
                Some(&b"12345"[..])
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
    fn lines_are_what_their_format_says() {
        let message = |format: Format, line: &[u8]| format.message(line.to_vec());
        assert_eq!(message(Format::Text, b"de ad").unwrap(), "de ad".into());
        let bytes = vec![0xDE, 0xAD];
        for line in [&b"de ad"[..], b"DEAD", b" d e a d\t"] {
            assert_eq!(message(Format::Hex, line).unwrap(), bytes.clone().into());
        }
        for line in [&b"3q0="[..], b"3q0", b" 3q0= "] {
            assert_eq!(message(Format::Base64, line).unwrap(), bytes.clone().into());
        }
        for format in [Format::Hex, Format::Base64] {
            assert!(message(format, b"").unwrap().is_empty());
        }
        for (format, line, expected) in [
            (
                Format::Text,
                &b"a\xff"[..],
                "not valid UTF-8, which text messages require",
            ),
            (Format::Hex, b"dea", "not an even number of hex digits"),
            (Format::Hex, b"xy", "not an even number of hex digits"),
            (Format::Base64, b"!", "not valid Base64"),
        ] {
            assert_eq!(message(format, line).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn a_file_of_the_greatest_length_is_taken_and_one_byte_more_is_not() {
        let directory = tempfile::TempDir::new().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, b"12345").unwrap();
        assert_eq!(content_up_to(&file, 5).unwrap(), b"12345");
        let error = content_up_to(&file, 4).unwrap_err().to_string();
        assert!(error.ends_with("file is longer than 4 bytes"), "{error}");
        assert!(content_up_to(&directory.path().join("none"), 5).is_err());
    }
}
