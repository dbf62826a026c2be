//! The newest publications of a channel, kept for subscribers that have not taken them yet.

use std::{collections::VecDeque, time::Instant};

use crate::{ChannelOptions, Publication};

/// Overhead in bytes that is counted for each publication in addition to its payload: the
/// structure, its entry, and the allocator's overhead.
pub(crate) const OVERHEAD_BYTES: usize = 512;

/// Publications by their numbers, which start at 0 and are consecutive.
#[derive(Debug)]
pub(crate) struct Ring {
    options: ChannelOptions,
    publications: VecDeque<Publication>,
    entries: VecDeque<RingEntry>,
    /// The number of the oldest publication.
    base: u64,
    /// The size in bytes of all publications that were ever added.
    bytes: u64,
    /// The highest number of publications since the capacity was last checked.
    peak: usize,
}

#[derive(Clone, Copy, Debug)]
struct RingEntry {
    published: Instant,
    /// The size in bytes of all earlier publications.
    bytes_before: u64,
}

impl Ring {
    pub(crate) fn new(options: ChannelOptions) -> Self {
        Self {
            options,
            publications: VecDeque::new(),
            entries: VecDeque::new(),
            base: 0,
            bytes: 0,
            peak: 0,
        }
    }

    /// Adds the newest publication, which arrived at `published`.
    pub(crate) fn push(&mut self, published: Instant, publication: Publication) {
        self.entries.push_back(RingEntry {
            published,
            bytes_before: self.bytes,
        });
        self.bytes += weight(&publication) as u64;
        self.publications.push_back(publication);
        self.peak = self.peak.max(self.publications.len());
    }

    /// Removes and returns the oldest publication if the ring exceeds its limits.
    pub(crate) fn evict(&mut self) -> Option<(u64, Publication)> {
        let count = self.publications.len();
        let is_over = count > self.options.ring_messages_max
            || self.held_bytes() > self.options.ring_bytes_max as u64;
        if !is_over || count <= 1 {
            return None;
        }
        self.pop()
    }

    /// Removes and returns the oldest publication if its number is below `number`.
    pub(crate) fn pop_before(&mut self, number: u64) -> Option<(u64, Publication)> {
        let is_before = self.base < number;
        is_before.then(|| self.pop()).flatten()
    }

    /// Releases unneeded memory if the ring is empty; returns whether any was released.
    pub(crate) fn shrink(&mut self) -> bool {
        if !self.publications.is_empty() {
            return false;
        }
        let needed = 2 * std::mem::take(&mut self.peak).max(8);
        let is_large = self.publications.capacity() > 2 * needed;
        if is_large {
            self.publications.shrink_to(needed);
            self.entries.shrink_to(needed);
        }
        is_large
    }

    pub(crate) fn options(&self) -> ChannelOptions {
        self.options
    }

    /// Returns the number of the oldest publication.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// Returns the number of the next publication.
    pub(crate) fn head(&self) -> u64 {
        self.base + self.publications.len() as u64
    }

    pub(crate) fn at(&self, number: u64) -> Option<&Publication> {
        self.publications.get(self.place(number)?)
    }

    /// Returns when a publication arrived.
    pub(crate) fn published(&self, number: u64) -> Option<Instant> {
        let entry = self.entries.get(self.place(number)?);
        entry.map(|entry| entry.published)
    }

    /// Returns the publications from `from` up to `to` if they are contiguous in memory.
    pub(crate) fn slice(&self, from: u64, to: u64) -> Option<&[Publication]> {
        let (from, to) = (self.place(from)?, self.place(to)?);
        let (front, back) = self.publications.as_slices();
        if to <= front.len() {
            return front.get(from..to);
        }
        back.get(from.checked_sub(front.len())?..to - front.len())
    }

    /// Returns the size in bytes of all publications before `number`, including those no longer
    /// held.
    pub(crate) fn bytes_before(&self, number: u64) -> u64 {
        let entry = self.place(number).and_then(|place| self.entries.get(place));
        entry.map_or(self.bytes, |entry| entry.bytes_before)
    }

