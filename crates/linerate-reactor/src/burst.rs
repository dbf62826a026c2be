//! Publications on their way: frames in a row, each stretch with the topic that it goes to.

use std::ops::Range;

use linerate_proto::{Header, engine::MessageKind};

/// Publications that were made and not delivered yet, in order.
#[derive(Debug, Default)]
pub(crate) struct Burst {
    bytes: Vec<u8>,
    stretches: Vec<Stretch>,
}

#[derive(Clone, Debug)]
struct Stretch {
    topic: Range<usize>,
    frames: Range<usize>,
    publications: u64,
}

/// Publications in a row that go to the same topic.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Publications<'a> {
    /// The name of the topic.
    pub(crate) topic: &'a str,
    /// Frames as a server sends them.
    pub(crate) frames: &'a [u8],
    /// How many.
    pub(crate) count: u64,
}

impl Burst {
    /// Adds a message, which is encoded here and nowhere else.
    pub(crate) fn push(&mut self, topic: &str, kind: MessageKind, payload: &[u8]) {
        self.extend_stretch(topic, 1);
        let header = Header::new(kind.opcode(), payload.len() as u64, None);
        let mut prefix = [0; Header::BYTES_MAX];
        let prefix_bytes = header.encode(&mut prefix);
        self.bytes.extend_from_slice(&prefix[..prefix_bytes]);
        self.bytes.extend_from_slice(payload);
        self.end_stretch();
    }

    /// Adds publications that were encoded elsewhere.
    pub(crate) fn push_encoded(&mut self, publications: Publications<'_>) {
        self.extend_stretch(publications.topic, publications.count);
        self.bytes.extend_from_slice(publications.frames);
        self.end_stretch();
    }

    /// Returns the publications.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Publications<'_>> {
        self.stretches.iter().map(|stretch| Publications {
            topic: self.topic(stretch),
            frames: &self.bytes[stretch.frames.clone()],
            count: stretch.publications,
        })
    }

    /// Returns how many stretches there are.
    pub(crate) fn stretches(&self) -> usize {
        self.stretches.len()
    }

    /// Returns the memory that is in use, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len() + self.stretches.len() * size_of::<Stretch>()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    /// Forgets all; the memory is kept up to `bytes_max`.
    pub(crate) fn clear(&mut self, bytes_max: usize) {
        self.bytes.clear();
        self.bytes.shrink_to(bytes_max);
        self.stretches.clear();
        self.stretches.shrink_to(bytes_max / size_of::<Stretch>());
    }

    fn topic(&self, stretch: &Stretch) -> &str {
        // What was pushed is a `str`; the conversion is short, as names are.
        std::str::from_utf8(&self.bytes[stretch.topic.clone()]).unwrap_or_default()
    }

    /// Goes on with the last stretch if it is for `topic`, or starts another.
    fn extend_stretch(&mut self, topic: &str, publications: u64) {
        if let Some(last) = self.stretches.last_mut()
            && self.bytes[last.topic.clone()] == *topic.as_bytes()
        {
            last.publications += publications;
            return;
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(topic.as_bytes());
        let end = self.bytes.len();
        self.stretches.push(Stretch {
            topic: start..end,
            frames: end..end,
            publications,
        });
    }

    fn end_stretch(&mut self) {
        if let Some(last) = self.stretches.last_mut() {
            last.frames.end = self.bytes.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn publications_in_a_row_share_a_stretch() {
        let mut burst = Burst::default();
        burst.push("a", MessageKind::Text, b"1");
        burst.push("a", MessageKind::Binary, b"22");
        burst.push("b", MessageKind::Text, b"");
        burst.push("a", MessageKind::Text, b"4");
        let expected: [(&str, &[u8], u64); 3] = [
            ("a", b"\x81\x011\x82\x0222", 2),
            ("b", b"\x81\x00", 1),
            ("a", b"\x81\x014", 1),
        ];
        let seen: Vec<_> = burst
            .iter()
            .map(|it| (it.topic, it.frames, it.count))
            .collect();
        assert_eq!(seen, expected);

        let mut copy = Burst::default();
        burst
            .iter()
            .for_each(|publications| copy.push_encoded(publications));
        assert!(burst.iter().eq(copy.iter()));
        copy.clear(0);
        assert!(copy.is_empty());
        assert_eq!(copy.bytes(), 0);
    }
}
