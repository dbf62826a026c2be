//! Passes the streams whose windows are open too far from the guard to the tasks that can reset
//! them.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

/// How many streams are kept that no task watches. h2 itself resets a stream that it has not
/// answered.
pub(super) const WAITING_MAX: usize = 32;

/// The streams of one connection whose windows overflow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overflows(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    noted: VecDeque<u32>,
    watched: Vec<(u32, oneshot::Sender<()>)>,
}

impl Overflows {
    /// Records a stream, and notifies the task that watches it.
    pub(super) fn note(&self, stream: u32) {
        let mut state = self.lock();
        if let Some(place) = state.watched.iter().position(|(it, _)| *it == stream) {
            let (_, watcher) = state.watched.swap_remove(place);
            // A task that has dropped the receiver is not interested.
            _ = watcher.send(());
        } else if !state.noted.contains(&stream) {
            if state.noted.len() == WAITING_MAX {
                state.noted.pop_front();
            }
            state.noted.push_back(stream);
        }
    }

    /// Returns a receiver that is notified when the stream overflows, or immediately if it already
    /// has.
    pub(crate) fn watch(&self, stream: u32) -> oneshot::Receiver<()> {
        let (watcher, overflow) = oneshot::channel();
        let mut state = self.lock();
        state.watched.retain(|(_, watcher)| !watcher.is_closed());
        if let Some(place) = state.noted.iter().position(|it| *it == stream) {
            state.noted.remove(place);
            _ = watcher.send(());
        } else {
            state.watched.push((stream, watcher));
        }
        overflow
    }

    /// Returns the streams that no task has watched.
    #[cfg(fuzzing)]
    pub(super) fn waiting(&self) -> Vec<u32> {
        self.lock().noted.iter().copied().collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_told_of_before_and_after_it_is_watched() {
        let overflows = Overflows::default();
        overflows.note(3);
        assert!(overflows.watch(3).try_recv().is_ok());
        assert!(overflows.watch(3).try_recv().is_err(), "reported only once");
        let mut watch = overflows.watch(5);
        overflows.note(7);
        assert!(watch.try_recv().is_err());
        overflows.note(5);
        assert!(watch.try_recv().is_ok());
    }

    #[test]
    fn neither_streams_nor_tasks_gather() {
        let overflows = Overflows::default();
        for stream in 0..1_000 {
            overflows.note(stream);
            overflows.note(stream);
            drop(overflows.watch(10_000 + stream));
        }
        let state = overflows.lock();
        assert_eq!((state.noted.len(), state.watched.len()), (WAITING_MAX, 1));
    }
}
