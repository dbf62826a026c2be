//! A cache of the most recent values, found without hashing the whole value.

/// The number of entries in the cache.
const PLACES: usize = 512;

/// The codes of recent values, each stored at the place that its fingerprint determines.
///
/// A client that knows how fingerprints are computed can send values that all map to one place.
/// They are then looked up as if there were no cache.
#[derive(Debug)]
pub(super) struct RecentCodes(Box<[Entry; PLACES]>);

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    fingerprint: Fingerprint,
    code: u32,
}

/// Some bytes of a value and its length. Includes all bytes of a short value.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Fingerprint {
    words: [u64; 2],
    len: u32,
}

impl RecentCodes {
    pub(super) const MEMORY_BYTES: usize = size_of::<[Entry; PLACES]>();

    pub(super) fn new() -> Self {
        Self(Box::new([Entry::default(); PLACES]))
    }

    /// Returns the code of the remembered value that has the same fingerprint.
    #[inline]
    pub(super) fn find(&self, fingerprint: &Fingerprint) -> Option<u32> {
        let entry = &self.0[fingerprint.place()];
        (entry.fingerprint == *fingerprint).then_some(entry.code)
    }

    /// Remembers a value, which must not be empty.
    pub(super) fn remember(&mut self, fingerprint: Fingerprint, code: u32) {
        self.0[fingerprint.place()] = Entry { fingerprint, code };
    }

    pub(super) fn clear(&mut self) {
        self.0.fill(Entry::default());
    }
}

impl Fingerprint {
    /// The longest value of which the fingerprint includes all bytes.
    const ALL_MAX: usize = 16;

    /// Returns the fingerprint of a value that is not empty.
    #[inline]
    pub(super) fn of(value: &[u8]) -> Self {
        Self::of_all(value).unwrap_or_else(|| {
            let len = value.len();
            // Agents have their versions before the last word, and their systems in the first half.
            let (last, before) = (word(value, len - 8), word(value, len.saturating_sub(24)));
            let (quarter, half) = (word(value, len / 4), word(value, len / 2));
            Self {
                words: [
                    last ^ quarter.rotate_left(32),
                    before ^ half.rotate_left(32),
                ],
                len: len as u32,
            }
        })
    }

    /// Returns a fingerprint that includes all bytes of the value, so that values with the same
    /// fingerprint are equal. Returns `None` if the value is too long.
    #[inline(always)]
    pub(super) fn of_all(value: &[u8]) -> Option<Self> {
        let len = value.len();
        let words = if let (Some(first), Some(last)) = (value.first_chunk(), value.last_chunk()) {
            if len > Self::ALL_MAX {
                return None;
            }
            [u64::from_le_bytes(*first), u64::from_le_bytes(*last)]
        } else if let (Some(first), Some(last)) = (value.first_chunk(), value.last_chunk()) {
            let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
            [first.into(), last.into()]
        } else {
            let bytes = [0, len / 2, len.saturating_sub(1)].map(|at| value.get(at).copied());
            let [a, b, c] = bytes.map(|byte| u64::from(byte.unwrap_or_default()));
            [a, b << 8 | c]
        };
        Some(Self {
            words,
            len: len as u32,
        })
    }

    #[inline]
    fn place(&self) -> usize {
        /// 2^64 divided by the golden ratio, which spreads numbers that differ little.
        const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
        let [a, b] = self.words;
        let mixed = (a ^ b.rotate_left(29) ^ u64::from(self.len)).wrapping_mul(SPREAD);
        (mixed >> (u64::BITS - PLACES.ilog2())) as usize
    }
}

/// Returns the eight bytes of a value at an offset, or 0 if there are fewer.
#[inline]
fn word(value: &[u8], at: usize) -> u64 {
    let word = value[at..].first_chunk();
    word.map_or(0, |word| u64::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::{Fingerprint, RecentCodes};

    #[test]
    fn samples_of_short_values_tell_them_apart() {
        let mut seen = HashMap::new();
        for len in 1..=Fingerprint::ALL_MAX {
            for at in 0..len {
                for byte in [0, 1, b'a', 0xFF] {
                    let mut value = vec![b'x'; len];
                    value[at] = byte;
                    let fingerprint = Fingerprint::of_all(&value).unwrap();
                    assert_eq!(fingerprint, Fingerprint::of(&value));
                    let before = seen.insert(format!("{fingerprint:?}"), value.clone());
                    assert!(before.is_none_or(|before| before == value));
                }
            }
        }
        assert_eq!(Fingerprint::of_all(&[0; 17]), None);
    }

    #[test]
    fn last_value_of_a_slot_is_kept_until_reset() {
        let mut recent = RecentCodes::new();
        let values: Vec<String> = (0..5_000).map(|n| format!("/a/path/of/{n}")).collect();
        for (code, value) in (2..).zip(&values) {
            let fingerprint = Fingerprint::of(value.as_bytes());
            recent.remember(fingerprint, code);
            assert_eq!(recent.find(&fingerprint), Some(code));
        }
        let fingerprints: Vec<_> = values
            .iter()
            .map(|it| Fingerprint::of(it.as_bytes()))
            .collect();
        let found: Vec<_> = fingerprints
            .iter()
            .filter_map(|it| recent.find(it))
            .collect();
        assert!((300..=512).contains(&found.len()), "{}", found.len());
        recent.clear();
        assert!(
            fingerprints
                .iter()
                .all(|fingerprint| recent.find(fingerprint).is_none())
        );
    }
}
