//! Messages of a process that takes over, or is taken over.

use crate::takeover;

/// Reads `data` as messages, and gives them to both sides.
pub fn takeover(data: &[u8]) {
    takeover::fuzzing::messages(data);
}
