//! Skips tests that need something that the machine does not have.

use std::{env, fmt};

/// Reports that a test is skipped, and what it lacks.
///
/// # Panics
/// Panics if the environment variable `CI` is set, because every test must run there.
pub fn skip(lacking: impl fmt::Display) {
    let is_ci = env::var_os("CI").is_some();
    assert!(!is_ci, "this test cannot be skipped in CI: {lacking}");
    eprintln!("skipped: {lacking}");
}
