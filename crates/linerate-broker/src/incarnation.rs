//! Unique names for things that must never be confused with those of an earlier run.

use uuid::Uuid;

/// Returns a short random text that was never used before.
pub fn random() -> String {
    let (high, _) = Uuid::new_v4().as_u64_pair();
    format!("{high:016x}")
}
