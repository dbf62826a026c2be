//! Writes the code lengths at the start of a dynamic block (RFC 1951 §3.2.7).

use super::{
    bits::Bits,
    huffman::Codes,
    symbols::{DISTANCES, END, LITERALS},
};

/// The number of symbols: 16 code lengths, and three symbols for runs of lengths.
const SYMBOLS: usize = 19;

/// The longest code for one of these symbols, in bits.
const SYMBOL_BITS_MAX: usize = 7;

/// Repeats the previous length 3 to 6 times.
const SAME: u8 = 16;
/// Stands for 3 to 10 zeros.
const ZEROS: u8 = 17;
/// Stands for 11 to 138 zeros.
const MORE_ZEROS: u8 = 18;

/// The order in which the lengths of these codes are written: those that are most likely 0 last.
const ORDER: [usize; SYMBOLS] = [
    16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15,
];

/// A symbol and the value of its extra bits.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    symbol: u8,
    extra: u8,
}

/// The lengths of a block's codes as runs, and the codes for these runs.
pub(super) struct Lengths {
    runs: [Run; LITERALS + DISTANCES],
    runs_used: usize,
    frequencies: [u16; SYMBOLS],
    codes: Codes<SYMBOLS>,
    literals: usize,
    distances: usize,
    /// How many entries of [`ORDER`] are written.
    written: usize,
}

impl Lengths {
    pub(super) fn new() -> Self {
        Self {
            runs: [Run::default(); LITERALS + DISTANCES],
            runs_used: 0,
            frequencies: [0; SYMBOLS],
            codes: Codes::new([0; SYMBOLS]),
            literals: 0,
            distances: 0,
            written: 0,
        }
    }

    /// Prepares the lengths of a block's codes, and returns how many bits [`write`](Self::write)
    /// takes for them.
    pub(super) fn tell(&mut self, literals: &Codes<LITERALS>, distances: &Codes<DISTANCES>) -> u32 {
        self.literals = used(&literals.bits).max(END + 1);
        self.distances = used(&distances.bits);
        let mut bits = [0; LITERALS + DISTANCES];
        let (before, behind) = bits.split_at_mut(self.literals);
        before.copy_from_slice(&literals.bits[..self.literals]);
        behind[..self.distances].copy_from_slice(&distances.bits[..self.distances]);
        self.take_runs(&bits[..self.literals + self.distances]);
        self.codes.assign(&self.frequencies, SYMBOL_BITS_MAX);
        let last = ORDER
            .iter()
            .rposition(|&symbol| self.codes.bits[symbol] > 0);
        self.written = last.map_or(4, |last| (last + 1).max(4));
        let extra = [SAME, ZEROS, MORE_ZEROS].map(|symbol| {
            u32::from(self.frequencies[usize::from(symbol)]) * u32::from(extra_bits(symbol))
        });
        let runs = self.codes.bits_of(&self.frequencies) + extra.iter().sum::<u32>();
        14 + 3 * self.written as u32 + runs
    }

    /// Writes the lengths that [`tell`](Self::tell) prepared.
    pub(super) fn write(&self, out: &mut Bits<'_>) {
        out.put((self.literals - (END + 1)) as u16, 5);
        out.put((self.distances - 1) as u16, 5);
        out.put((self.written - 4) as u16, 4);
        out.flush();
        for symbols in ORDER[..self.written].chunks(16) {
            for &symbol in symbols {
                out.put(self.codes.bits[symbol].into(), 3);
            }
            out.flush();
        }
        for &Run { symbol, extra } in &self.runs[..self.runs_used] {
            let at = usize::from(symbol);
            out.put(self.codes.codes[at], self.codes.bits[at]);
            out.put(extra.into(), extra_bits(symbol));
            out.flush();
        }
    }

    fn take_runs(&mut self, mut bits: &[u8]) {
        (self.runs_used, self.frequencies) = (0, [0; SYMBOLS]);
        while let [first, ..] = *bits {
            let other = bits.iter().position(|&bits| bits != first);
            let mut run = other.unwrap_or(bits.len());
            bits = &bits[run..];
            if first == 0 {
                while run >= 11 {
                    let zeros = run.min(138);
                    self.push(MORE_ZEROS, zeros - 11);
                    run -= zeros;
                }
                if run >= 3 {
                    self.push(ZEROS, run - 3);
                    run = 0;
                }
            } else {
                self.push(first, 0);
                run -= 1;
                while run >= 3 {
                    let same = run.min(6);
                    self.push(SAME, same - 3);
                    run -= same;
                }
            }
            for _ in 0..run {
                self.push(first, 0);
            }
        }
    }

    fn push(&mut self, symbol: u8, extra: usize) {
        let extra = extra as u8;
        self.runs[self.runs_used] = Run { symbol, extra };
        self.runs_used += 1;
        self.frequencies[usize::from(symbol)] += 1;
    }
}

/// Returns the number of codes up to the last one that is used.
fn used(bits: &[u8]) -> usize {
    let last = bits.iter().rposition(|&bits| bits > 0);
    last.map_or(0, |last| last + 1)
}

const fn extra_bits(symbol: u8) -> u8 {
    match symbol {
        SAME => 2,
        ZEROS => 3,
        MORE_ZEROS => 7,
        _ => 0,
    }
}
