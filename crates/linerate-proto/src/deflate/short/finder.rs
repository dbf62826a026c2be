//! Finds repetitions in a message (RFC 1951 §4).

use alloc::{boxed::Box, vec};

use super::{BYTES_MAX, symbols::MATCH_BYTES_MAX};

/// The number of bits of the hash of a four-byte string.
pub(super) const SLOT_BITS: u32 = 11;

/// The shortest match, in bytes. In short messages, matches of three bytes make the other codes
/// longer by more than they save.
const MATCH_BYTES_MIN: usize = 4;

/// A string that occurred earlier in the message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Match {
    /// The length, 4 to 258.
    pub(super) bytes: usize,
    pub(super) distance: usize,
}

/// The position of a byte, counted as the [`Search`] that returned it does.
#[derive(Clone, Copy, Debug)]
pub(super) struct BytePosition(pub(super) usize);

/// How hard to search.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Effort {
    /// The maximum number of positions to compare.
    pub(super) positions_max: usize,
    /// A match of at least this length ends the search.
    pub(super) enough_bytes: usize,
    /// After a match shorter than this, the search checks whether a longer match begins at the next
    /// byte.
    pub(super) lazy_bytes: usize,
    /// Strings inside a match are noted if they begin within this many bytes of its start.
    pub(super) noted_bytes: usize,
}

/// Finds repetitions in the order in which a message is split.
pub(super) trait Search {
    /// Notes the string that begins at `at`; returns the last earlier position where it may also
    /// occur.
    fn note(&mut self, input: &[u8], at: usize) -> Option<BytePosition>;

    /// Returns the longest match of more than `longer_than` bytes for the string at `at`. The
    /// search begins at `position`.
    fn find(
        &self,
        input: &[u8],
        at: usize,
        position: BytePosition,
        longer_than: usize,
        effort: Effort,
    ) -> Option<Match>;
}

/// Records where each string occurred last.
///
/// Positions are counted on from message to message, so that entries from earlier messages can be
/// recognised by their small numbers. Nothing needs to be cleared until 64 KiB have been processed.
pub(super) struct Finder {
    /// For each hash, the last position of a string with that hash.
    slots: Box<[u16; 1 << SLOT_BITS]>,
    /// For each byte of the message, the previous position with the same hash.
    links: Box<[u16; BYTES_MAX]>,
    /// The position of the message's first byte, and the position after its last byte.
    start: usize,
    end: usize,
    distance_max: usize,
}

impl Finder {
    pub(super) fn new() -> Self {
        Self {
            slots: boxed(),
            links: boxed(),
            start: 1,
            end: 1,
            distance_max: 0,
        }
    }

    /// Begins a message of at most [`BYTES_MAX`] bytes.
    pub(super) fn start(&mut self, bytes: usize, distance_max: usize) {
        debug_assert!(bytes <= BYTES_MAX);
        if self.end + bytes > usize::from(u16::MAX) {
            self.slots.fill(0);
            self.end = 1;
        }
        self.start = self.end;
        self.end += bytes;
        self.distance_max = distance_max;
    }

    /// Returns the first position that the string at `at` may refer to.
    fn oldest(&self, at: usize) -> usize {
        self.start + at.saturating_sub(self.distance_max)
    }
}

impl Search for Finder {
    #[inline]
    fn note(&mut self, input: &[u8], at: usize) -> Option<BytePosition> {
        // The last three bytes begin no string of four.
        let slot = &mut self.slots[slot(word(input, at)?)];
        let before = *slot;
        self.links[at % BYTES_MAX] = before;
        *slot = (self.start + at) as u16;
        let before = usize::from(before);
        (before >= self.oldest(at)).then_some(BytePosition(before))
    }

    fn find(
        &self,
        input: &[u8],
        at: usize,
        BytePosition(position): BytePosition,
        longer_than: usize,
        effort: Effort,
    ) -> Option<Match> {
        let oldest = self.oldest(at);
        let before = |from| {
            let position = usize::from(self.links[from % BYTES_MAX]);
            (position >= oldest).then(|| position - self.start)
        };
        longest(
            input,
            at,
            (position - self.start, before),
            longer_than,
            effort,
        )
    }
}

/// Returns the longest match of more than `longer_than` bytes for the string at `at`, which may
/// also occur at `from`, and before that at the place that `before` returns, and so on.
#[inline]
pub(super) fn longest(
    bytes: &[u8],
    at: usize,
    (mut from, before): (usize, impl Fn(usize) -> Option<usize>),
    longer_than: usize,
    effort: Effort,
) -> Option<Match> {
    let mut best = None;
    let mut longest = longer_than.max(MATCH_BYTES_MIN - 1);
    let mut ending = word(bytes, at + longest - 3)?;
    for _ in 0..effort.positions_max {
        // Skip a position that differs where a longer match would have to end.
        if word(bytes, from + longest - 3) == Some(ending) {
            let common = common(bytes, from, at);
            if common > longest {
                let distance = at - from;
                best = Some(Match {
                    bytes: common,
                    distance,
                });
                longest = common;
                match word(bytes, at + longest - 3) {
                    Some(next) if common < effort.enough_bytes => ending = next,
                    _ => break,
                }
            }
        }
        let Some(earlier) = before(from) else {
            break;
        };
        from = earlier;
    }
    best
}

/// Returns a boxed array of zeros without creating it on the stack first.
fn boxed<const N: usize>() -> Box<[u16; N]> {
    let zeros = vec![0; N].into_boxed_slice();
    zeros.try_into().expect("the slice has length N")
}

/// Returns the slot of a string (Fibonacci hashing; Knuth, volume 3, 6.4).
#[inline]
pub(super) const fn slot(string: u32) -> usize {
    (string.wrapping_mul(0x9E37_79B1) >> (u32::BITS - SLOT_BITS)) as usize
}

/// Returns the four bytes at `at` as a number, if there are four.
#[inline]
pub(super) fn word(input: &[u8], at: usize) -> Option<u32> {
    let word = input.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*word))
}

/// Returns the length of the common prefix of the strings at `from` and `at`, at most 258.
#[inline]
fn common(input: &[u8], from: usize, at: usize) -> usize {
    let (here, there) = (&input[at..], &input[from..]);
    let here = &here[..here.len().min(MATCH_BYTES_MAX)];
    let (words, there_words) = (here.as_chunks::<8>().0, there.as_chunks::<8>().0);
    for (word, (one, other)) in words.iter().zip(there_words).enumerate() {
        let different = u64::from_le_bytes(*one) ^ u64::from_le_bytes(*other);
        if different != 0 {
            return word * 8 + different.trailing_zeros() as usize / 8;
        }
    }
    let whole = words.len() * 8;
    let rest = here[whole..].iter().zip(&there[whole..]);
    whole + rest.take_while(|(one, other)| one == other).count()
}
