//! Optimal prefix codes for given symbol frequencies (Huffman, 1952; RFC 1951 §3.2.2).

/// The longest code, in bits (RFC 1951 §3.2.7).
pub(super) const CODE_BITS_MAX: usize = 15;

/// Codes for symbols.
#[derive(Clone, Debug)]
pub(super) struct Codes<const N: usize> {
    /// The length of each code in bits; 0 if the symbol has no code.
    pub(super) bits: [u8; N],
    /// Each code, with its first bit in the lowest position; meaningless if the symbol has no code.
    pub(super) codes: [u16; N],
}

/// The number of codes of each length.
type Counts = [u16; CODE_BITS_MAX + 1];

impl<const N: usize> Codes<N> {
    /// Assigns codes of these lengths: shorter ones first, those of equal length in the order of
    /// their symbols (RFC 1951 §3.2.2).
    pub(super) fn new(bits: [u8; N]) -> Self {
        let mut codes = Self {
            bits,
            codes: [0; N],
        };
        let mut counts = Counts::default();
        for bits in bits.into_iter().filter(|&bits| bits > 0) {
            counts[usize::from(bits)] += 1;
        }
        codes.number((0..N).filter(|&symbol| bits[symbol] > 0), &counts);
        codes
    }

    /// Creates a code of at most `bits_max` bits for each symbol that occurs.
    ///
    /// There are always at least two codes, if necessary for symbols that do not occur, because
    /// some decompressors require that.
    pub(super) fn assign(&mut self, frequencies: &[u16; N], bits_max: usize) {
        let (mut occurring, mut used) = ([0_u32; N], 0);
        for (symbol, &frequency) in (0..).zip(frequencies) {
            // Written unconditionally, because a branch would often be mispredicted.
            occurring[used] = u32::from(frequency) << 16 | symbol;
            used += usize::from(frequency > 0);
        }
        self.bits.fill(0);
        if used < 2 {
            let only = if used == 1 {
                symbol_of(occurring[0])
            } else {
                0
            };
            let other = usize::from(only == 0);
            (self.bits[only], self.bits[other]) = (1, 1);
            (self.codes[only.min(other)], self.codes[only.max(other)]) = (0, 1);
            return;
        }
        let mut sorted = occurring;
        let (occurring, sorted) = (&occurring[..used], &mut sorted[..used]);
        sorted.sort_unstable();
        let mut weights = [0; N];
        for (weight, entry) in weights.iter_mut().zip(&*sorted) {
            *weight = entry >> 16;
        }
        let mut counts = shape(&mut weights[..used], bits_max);
        limit(&mut counts, bits_max);
        // The rarest symbols come first and get the longest codes.
        let mut rest = sorted.iter();
        for bits in (1..=bits_max).rev() {
            for &entry in rest.by_ref().take(counts[bits].into()) {
                self.bits[symbol_of(entry)] = bits as u8;
            }
        }
        self.number(occurring.iter().map(|&entry| symbol_of(entry)), &counts);
    }

    /// Assigns the codes of these symbols, which must be in ascending order.
    fn number(&mut self, symbols: impl Iterator<Item = usize>, counts: &Counts) {
        let mut next = Counts::default();
        for bits in 1..=CODE_BITS_MAX {
            next[bits] = (next[bits - 1] + counts[bits - 1]) << 1;
        }
        for symbol in symbols {
            let bits = self.bits[symbol];
            let number = &mut next[usize::from(bits)];
            self.codes[symbol] = number.reverse_bits() >> (16 - bits);
            *number = number.wrapping_add(1);
        }
    }

    /// Returns the total length, in bits, of the codes of symbols with these frequencies.
    pub(super) fn bits_of(&self, frequencies: &[u16; N]) -> u32 {
        let each = frequencies.iter().zip(&self.bits);
        each.map(|(&frequency, &bits)| u32::from(frequency) * u32::from(bits))
            .sum()
    }
}

/// Returns the symbol of an entry, which has the frequency in its upper half.
const fn symbol_of(entry: u32) -> usize {
    (entry & 0xFFFF) as usize
}

/// Returns the number of leaves at each depth of an optimal tree. Leaves deeper than `bits_max` are
/// counted at `bits_max`. `nodes` must contain the weights of two or more leaves in ascending
/// order.
///
/// Works in place: the entries before the leaves that are not joined yet have room for the nodes
/// that join leaves, first for their weights, then for their parents, then for their depths (Moffat
/// and Katajainen, In-Place Calculation of Minimum-Redundancy Codes, 1995).
fn shape(nodes: &mut [u32], bits_max: usize) -> Counts {
    let (leaves, last) = (nodes.len(), nodes.len() - 2);
    let (mut leaf, mut joined) = (0, 0);
    for node in 0..=last {
        let mut weight = 0;
        for _ in 0..2 {
            if joined < node && (leaf == leaves || nodes[joined] < nodes[leaf]) {
                weight += nodes[joined];
                nodes[joined] = node as u32;
                joined += 1;
            } else {
                weight += nodes[leaf];
                leaf += 1;
            }
        }
        nodes[node] = weight;
    }
    nodes[last] = 0;
    for node in (0..last).rev() {
        nodes[node] = nodes[nodes[node] as usize] + 1;
    }
    let mut counts = Counts::default();
    let (mut rest, mut places, mut depth) = (&nodes[..=last], 1, 0);
    while places > 0 {
        let inner = rest.iter().rev().take_while(|&&of| of == depth).count();
        rest = &rest[..rest.len() - inner];
        counts[bits_max.min(depth as usize)] += (places - inner) as u16;
        (places, depth) = (2 * inner, depth + 1);
    }
    counts
}