    /// Returns the largest number up to which the publications from `from` on have at most
    /// `bytes_max` bytes. The range always contains at least one publication.
    pub(crate) fn fit(&self, from: u64, to: u64, bytes_max: usize) -> u64 {
        let bytes_end = self.bytes_before(from) + bytes_max as u64;
        let (mut low, mut high) = (from + 1, to);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if self.bytes_before(middle) <= bytes_end {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        low.min(to)
    }

    pub(crate) fn len(&self) -> usize {
        self.publications.len()
    }

    /// Returns the size in bytes of the publications held, including the overhead, as it is
    /// limited.
    pub(crate) fn held_bytes(&self) -> u64 {
        let overhead = self.publications.len() * OVERHEAD_BYTES;
        self.bytes - self.bytes_before(self.base) + overhead as u64
    }

    /// Returns whether the publications since `number` take up at least half of what the ring may
    /// hold.
    pub(crate) fn is_half_full(&self, number: u64) -> bool {
        let messages = self.head() - number.max(self.base);
        let bytes = self.bytes - self.bytes_before(number) + messages * OVERHEAD_BYTES as u64;
        2 * messages >= self.options.ring_messages_max as u64
            || 2 * bytes >= self.options.ring_bytes_max as u64
    }

    fn place(&self, number: u64) -> Option<usize> {
        number.checked_sub(self.base).map(|place| place as usize)
    }

    fn pop(&mut self) -> Option<(u64, Publication)> {
        let publication = self.publications.pop_front()?;
        self.entries.pop_front();
        self.base += 1;
        Some((self.base - 1, publication))
    }
}

/// Returns the size in bytes of a publication's payload and tags.
pub(crate) fn weight(publication: &Publication) -> usize {
    let tags = publication.tags().iter();
    let tags: usize = tags.map(|(key, value)| key.len() + value.len()).sum();
    publication.payload().len() + tags
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::{OVERHEAD_BYTES, Ring, weight};
    use crate::{ChannelOptions, Publication};

    fn of_bytes(bytes: usize) -> Publication {
        Publication::new(vec![b'x'; bytes].into())
    }

    /// Returns a ring with publications of these sizes.
    fn ring(options: ChannelOptions, bytes: &[usize]) -> Ring {
        let (mut ring, now) = (Ring::new(options), Instant::now());
        for bytes in bytes {
            ring.push(now, of_bytes(*bytes));
        }
        ring
    }

    /// Removes all publications before `number`.
    fn forget(ring: &mut Ring, number: u64) {
        while ring.pop_before(number).is_some() {}
    }

    #[test]
    fn tags_count_with_their_length() {
        let tags = vec![
            ("key".to_owned(), "value".to_owned()),
            ("k".to_owned(), String::new()),
        ];
        let tagged = Publication::build("payload".into())
            .with_tags(tags)
            .finish();
        assert_eq!(weight(&tagged), 7 + 3 + 5 + 1);
    }

    #[test]
    fn memory_of_a_burst_is_released_when_the_ring_is_empty() {
        let mut ring = ring(ChannelOptions::default(), &[1; 1_000]);
        assert!(!ring.shrink(), "the ring is not empty");
        forget(&mut ring, u64::MAX);
        assert!(!ring.shrink(), "the burst was only just now");
        for _ in 0..20 {
            ring.push(Instant::now(), of_bytes(1));
        }
        let large = ring.publications.capacity();
        forget(&mut ring, u64::MAX);
        assert!(ring.shrink(), "the last burst was small");
        assert!(ring.publications.capacity() < large);
        assert!((40..80).contains(&ring.publications.capacity()));
        assert!((40..80).contains(&ring.entries.capacity()));
        assert!(!ring.shrink() || ring.publications.capacity() < 40);
        assert!(!ring.shrink(), "there is nothing to release");
    }

    #[test]
    fn a_slice_contains_adjacent_publications() {
        let mut ring = ring(ChannelOptions::default(), &[1, 2, 3, 4, 5, 6, 7, 8]);
        let capacity = ring.publications.capacity() as u64;
        forget(&mut ring, 6);
        // Publications at the end of the buffer and at its beginning.
        while ring.head() < capacity + 3 {
            ring.push(Instant::now(), of_bytes(9));
        }
        let lengths = |from, to| {
            let slice = ring.slice(from, to)?;
            Some(slice.iter().map(weight).collect::<Vec<_>>())
        };
        assert_eq!(lengths(6, 8), Some(vec![7, 8]));
        assert_eq!(
            lengths(6, capacity).map(|all| all.len() as u64),
            Some(capacity - 6)
        );
        assert_eq!(lengths(capacity, capacity + 3), Some(vec![9; 3]));
        assert_eq!(lengths(capacity + 1, capacity + 2), Some(vec![9]));
        assert_eq!(
            lengths(capacity - 1, capacity + 1),
            None,
            "the range is not contiguous"
        );
        assert_eq!(lengths(5, 7), None, "the first publication was removed");
        assert_eq!(
            lengths(capacity, capacity + 4),
            None,
            "the last publication was not added yet"
        );
    }

    #[test]
    fn publications_fit_up_to_the_limit_in_bytes() {
        let sizes = [10, 20, 30, 40, 50];
        let mut ring = ring(ChannelOptions::default(), &sizes);
        forget(&mut ring, 1);
        for from in 1..5 {
            for to in from + 1..=5 {
                for bytes_max in 0..150 {
                    let mut fit = from + 1;
                    let bytes = |to| sizes[from as usize..to as usize].iter().sum::<usize>();
                    while fit < to && bytes(fit + 1) <= bytes_max {
                        fit += 1;
                    }
                    assert_eq!(
                        ring.fit(from, to, bytes_max),
                        fit,
                        "{from} {to} {bytes_max}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_ring_is_half_full_by_messages_or_by_bytes() {
        let mut options = ChannelOptions {
            ring_messages_max: 10,
            ring_bytes_max: 1 << 30,
        };
        let mut of_messages = ring(options, &[1; 6]);
        assert!(of_messages.is_half_full(0) && of_messages.is_half_full(1));
        assert!(!of_messages.is_half_full(2));
        forget(&mut of_messages, 3);
        assert!(
            !of_messages.is_half_full(0),
            "removed publications do not count"
        );

        options.ring_messages_max = 1_000;
        options.ring_bytes_max = 2 * (3 * OVERHEAD_BYTES + 600);
        let of_bytes = ring(options, &[100, 300, 200, 100]);
        assert!(of_bytes.is_half_full(0));
        assert!(
            of_bytes.is_half_full(1),
            "three publications of 600 bytes are half"
        );
        assert!(!of_bytes.is_half_full(2));
    }
}
