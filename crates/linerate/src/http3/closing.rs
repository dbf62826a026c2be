//! Connections that end with those who need them.

use quinn::Connection;

use super::fault::Code;

/// Closes a connection when it is dropped.
#[derive(Debug)]
pub(super) struct Closing(pub(super) Connection);

impl Drop for Closing {
    fn drop(&mut self) {
        // It does nothing to a connection that was closed before, with what was said then.
        self.0.close(Code::NO_ERROR.into(), b"");
    }
}
