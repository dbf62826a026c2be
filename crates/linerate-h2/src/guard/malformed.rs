//! Requests that are malformed in a way that h2 cannot see.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

/// How many streams may be recorded until they are taken. Requests that h2 rejects itself are never
/// taken.
const WAITING_MAX: usize = 128;

/// Passes the streams of such requests from the guard to the code that receives the requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Malformed(Arc<Mutex<VecDeque<u32>>>);

impl Malformed {
    /// Records a stream; returns `false` if there are too many.
    pub(super) fn note(&self, stream: u32) -> bool {
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = streams.len() < WAITING_MAX;
        if has_room {
            streams.push_back(stream);
        }
        has_room
    }

    /// Returns whether the request of this stream is malformed, and forgets it and all earlier
    /// ones: requests arrive in the order of their streams.
    pub(crate) fn take(&self, stream: u32) -> bool {
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(first) = streams.front()
            && *first <= stream
        {
            let is_it = *first == stream;
            streams.pop_front();
            if is_it {
                return true;
            }
        }
        false
    }

    /// Returns the recorded streams.
    #[cfg(fuzzing)]
    pub(super) fn waiting(&self) -> Vec<u32> {
        let streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        streams.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_taken_in_their_order() {
        let malformed = Malformed::default();
        for stream in [3, 7, 9] {
            assert!(malformed.note(stream));
        }
        assert!(!malformed.take(1));
        assert!(malformed.take(3));
        assert!(!malformed.take(3));
        assert!(malformed.take(9), "stream 7 is skipped");
        assert!(malformed.0.lock().unwrap().is_empty());
    }

    #[test]
    fn as_many_may_wait_as_may_be() {
        let malformed = Malformed::default();
        let fit = (0..).take_while(|stream| malformed.note(*stream)).count();
        assert_eq!(fit, WAITING_MAX);
        assert!(malformed.take(0));
        assert!(malformed.note(200));
    }
}
