//! The linerate binary.
#![forbid(unsafe_code)]

fn main() {}
