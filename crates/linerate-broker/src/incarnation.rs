//! Names for what must never be taken for anything of an earlier run.

use uuid::Uuid;

/// Returns a short text that nobody has had before.
pub fn random() -> String {
    let (high, _) = Uuid::new_v4().as_u64_pair();
    format!("{high:016x}")
}
