//! Publications in transit: consecutive frames, grouped by topic into runs.

use std::{collections::VecDeque, ops::Range, sync::Arc};

use linerate_proto::{Header, engine::MessageKind};

/// Memory in bytes that a burst keeps while it is empty.
const KEPT_BYTES_MAX: usize = 512 << 10;

/// Maximum number of bursts that are kept, including those that are still referenced.
const KEPT_MAX: usize = 8;

/// Publications that have not been delivered yet, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Burst {
    bytes: Vec<u8>,
    runs: Vec<PublicationRun>,
}

#[derive(Clone, Debug)]
struct PublicationRun {
    topic: Range<usize>,
    frames: Range<usize>,
    publications: u64,
}

/// Consecutive publications to the same topic.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Publications<'a> {
    /// The name of the topic.
    pub(crate) topic: &'a str,
    /// The range of the frames, which are encoded as a server sends them; see [`Burst::slice`].
    pub(crate) frames: Range<usize>,
    /// The number of publications.
    pub(crate) count: u64,
}

impl Burst {
    /// Adds a message. This is the only place where it is encoded.
    pub(crate) fn push(&mut self, topic: &str, kind: MessageKind, payload: &[u8]) {
        self.extend_stretch(topic);
        let header = Header::new(kind.opcode(), payload.len() as u64, None);
        let mut prefix = [0; Header::BYTES_MAX];
        let prefix_bytes = header.encode(&mut prefix);
        self.bytes.extend_from_slice(&prefix[..prefix_bytes]);
        self.bytes.extend_from_slice(payload);
        self.end_stretch();
    }

    /// Returns the publications.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Publications<'_>> {
        self.runs.iter().map(|run| Publications {
            topic: self.topic(run),
            frames: run.frames.clone(),
            count: run.publications,
        })
    }

    /// Returns a part of the memory that contains the frames.
    pub(crate) fn slice(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[range]
    }

    /// Returns how many bytes of memory a reference to any of the frames keeps allocated.
    pub(crate) const fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Returns how many publications there are.
    pub(crate) fn count(&self) -> u64 {
        self.runs.iter().map(|run| run.publications).sum()
    }

    /// Returns how many bytes of memory are in use.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.bytes.len() + self.runs.len() * size_of::<PublicationRun>()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Removes everything.
    fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES_MAX);
        self.runs.clear();
        self.runs
            .shrink_to(KEPT_BYTES_MAX / size_of::<PublicationRun>());
    }

    fn topic(&self, run: &PublicationRun) -> &str {
        // The bytes were pushed as a `str`; validating them is fast, because names are short.
        std::str::from_utf8(&self.bytes[run.topic.clone()]).unwrap_or_default()
    }

    /// Continues the last run if it is for `topic`, or starts another.
    fn extend_stretch(&mut self, topic: &str) {
        if let Some(last) = self.runs.last_mut()
            && self.bytes[last.topic.clone()] == *topic.as_bytes()
        {
            last.publications += 1;
            return;
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(topic.as_bytes());
        let end = self.bytes.len();
        self.runs.push(PublicationRun {
            topic: start..end,
            frames: end..end,
            publications: 1,
        });
    }

    fn end_stretch(&mut self) {
        if let Some(last) = self.runs.last_mut() {
            last.frames.end = self.bytes.len();
        }
    }
}

/// Returns the publications of all bursts, each with its burst.
pub(crate) fn publications(
    bursts: &[Arc<Burst>],
) -> impl Iterator<Item = (&Arc<Burst>, Publications<'_>)> {
    bursts
        .iter()
        .flat_map(|burst| burst.iter().map(move |publications| (burst, publications)))
}

/// The bursts of a worker that have been delivered. Their memory is reused once no slow subscriber
/// and no other worker refers to them.
#[derive(Debug, Default)]
pub(crate) struct Delivered(VecDeque<Arc<Burst>>);

impl Delivered {
    /// Takes the publications out of `burst`, to be shared and no longer changed.
    pub(crate) fn freeze(&mut self, burst: &mut Burst) -> Arc<Burst> {
        let Some(mut frozen) = self.take_free() else {
            return Arc::new(std::mem::take(burst));
        };
        std::mem::swap(Arc::make_mut(&mut frozen), burst);
        frozen
    }

    /// Keeps a burst until there are no other references to it. If there are too many bursts,
    /// releases the oldest.
    pub(crate) fn give(&mut self, burst: Arc<Burst>) {
        if self.0.len() == KEPT_MAX {
            self.0.pop_front();
        }
        self.0.push_back(burst);
    }

    /// Returns an empty burst without other references.
    fn take_free(&mut self) -> Option<Arc<Burst>> {
        let mut kept = self.0.iter_mut();
        let free = kept.position(|burst| Arc::get_mut(burst).map(Burst::clear).is_some());
        self.0.remove(free?)
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
            .map(|it| (it.topic, burst.slice(it.frames), it.count))
            .collect();
        assert_eq!(seen, expected);
        assert_eq!(burst.count(), 4);
        burst.clear();
        assert!(burst.is_empty());
        assert_eq!(burst.bytes(), size_of::<Burst>());
    }

    #[test]
    fn memory_is_used_again_once_nobody_refers_to_it() {
        let mut delivered = Delivered::default();
        let mut burst = Burst::default();
        let mut deliver = || {
            burst.push("t", MessageKind::Binary, &[7; 100]);
            let frozen = delivered.freeze(&mut burst);
            assert_eq!((frozen.count(), burst.count()), (1, 0));
            delivered.give(frozen.clone());
            frozen
        };
        let slow = deliver();
        let others: Vec<_> = (0..10).map(|_| Arc::as_ptr(&deliver())).collect();
        assert!(!others.contains(&Arc::as_ptr(&slow)));
        // Two buffers alternate, because the first burst had no memory to exchange.
        assert!(others.iter().all(|other| *other == others[0]));
        let many: Vec<_> = (0..3 * KEPT_MAX).map(|_| deliver()).collect();
        drop(many);
        assert_eq!(delivered.0.len(), KEPT_MAX);
    }
}
