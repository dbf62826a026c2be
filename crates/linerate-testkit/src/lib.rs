//! Test helpers for the linerate workspace: pairs of endpoints, vectors, in-memory pipes.
#![forbid(unsafe_code)]
