//! Locks that outlive a panic of their holder.

use std::sync::{Mutex, MutexGuard};

/// Locks `mutex`. A panic while it was held has left the data intact, because each change is a
/// single call.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|error| error.into_inner())
}
