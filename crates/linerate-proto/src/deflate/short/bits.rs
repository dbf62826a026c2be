//! Writes bits, starting with the lowest bit of each byte (RFC 1951 §3.1.1).

/// Bytes after the output that [`Bits`] may overwrite.
pub(super) const SPARE_BYTES: usize = 8;

/// The maximum number of bits that may be put between two flushes.
const BITS_MAX: u32 = 56;

/// Writes bits into existing memory.
pub(super) struct Bits<'o> {
    out: &'o mut [u8],
    at: usize,
    /// The bits that are not written yet, and their number, which is less than 8 after a flush.
    held: u64,
    count: u32,
}

impl<'o> Bits<'o> {
    /// Creates a writer at the start of `out`, which must be at least [`SPARE_BYTES`] longer than
    /// the output.
    pub(super) const fn new(out: &'o mut [u8]) -> Self {
        Self {
            out,
            at: 0,
            held: 0,
            count: 0,
        }
    }

    /// Appends the low `count` bits of `bits`; all other bits must be 0. Call
    /// [`flush`](Self::flush) after at most 56 bits.
    #[inline]
    pub(super) const fn put(&mut self, bits: u16, count: u8) {
        debug_assert!(self.count + (count as u32) < u64::BITS && (bits as u32) >> count == 0);
        self.held |= (bits as u64) << self.count;
        self.count += count as u32;
    }

    #[inline]
    pub(super) fn flush(&mut self) {
        debug_assert!(self.count <= BITS_MAX + 7);
        self.out[self.at..self.at + SPARE_BYTES].copy_from_slice(&self.held.to_le_bytes());
        self.at += (self.count / 8) as usize;
        self.held >>= self.count & !7;
        self.count %= 8;
    }

    /// Appends zeros up to the next byte boundary, and returns the length of the output in bytes.
    pub(super) fn align(&mut self) -> usize {
        self.count = self.count.next_multiple_of(8);
        self.flush();
        self.at
    }
}
