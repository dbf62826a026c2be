//! U07: every sequence of up to four bytes, at every split, against the standard library.
//!
//! A split is a series of pieces. Rather than try each series for each sequence, the walk keeps the
//! state that each prefix leads to, having checked that it is the same one however the prefix was
//! split; then the last piece is all that remains to be tried, once for each place it may start at.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, thread};

use super::super::{Utf8Error, Validator, validate};
use super::{Verdict, verdict};

/// Lowest and highest byte of every class that RFC 3629 §4 distinguishes.
const EDGES: [u8; 24] = [
    0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed,
    0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff,
];

const ALL: [u8; 256] = {
    let mut all = [0; 256];
    let mut i = 0;
    while i < 256 {
        all[i] = i as u8;
        i += 1;
    }
    all
};

/// A sequence, what the oracle says of it, and the states that its prefixes lead to.
struct Path {
    bytes: [u8; 4],
    len: usize,
    verdict: Verdict,
    /// The state after each prefix that is accepted, from the empty one on.
    states: [Validator; 5],
    /// How many states there are, at most `len + 1`.
    accepted: usize,
}

impl Path {
    fn new() -> Self {
        Self {
            bytes: [0; 4],
            len: 0,
            verdict: Verdict::Complete,
            states: Default::default(),
            accepted: 1,
        }
    }

    /// Makes the path one byte longer, and checks it.
    fn extend(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
        // What fails goes on failing at the same byte.
        if !matches!(self.verdict, Verdict::FailsAt(_)) {
            self.verdict = verdict(&self.bytes[..self.len]);
        }
        self.check();
    }

    /// Checks the last piece from wherever it may start, and the sequence as a whole.
    fn check(&mut self) {
        let (bytes, expected) = (&self.bytes[..self.len], self.verdict);
        let next = self.states[..self.accepted]
            .iter()
            .enumerate()
            .map(|(start, state)| after(state, bytes, start, expected))
            .reduce(|one, other| {
                assert_eq!(one, other, "the split matters for {bytes:02x?}");
                one
            });
        assert_whole(bytes, expected);
        if let Some(Some(next)) = next {
            self.states[self.accepted] = next;
            self.accepted += 1;
        }
    }

    /// Checks all paths from here on, whose further bytes are taken from `alphabet`.
    fn walk(&mut self, len_max: usize, alphabet: &[u8]) {
        let here = (self.len, self.verdict, self.accepted);
        for &byte in alphabet {
            self.extend(byte);
            if self.len < len_max {
                self.walk(len_max, alphabet);
            }
            (self.len, self.verdict, self.accepted) = here;
        }
    }
}

/// Pushes what follows `start` to a validator that accepted what precedes it, and returns the state
/// if that was accepted too.
fn after(state: &Validator, bytes: &[u8], start: usize, expected: Verdict) -> Option<Validator> {
    let mut validator = state.clone();
    let result = validator.push(&bytes[start..]);
    if let Verdict::FailsAt(at) = expected {
        assert_eq!(
            result,
            Err(Utf8Error {
                valid_up_to: at - start
            }),
            "{bytes:02x?} at {start}"
        );
        return None;
    }
    assert_eq!(result, Ok(()), "{bytes:02x?} at {start}");
    assert_eq!(
        validator.is_complete(),
        expected == Verdict::Complete,
        "{bytes:02x?} at {start}"
    );
    Some(validator)
}

fn assert_whole(bytes: &[u8], expected: Verdict) {
    let result = validate(bytes).map_err(|error| error.valid_up_to());
    match expected {
        Verdict::Complete => assert_eq!(result.map(str::as_bytes), Ok(bytes)),
        Verdict::Unfinished => assert_eq!(result, Err(bytes.len())),
        Verdict::FailsAt(at) => assert_eq!(result, Err(at)),
    }
}

/// Checks all sequences of up to `len_max` bytes, sharing them out by their first byte.
fn walk_all(len_max: usize, alphabet: &[u8], report: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(&first) = ALL.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut path = Path::new();
                    path.extend(first);
                    path.walk(len_max, alphabet);
                    report(usize::from(first));
                }
            });
        }
    });
}

#[test]
#[cfg_attr(miri, ignore = "millions of sequences")]
fn u07_all_sequences_of_up_to_three_bytes_agree_at_every_split() {
    walk_all(3, &ALL, |_| {});
}

#[test]
#[cfg_attr(miri, ignore = "millions of sequences")]
fn u07_four_byte_sequences_agree_at_every_split() {
    if env::var_os("LINERATE_EXHAUSTIVE").is_some_and(|value| value == "1") {
        walk_all(4, &ALL, |first| {
            // Past the harness, which would hold it back until the end.
            let _ = writeln!(
                io::stderr(),
                "U07: all sequences that begin with {first:02x} agree"
            );
        });
        return;
    }
    walk_all(4, &EDGES, |_| {});
    const STRIDE: usize = 10_007;
    for sequence in (0..=u32::MAX).step_by(STRIDE) {
        let mut path = Path::new();
        sequence
            .to_be_bytes()
            .into_iter()
            .for_each(|byte| path.extend(byte));
    }
}
