//! A message as literals and matches, and the frequency of each symbol (RFC 1951 §3.2.3).

use alloc::vec::Vec;

use super::{
    bits::Bits,
    finder::{Effort, Match, Search},
    huffman::Codes,
    symbols::{self, DISTANCES, END, LITERALS},
};

/// A run of literals and the match that follows it.
#[derive(Clone, Copy, Debug)]
struct Step {
    literals: u16,
    length: u16,
    distance: u16,
}

/// A message as a sequence of steps.
pub(super) struct Steps {
    steps: Vec<Step>,
    /// The start of the literals after the last match.
    rest: usize,
    /// How often each symbol occurs.
    pub(super) literals: [u16; LITERALS],
    pub(super) distances: [u16; DISTANCES],
    /// The total number of extra bits that follow codes.
    extra_bits: u32,
}

impl Steps {
    pub(super) const fn new() -> Self {
        Self {
            steps: Vec::new(),
            rest: 0,
            literals: [0; LITERALS],
            distances: [0; DISTANCES],
            extra_bits: 0,
        }
    }

    /// Splits `input` into literals and matches; `search` must have been started for it.
    pub(super) fn parse(&mut self, search: &mut impl Search, input: &[u8], effort: Effort) {
        self.steps.clear();
        (self.literals, self.distances) = ([0; LITERALS], [0; DISTANCES]);
        self.literals[END] = 1;
        self.extra_bits = 0;
        self.rest = 0;
        let mut at = 0;
        while at < input.len() {
            let position = search.note(input, at);
            let found = position.and_then(|position| search.find(input, at, position, 0, effort));
            let Some(mut found) = found else {
                self.literals[usize::from(input[at])] += 1;
                at += 1;
                continue;
            };
            let mut noted = at + 1;
            while found.bytes < effort.lazy_bytes {
                let position = search.note(input, noted);
                noted += 1;
                let later = position
                    .and_then(|position| search.find(input, at + 1, position, found.bytes, effort));
                let Some(later) = later else {
                    break;
                };
                self.literals[usize::from(input[at])] += 1;
                (found, at) = (later, at + 1);
            }
            self.push(at, found);
            let start = at;
            at += found.bytes;
            for inside in noted..at.min(start + effort.noted_bytes) {
                search.note(input, inside);
            }
        }
    }

    /// Returns the length of the message with these codes, in bits, without the codes themselves.
    pub(super) fn bits(&self, literals: &Codes<LITERALS>, distances: &Codes<DISTANCES>) -> u32 {
        literals.bits_of(&self.literals) + distances.bits_of(&self.distances) + self.extra_bits
    }

    /// Writes `input`, which must have been parsed, and the end of its block.
    pub(super) fn write(
        &self,
        input: &[u8],
        literals: &Codes<LITERALS>,
        distances: &Codes<DISTANCES>,
        out: &mut Bits<'_>,
    ) {
        let mut rest = input;
        for step in &self.steps {
            let (before, behind) = rest.split_at(step.literals.into());
            write_literals(before, literals, out);
            rest = &behind[usize::from(step.length)..];
            let length = symbols::of_length(step.length.into());
            let symbol = usize::from(length.symbol);
            out.put(literals.codes[symbol], literals.bits[symbol]);
            out.put(length.extra, length.extra_bits);
            let distance = symbols::of_distance(step.distance.into());
            let symbol = usize::from(distance.symbol);
            out.put(distances.codes[symbol], distances.bits[symbol]);
            out.put(distance.extra, distance.extra_bits);
            out.flush();
        }
        write_literals(rest, literals, out);
        out.put(literals.codes[END], literals.bits[END]);
        out.flush();
    }

    /// Adds a match that was found at `at`.
    fn push(&mut self, at: usize, found: Match) {
        let length = symbols::of_length(found.bytes);
        let distance = symbols::of_distance(found.distance);
        self.literals[usize::from(length.symbol)] += 1;
        self.distances[usize::from(distance.symbol)] += 1;
        self.extra_bits += u32::from(length.extra_bits) + u32::from(distance.extra_bits);
        self.steps.push(Step {
            literals: (at - self.rest) as u16,
            length: found.bytes as u16,
            distance: found.distance as u16,
        });
        self.rest = at + found.bytes;
    }
}

fn write_literals(bytes: &[u8], codes: &Codes<LITERALS>, out: &mut Bits<'_>) {
    // Three codes of at most 15 bits can be put before a flush.
    for three in bytes.chunks(3) {
        for &byte in three {
            out.put(
                codes.codes[usize::from(byte)],
                codes.bits[usize::from(byte)],
            );
        }
        out.flush();
    }
}
