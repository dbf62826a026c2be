//! Closes a connection when its last user is gone.

use quinn::Connection;

use crate::fault::Code;

/// Closes a connection when it is dropped.
#[derive(Debug)]
pub(crate) struct Closing(pub(crate) Connection);

impl Drop for Closing {
    fn drop(&mut self) {
        // This does nothing if the connection was already closed, perhaps with another code.
        self.0.close(Code::NO_ERROR.into(), b"");
    }
}
