//! Checks whether short text is ASCII, as most of it is.

/// The highest bit of each byte, which is 0 in ASCII.
const HIGH_BITS: u64 = u64::from_ne_bytes([0x80; 8]);

/// Returns whether all of `bytes` are ASCII. Optimized for a few hundred bytes.
#[inline]
pub(super) fn is_ascii(bytes: &[u8]) -> bool {
    if let Some(ends) = ends::<8>(bytes) {
        // Words from the start, and one that ends with the last byte; the overlap is harmless.
        let (words, _) = bytes[..bytes.len() - 1].as_chunks::<8>();
        let all = words
            .iter()
            .fold(word(&ends[1]), |all, chunk| all | word(chunk));
        return all & HIGH_BITS == 0;
    }
    if let Some([head, tail]) = ends::<4>(bytes) {
        return (u32::from_ne_bytes(head) | u32::from_ne_bytes(tail)) & HIGH_BITS as u32 == 0;
    }
    bytes.iter().fold(0, |all, byte| all | byte) < 0x80
}

/// Returns the first and the last `N` bytes if there are at least `N`.
#[inline(always)]
fn ends<const N: usize>(bytes: &[u8]) -> Option<[[u8; N]; 2]> {
    Some([*bytes.first_chunk()?, *bytes.last_chunk()?])
}

#[inline(always)]
fn word(bytes: &[u8; 8]) -> u64 {
    u64::from_ne_bytes(*bytes)
}
