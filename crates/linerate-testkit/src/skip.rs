//! Tests that need what a machine may lack.

use std::{env, fmt};

/// Says that a test does not run here, and what it lacks.
///
/// # Panics
/// `CI` is set: there every test runs.
pub fn skip(lacking: impl fmt::Display) {
    let is_ci = env::var_os("CI").is_some();
    assert!(!is_ci, "this test can't be skipped in CI: {lacking}");
    eprintln!("skipped: {lacking}");
}
