//! The published messages: JSON of three sizes that contains its number and the time at which it
//! was due.

use std::fmt::Write;
use std::sync::LazyLock;
use std::time::Duration;

use memchr::memmem::Finder;

use super::CHANNEL;

/// The sizes in bytes, and the percentage of messages that have each.
pub const SIZES: [(usize, u32); 3] = [(250, 84), (3_000, 15), (30_000, 1)];

/// The name of the field with the numbers. It is the same in all protocols that carry the payload
/// or equivalent JSON.
const MARK: &[u8] = b"story";
/// Finds the name. Searches for a few bytes at a time cost less than preparing them.
static MARKS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(MARK));
/// Finds the name of the last field of a message.
static ENDS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("end"));
/// What follows the name of a field: in JSON, and in JSON that is a string in other JSON.
const FIELD_ENDS: [&[u8]; 2] = [b"\":", b"\\\":"];

/// The data that identifies a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MessageHeader {
    /// Number of its trial.
    pub trial: u32,
    /// Number of its source.
    pub source: u32,
    /// Number of the message among those of its trial and source, counted from 0.
    pub number: u64,
    /// When it was due, counted from the start of the benchmark.
    pub due: Duration,
}

impl MessageHeader {
    /// Writes a message of `bytes` bytes that carries the header into `out`, replacing its content.
    pub fn write(&self, bytes: usize, out: &mut String) {
        out.clear();
        // Writing to a string cannot fail.
        _ = write!(
            out,
            "{{\"story\":[{},{},{},{}],\"source\":\"{}\",\"level\":\"info\",\"text\":\"",
            self.trial,
            self.source,
            self.number,
            self.due.as_micros(),
            source_name(self.source),
        );
        let end = format!("\",\"end\":{}}}", self.number);
        let mut text_bytes = bytes.saturating_sub(out.len() + end.len());
        while text_bytes > 0 {
            let part = &TEXT[..text_bytes.min(TEXT.len())];
            out.push_str(part);
            text_bytes -= part.len();
        }
        out.push_str(&end);
    }
}

/// Returns the value of the field `source` in the messages of a source.
pub fn source_name(source: u32) -> String {
    format!("s{source:02}")
}

/// Returns the channel of a source, in protocols without filters.
pub fn channel_of(source: &str) -> String {
    format!("{CHANNEL}-{source}")
}

/// Returns the channel that is a Socket.IO room in the namespace of a source.
pub fn room_of(source: &str) -> String {
    format!("/{source}:{CHANNEL}")
}

const TEXT: &str = "the quick brown fox jumps over the lazy dog and runs ";

/// Returns the size of a message in bytes. `turn` numbers all messages of a trial. Sizes are spread
/// over the sources and over time, in the same way in each run.
pub fn size(turn: u64) -> usize {
    let mut draw = (turn.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33) as u32 % 100;
    for (bytes, share) in SIZES {
        match draw.checked_sub(share) {
            Some(rest) => draw = rest,
            None => return bytes,
        }
    }
    SIZES[0].0
}

/// Finds the headers of all messages in `bytes`, whatever surrounds them.
///
/// Yields `None` for a message whose numbers are cut off or do not agree with its end.
pub fn headers(bytes: &[u8]) -> impl Iterator<Item = Option<MessageHeader>> + '_ {
    let starts = MARKS.find_iter(bytes);
    let fields = starts.filter_map(|start| after_name(&bytes[start + MARK.len()..]));
    fields
        .filter_map(|value| value.strip_prefix(b"["))
        .map(read)
}

/// Removes what follows the name of a field.
fn after_name(bytes: &[u8]) -> Option<&[u8]> {
    FIELD_ENDS.iter().find_map(|end| bytes.strip_prefix(*end))
}

fn read(mut bytes: &[u8]) -> Option<MessageHeader> {
    let trial = number(&mut bytes, b',')?;
    let source = number(&mut bytes, b',')?;
    let number_ = number(&mut bytes, b',')?;
    let due = number(&mut bytes, b']')?;
    // The text does not contain this word, so the next one belongs to this message.
    let end = ENDS.find(bytes)?;
    let mut behind = after_name(bytes.get(end + 3..)?)?;
    (number(&mut behind, b'}')? == number_).then_some(MessageHeader {
        trial: u32::try_from(trial).ok()?,
        source: u32::try_from(source).ok()?,
        number: number_,
        due: Duration::from_micros(due),
    })
}

/// Parses digits and removes them, together with the byte `end` after them.
fn number(bytes: &mut &[u8], end: u8) -> Option<u64> {
    let mut value = 0_u64;
    for (at, &byte) in bytes.iter().enumerate() {
        if byte == end && at > 0 {
            *bytes = &bytes[at + 1..];
            return Some(value);
        }
        let digit = byte.checked_sub(b'0').filter(|&digit| digit < 10)?;
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: MessageHeader = MessageHeader {
        trial: 3,
        source: 7,
        number: 42,
        due: Duration::from_micros(1_234_567),
    };

    #[test]
    fn a_message_is_json_of_its_size_and_carries_its_stamp() {
        let mut text = String::new();
        for turn in 0..1_000 {
            HEADER.write(size(turn), &mut text);
            assert_eq!(text.len(), size(turn));
        }
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["source"], "s07");
        assert_eq!(headers(text.as_bytes()).collect::<Vec<_>>(), [Some(HEADER)]);
    }

    #[test]
    fn stamps_are_found_in_whatever_stands_around_them() {
        let mut text = String::new();
        HEADER.write(SIZES[0].0, &mut text);
        let string = serde_json::to_string(&text).unwrap();
        let frame = format!("42[\"story\",{text}]\0\x01{text}{{\"data\":{string}}}");
        assert_eq!(
            headers(frame.as_bytes()).collect::<Vec<_>>(),
            [Some(HEADER); 3]
        );
    }

    #[test]
    fn a_message_that_is_cut_or_mixed_with_another_has_no_stamp() {
        let mut text = String::new();
        HEADER.write(SIZES[0].0, &mut text);
        for end in 9..text.len() {
            assert!(
                headers(&text.as_bytes()[..end]).all(|header| header.is_none()),
                "{end}"
            );
        }
        let mixed = text.replace("\"end\":42", "\"end\":43");
        assert_eq!(headers(mixed.as_bytes()).collect::<Vec<_>>(), [None]);
    }

    #[test]
    fn sizes_have_the_shares_that_they_should_have() {
        let turns = 100_000;
        for (bytes, share) in SIZES {
            let found =
                (0..turns).filter(|&turn| size(turn) == bytes).count() as f64 / turns as f64;
            assert!(
                (found - f64::from(share) / 100.0).abs() < 0.01,
                "{bytes}: {found}"
            );
        }
        let total: usize = SIZES
            .iter()
            .map(|&(bytes, share)| bytes * share as usize)
            .sum();
        assert_eq!(total, 96_000);
    }
}
