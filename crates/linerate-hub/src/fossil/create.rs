//! Creates deltas.

use super::{BYTES_MAX, DIGITS, checksum};

/// The length in bytes of the blocks of the source that are looked up in the target. Shorter
/// matches are not found.
const BLOCK_BYTES: usize = 16;

/// The maximum length in bytes of what a copy adds to a delta, including that of an insertion which
/// it divides. Shorter matches are not copied.
const COPY_BYTES_MAX: usize = 12;

/// The maximum number of bytes of a character in UTF-8 after its first one.
const CONTINUATION_BYTES_MAX: usize = 3;

/// The maximum number of places of the source that are compared with one place of the target.
const CANDIDATES_MAX: usize = 8;

/// Returns a delta that turns `source` into `target`, or `None` if it would not be shorter than
/// `target`, or if one of the two is longer than [`BYTES_MAX`].
///
/// If `target` is valid UTF-8, so is the delta.
///
/// ```
/// use linerate_hub::fossil::{apply, create};
///
/// let source = br#"{"symbol":"AAPL","bid":190.12,"ask":190.15,"venue":"Nasdaq Stock Market","open":true}"#;
/// let target = br#"{"symbol":"AAPL","bid":190.12,"ask":190.16,"venue":"Nasdaq Stock Market","open":true}"#;
/// let delta = create(source, target).expect("they are similar");
/// assert!(delta.len() < target.len() / 3);
/// assert_eq!(apply(source, &delta, target.len())?, target);
/// # Ok::<(), linerate_hub::fossil::ApplyError>(())
/// ```
pub fn create(source: &[u8], target: &[u8]) -> Option<Vec<u8>> {
    if source.len().max(target.len()) > BYTES_MAX || source.len() < BLOCK_BYTES {
        return None;
    }
    let index = Index::new(source);
    let mut delta = Delta::new(target, target.len().min(512));
    let mut at = 0;
    while at + BLOCK_BYTES <= target.len() {
        match index.longest(target, delta.done, at) {
            Some(copy) => {
                delta.copy(copy);
                at = delta.done;
            }
            None => at += 1,
        }
        // What is not matched yet is inserted at best.
        if delta.out.len() + at - delta.done >= target.len() {
            return None;
        }
    }
    delta.finish()
}

/// The places of the blocks of a source, by a hash of their contents.
struct Index<'a> {
    source: &'a [u8],
    /// The number of the first block for each hash, plus one; 0 if there is none.
    heads: Vec<u32>,
    /// For each block, the number of the next one with the same hash, plus one.
    next: Vec<u32>,
    shift: u32,
}

/// A range of the source that equals a range of the target.
#[derive(Clone, Copy, Debug)]
struct Copy {
    from: usize,
    to: usize,
    bytes: usize,
}

impl<'a> Index<'a> {
    fn new(source: &'a [u8]) -> Self {
        let (blocks, _) = source.as_chunks::<BLOCK_BYTES>();
        let bits = usize::BITS - blocks.len().leading_zeros();
        let shift = u64::BITS - bits;
        let mut heads = vec![0; 1 << bits];
        let mut next = vec![0; blocks.len()];
        for (number, block) in blocks.iter().enumerate().rev() {
            let head = &mut heads[hash(block, shift)];
            next[number] = std::mem::replace(head, number as u32 + 1);
        }
        Self {
            source,
            heads,
            next,
            shift,
        }
    }

    /// Returns the longest match that contains the block of the target at `at`, and nothing before
    /// `done`.
    fn longest(&self, target: &[u8], done: usize, at: usize) -> Option<Copy> {
        let block = target[at..].first_chunk::<BLOCK_BYTES>()?;
        let mut longest: Option<Copy> = None;
        let mut number = self.heads[hash(block, self.shift)];
        for _ in 0..CANDIDATES_MAX {
            let Some(place) = number.checked_sub(1) else {
                break;
            };
            let from = place as usize * BLOCK_BYTES;
            let copy = self.extend(target, done, (from, at));
            let length = |copy: &Copy| copy.bytes;
            if copy.as_ref().map(length) > longest.as_ref().map(length) {
                longest = copy;
            }
            number = self.next[place as usize];
        }
        longest
    }

    /// Returns the match that contains a place of the source and one of the target, if they match.
    fn extend(&self, target: &[u8], done: usize, (from, to): (usize, usize)) -> Option<Copy> {
        let ahead = common(self.source[from..].iter(), target[to..].iter());
        if ahead < BLOCK_BYTES {
            return None;
        }
        let before = (self.source[..from].iter(), target[done..to].iter());
        let behind = common(before.0.rev(), before.1.rev());
        let mut range = to - behind..to + ahead;
        // Characters are not divided, so that what is inserted is text if the target is.
        let is_within = |at: usize| target.get(at).is_some_and(|byte| byte & 0xC0 == 0x80);
        for _ in 0..CONTINUATION_BYTES_MAX {
            range.end -= usize::from(is_within(range.end));
            range.start += usize::from(is_within(range.start));
        }
        (range.len() > COPY_BYTES_MAX).then_some(Copy {
            from: from + range.start - to,
            to: range.start,
            bytes: range.len(),
        })
    }
}

/// A delta that is being written.
struct Delta<'a> {
    target: &'a [u8],
    out: Vec<u8>,
    /// The number of bytes of the target that the delta makes so far.
    done: usize,
}

impl<'a> Delta<'a> {
    fn new(target: &'a [u8], room: usize) -> Self {
        let mut out = Vec::with_capacity(room);
        append_number(target.len() as u32, &mut out);
        out.push(b'\n');
        Self {
            target,
            out,
            done: 0,
        }
    }

    /// Inserts what precedes a match, and copies the match.
    fn copy(&mut self, copy: Copy) {
        self.insert(copy.to);
        append_number(copy.bytes as u32, &mut self.out);
        self.out.push(b'@');
        append_number(copy.from as u32, &mut self.out);
        self.out.push(b',');
        self.done = copy.to + copy.bytes;
    }

    fn insert(&mut self, end: usize) {
        if end > self.done {
            append_number((end - self.done) as u32, &mut self.out);
            self.out.push(b':');
            self.out.extend_from_slice(&self.target[self.done..end]);
        }
    }

    fn finish(mut self) -> Option<Vec<u8>> {
        self.insert(self.target.len());
        append_number(checksum(self.target), &mut self.out);
        self.out.push(b';');
        (self.out.len() < self.target.len()).then_some(self.out)
    }
}

/// Returns how many of the first bytes are equal.
fn common<'a>(one: impl Iterator<Item = &'a u8>, other: impl Iterator<Item = &'a u8>) -> usize {
    one.zip(other).take_while(|(a, b)| a == b).count()
}

fn hash(block: &[u8; BLOCK_BYTES], shift: u32) -> usize {
    let (halves, _) = block.as_chunks::<8>();
    let mixed = halves.iter().fold(0_u64, |mixed, half| {
        (mixed.rotate_left(29) ^ u64::from_le_bytes(*half)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    });
    (mixed >> shift) as usize
}

fn append_number(number: u32, out: &mut Vec<u8>) {
    let digits = (u32::BITS - number.leading_zeros()).div_ceil(6).max(1);
    let digits = (0..digits).rev();
    out.extend(digits.map(|digit| DIGITS[(number >> (6 * digit)) as usize % DIGITS.len()]));
}
