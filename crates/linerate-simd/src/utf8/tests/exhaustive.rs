//! U07: every sequence of up to four bytes, at every split, against the standard library.
//!
//! A split is a series of pieces. Instead of trying each series for each sequence, the walk keeps
//! the state after each prefix, having checked that it does not depend on how the prefix was split.
//! Then only the last piece must be tried, once for each position at which it may start.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, thread};

use super::super::{Utf8Error, Validator, validate};
use super::{Verdict, verdict};

/// The lowest and highest byte of every class that RFC 3629 §4 distinguishes.
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

/// A sequence, the reference's verdict on it, and the states after its prefixes.
struct Path {
    bytes: [u8; 4],
    len: usize,
    verdict: Verdict,
    /// The state after each accepted prefix, beginning with the empty one.
    states: [Validator; 5],
    /// The number of states, at most `len + 1`.
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
        // A sequence that has failed keeps failing at the same byte.
        if !matches!(self.verdict, Verdict::FailsAt(_)) {
            self.verdict = verdict(&self.bytes[..self.len]);
        }
        self.check();
    }

    /// Checks the last piece for each start, and the whole sequence.
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

    /// Checks all paths that continue from here with bytes from `alphabet`.
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

/// Pushes the bytes from `start` on to a validator that accepted the bytes before it; returns the
/// new state if they were accepted as well.
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

/// Checks all sequences of up to `len_max` bytes, distributed over threads by their first byte.
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
            // Bypasses the test harness, which would capture the output until the end.
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