/// Makes some codes longer if there are too many codes of `bits_max` bits.
fn limit(counts: &mut Counts, bits_max: usize) {
    let taken = |bits: usize| usize::from(counts[bits]) << (bits_max - bits);
    let total: usize = (1..=bits_max).map(taken).sum();
    for _ in 1 << bits_max..total {
        // One of the longest codes becomes the sibling of a shorter one, which grows by a bit.
        let shorter = (1..bits_max).rev().find(|&bits| counts[bits] > 0);
        let bits =
            shorter.expect("some code is shorter, because that many longest codes would fit");
        counts[bits_max] -= 1;
        counts[bits] -= 1;
        counts[bits + 1] += 2;
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn assigned<const N: usize>(frequencies: [u16; N], bits_max: usize) -> Codes<N> {
        let mut codes = Codes::new([0; N]);
        codes.assign(&frequencies, bits_max);
        let numbered = Codes::new(codes.bits);
        for symbol in (0..N).filter(|&symbol| codes.bits[symbol] > 0) {
            assert_eq!(codes.codes[symbol], numbered.codes[symbol], "{symbol}");
        }
        codes
    }

    /// Returns the share of all bit strings that begin with a code, in 32,768ths.
    fn share(bits: &[u8]) -> u32 {
        let used = bits.iter().filter(|&&bits| bits > 0);
        used.map(|bits| 1 << (15 - bits)).sum()
    }

    #[test]
    fn the_example_in_the_standard_has_the_expected_codes() {
        // §3.2.2: ABCDEFGH with these lengths.
        let Codes { bits, codes } = Codes::new([3, 3, 3, 3, 3, 2, 4, 4]);
        let written: Vec<u16> = codes
            .iter()
            .zip(bits)
            .map(|(code, bits)| code.reverse_bits() >> (16 - bits))
            .collect();
        assert_eq!(
            written,
            [0b010, 0b011, 0b100, 0b101, 0b110, 0b00, 0b1110, 0b1111]
        );
    }

    #[test]
    fn frequent_symbols_get_the_shorter_codes() {
        let codes = assigned([0, 1, 1, 2, 4, 8, 0], 15);
        assert_eq!(codes.bits, [0, 4, 4, 3, 2, 1, 0]);
        let equal = assigned([7; 6], 15);
        assert_eq!(equal.bits, [3, 3, 3, 3, 2, 2]);
    }

    #[test]
    fn there_are_at_least_two_codes() {
        assert_eq!(assigned([0; 4], 15).bits, [1, 1, 0, 0]);
        assert_eq!(assigned([9, 0, 0, 0], 15).bits, [1, 1, 0, 0]);
        assert_eq!(assigned([0, 9, 0, 0], 15).bits, [1, 1, 0, 0]);
        assert_eq!(assigned([0, 0, 9, 0], 15).bits, [1, 0, 1, 0]);
    }

    #[test]
    fn codes_are_optimal_and_complete() {
        let mut state = 1_u32;
        for round in 0..500 {
            let frequencies: [u16; 40] = core::array::from_fn(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                ((state >> 16) >> (state >> 29) >> (round % 12)) as u16 / 8
            });
            let codes = assigned(frequencies, 15);
            assert_eq!(share(&codes.bits), 1 << 15, "{frequencies:?}");
            let bits = u64::from(codes.bits_of(&frequencies));
            assert_eq!(bits, least_bits(&frequencies), "{frequencies:?}");
        }
    }

    /// Returns the same sum by definition: repeatedly joins the two lightest nodes and adds up the
    /// costs.
    fn least_bits(frequencies: &[u16]) -> u64 {
        let used = frequencies.iter().filter(|&&frequency| frequency > 0);
        let mut weights: Vec<u64> = used.map(|&frequency| frequency.into()).collect();
        let (mut bits, single) = (0, weights.len() == 1);
        while weights.len() > 1 {
            weights.sort_unstable_by(|a, b| b.cmp(a));
            let joined = weights.pop().unwrap() + weights.pop().unwrap();
            bits += joined;
            weights.push(joined);
        }
        if single { weights[0] } else { bits }
    }

    #[test]
    fn no_code_is_longer_than_allowed() {
        // Fibonacci numbers make the deepest tree.
        let mut frequencies = [1_u16; 22];
        for at in 2..22 {
            frequencies[at] = frequencies[at - 1] + frequencies[at - 2];
        }
        for (bits_max, longest) in [(5, 5), (7, 7), (15, 15)] {
            let codes = assigned(frequencies, bits_max);
            assert_eq!(share(&codes.bits), 1 << 15, "{bits_max}");
            assert_eq!(codes.bits.iter().max(), Some(&longest));
            assert!(codes.bits[21] < codes.bits[0]);
        }
        let crowded = assigned([1_u16; 19], 5);
        assert_eq!(share(&crowded.bits), 1 << 15);
    }
}
