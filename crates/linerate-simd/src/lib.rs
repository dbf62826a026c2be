//! Masking, UTF-8, newline and JSON kernels for WebSocket, dispatched at run time.
//!
//! A WebSocket endpoint processes every byte of its messages in up to three ways, and each is a
//! module here: [`mask`] (RFC 6455 §5.3), [`utf8`] (RFC 6455 §8.1, RFC 3629) and [`newline`] (lines
//! in messages). [`marks`] finds the bytes at which lines of access logs are split, [`json`] finds
//! the structural characters of JSON, and [`append`] assembles frames. All of the project's
//! `unsafe` kernels are in this crate, behind safe functions. Each is tested against a byte-wise
//! implementation.
//!
//! The crate is `no_std` and needs an allocator. Without the feature `std` (on by default) it does
//! not detect the processor's features and uses the portable kernels.
//!
//! ```
//! use linerate_simd::{mask, utf8};
//!
//! let mut payload = *b"\x7f\x9f\x4d\x51\x58";
//! mask::apply([0x37, 0xfa, 0x21, 0x3d], 0, &mut payload);
//! assert_eq!(utf8::validate(&payload)?, "Hello");
//! # Ok::<(), utf8::Utf8Error>(())
//! ```

#![no_std]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

pub mod append;
mod block;
pub mod json;
pub mod marks;
pub mod mask;
pub mod newline;
pub mod utf8;

/// Limits the lengths that property tests draw to what Miri can interpret in reasonable time.
#[cfg(test)]
const fn drawn_len(len: usize) -> usize {
    if cfg!(miri) && len > 160 { 160 } else { len }
}
