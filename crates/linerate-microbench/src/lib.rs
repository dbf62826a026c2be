//! The kernels of other libraries that linerate's kernels are compared with.
//!
//! The comparison is a benchmark: `cargo bench -p linerate-microbench --features contenders`.
//! Without that feature, this crate is empty.

/// The masking kernels of other libraries, compiled from their own source files.
///
/// They are private in those libraries. The build script finds the files that Cargo has unpacked;
/// the repository contains no copy of them.
#[cfg(feature = "contenders")]
#[allow(clippy::all, clippy::undocumented_unsafe_blocks, missing_docs, unused, unexpected_cfgs)]
#[rustfmt::skip]
pub mod contenders {
    include!(concat!(env!("OUT_DIR"), "/contenders.rs"));
}
