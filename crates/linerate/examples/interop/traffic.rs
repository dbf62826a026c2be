//! Random messages, and the ways to send them.

use std::{fmt::Write as _, ops::Range};

use linerate::Message;
use linerate_testkit::Rng;

/// The number of bytes at which a batch ends, so that neither side has to wait for the other to
/// read. The last message may be long, because the peer echoes it only after all of it was sent.
const BATCH_BYTES: usize = 32 << 10;

const BATCH_MESSAGES_MAX: usize = 64;

const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// The lengths at which headers become longer, and the shortest and longest ones.
const LENGTHS: [usize; 8] = [0, 1, 125, 126, 127, 65_535, 65_536, MESSAGE_BYTES_MAX];

/// A source of messages; equal seeds give equal messages.
pub(crate) struct Traffic {
    rng: Rng,
    last: Message,
}

/// A message to send.
pub(crate) struct Outgoing {
    pub(crate) message: Message,
    pub(crate) way: Way,
    /// True if the echo is received piece by piece.
    pub(crate) by_pieces: bool,
}

/// How a message is sent.
pub(crate) enum Way {
    Fragments(Vec<Fragment>),
    Uncompressed,
    Whole,
}

/// A part of a message. An empty fragment after the last one ends the message.
pub(crate) struct Fragment {
    pub(crate) range: Range<usize>,
    /// The payload of the Ping before it, if there is one.
    pub(crate) ping: Option<Vec<u8>>,
}

impl Traffic {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            rng: Rng::new(seed),
            last: Message::from(""),
        }
    }

    /// Returns the messages that are sent before any echo is received.
    pub(crate) fn batch(&mut self) -> Vec<Outgoing> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        let messages = 1 + self.rng.below(BATCH_MESSAGES_MAX);
        while batch.len() < messages && bytes < BATCH_BYTES {
            let message = self.message();
            bytes += message.len();
            let (way, by_pieces) = (self.way(message.len()), self.rng.below(4) == 0);
            batch.push(Outgoing {
                message,
                way,
                by_pieces,
            });
        }
        batch
    }

    /// Returns the next message. About half of the messages are compressible, and one in eight
    /// repeats the previous one.
    fn message(&mut self) -> Message {
        let length = self.length();
        self.last = match self.rng.below(8) {
            0 => return self.last.clone(),
            1 | 2 => Message::from(self.rng.bytes(length)),
            3 => Message::from(vec![self.rng.below(256) as u8; length]),
            4 | 5 => Message::from(self.text(length)),
            _ => Message::from(self.json(length)),
        };
        self.last.clone()
    }

    /// Returns a random length. Short ones are more likely: about one in 64 may exceed 1 KiB.
    fn length(&mut self) -> usize {
        if self.rng.below(128) == 0 {
            return *self.rng.pick(&LENGTHS);
        }
        let magnitudes = if self.rng.below(64) == 0 { 21 } else { 11 };
        let length_max = 1 << self.rng.below(magnitudes);
        self.rng.below(length_max + 1)
    }

    /// Returns text with characters of one to four bytes.
    fn text(&mut self, length: usize) -> String {
        let mut text = String::with_capacity(length);
        loop {
            let bound = *self.rng.pick(&[0x80, 0x800, 0x1_0000, 0x11_0000]);
            // Surrogates are not characters.
            let character = char::from_u32(self.rng.below(bound) as u32).unwrap_or('?');
            if text.len() + character.len_utf8() > length {
                break;
            }
            text.push(character);
        }
        fill(text, length)
    }

    /// Returns records like those of a feed; the last one is cut off.
    fn json(&mut self, length: usize) -> String {
        let mut text = String::with_capacity(length + 100);
        while text.len() < length {
            let (id, cents) = (self.rng.below(10_000), self.rng.below(100_000));
            // Writing to a string cannot fail.
            _ = write!(text, r#"{{"id":{id},"symbol":"ABC","cents":{cents}}},"#);
        }
        text.truncate(length);
        text
    }

    fn way(&mut self, length: usize) -> Way {
        match self.rng.below(8) {
            0..=3 => Way::Whole,
            4 => Way::Uncompressed,
            _ => Way::Fragments(self.fragments(length)),
        }
    }

    /// Cuts a message anywhere, even within a character or twice at the same place.
    fn fragments(&mut self, length: usize) -> Vec<Fragment> {
        let mut cuts: Vec<usize> = (0..self.rng.below(6))
            .map(|_| self.rng.below(length + 1))
            .collect();
        cuts.sort_unstable();
        cuts.push(length);
        let mut start = 0;
        let ranges = cuts.into_iter().map(|end| {
            let range = start..end;
            start = end;
            range
        });
        let ranges: Vec<_> = ranges.collect();
        ranges
            .into_iter()
            .map(|range| Fragment {
                range,
                ping: self.ping(),
            })
            .collect()
    }

    /// Returns the payload of a Ping for one in four fragments.
    fn ping(&mut self) -> Option<Vec<u8>> {
        if self.rng.below(4) > 0 {
            return None;
        }
        let bytes = self.rng.below(126);
        Some(self.rng.bytes(bytes))
    }
}

fn fill(mut text: String, length: usize) -> String {
    let missing = length - text.len();
    text.extend(std::iter::repeat_n('x', missing));
    text
}
