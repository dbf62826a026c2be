//! Byte-wise versions of the masking functions: the literal formula of the RFC (RFC 6455 §5.3).
//!
//! They are a reference for tests and a baseline for benchmarks. Do not use them in a server.

/// XORs `payload` in place with `key`, byte by byte. See [`apply`](super::apply).
#[doc(hidden)]
pub fn apply(key: [u8; 4], phase: usize, payload: &mut [u8]) {
    for (i, byte) in payload.iter_mut().enumerate() {
        *byte ^= key[(phase % 4 + i) % 4];
    }
}

/// Copies `src` masked into `dst`, byte by byte. See [`copy`](super::copy).
///
/// # Panics
///
/// Panics if `src` and `dst` differ in length.
#[doc(hidden)]
pub fn copy(key: [u8; 4], phase: usize, src: &[u8], dst: &mut [u8]) {
    dst.copy_from_slice(src);
    apply(key, phase, dst);
}
