//! Passes the stream of a CONNECT request to the code that accepts it.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

use crate::stream::Stream;

/// An extension of a CONNECT request. It provides the request's stream once the response has opened
/// it.
#[derive(Clone, Debug)]
pub struct Connect(Arc<Mutex<Option<oneshot::Receiver<Stream>>>>);

impl Connect {
    /// Creates the extension and the sender that passes the stream to it.
    pub(crate) fn new() -> (Self, oneshot::Sender<Stream>) {
        let (give, take) = oneshot::channel();
        (Self(Arc::new(Mutex::new(Some(take)))), give)
    }

    /// Takes the receiver of the stream, or `None` if it was taken before.
    pub fn take(&self) -> Option<oneshot::Receiver<Stream>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns whether the receiver was not taken yet.
    pub(crate) fn is_untaken(&self) -> bool {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some()
    }
}
