//! The stream behind a CONNECT, on its way to whoever answers that.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

use super::Stream;

/// Stands among the extensions of a CONNECT; gives its stream once the response has opened it.
#[derive(Clone)]
pub(crate) struct Connect(Arc<Mutex<Option<oneshot::Receiver<Stream>>>>);

impl Connect {
    /// Creates one, and what puts the stream into it.
    pub(super) fn new() -> (Self, oneshot::Sender<Stream>) {
        let (give, take) = oneshot::channel();
        (Self(Arc::new(Mutex::new(Some(take)))), give)
    }

    /// Takes what the stream comes out of; `None` if somebody has done that before.
    pub(crate) fn take(&self) -> Option<oneshot::Receiver<Stream>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns whether nobody wants the stream so far.
    pub(super) fn is_untaken(&self) -> bool {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some()
    }
}
