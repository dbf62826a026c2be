//! Streams that a client has ended (RFC 9113 §5.1).

use std::collections::VecDeque;

/// How many streams are remembered. h2 forgets a stream soon after both sides have ended it, and
/// then handles frames on it as the standard requires.
const STREAMS_MAX: usize = 128;

/// The latest streams on which the client sends no more.
#[derive(Debug, Default)]
pub(super) struct Ended(VecDeque<u32>);

impl Ended {
    pub(super) fn insert(&mut self, stream: u32) {
        if self.0.len() == STREAMS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(stream);
    }

    pub(super) fn contains(&self, stream: u32) -> bool {
        self.0.contains(&stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_may_be_are_remembered_and_no_more() {
        let mut ended = Ended::default();
        let streams = (1..).step_by(2).take(STREAMS_MAX + 1);
        streams.for_each(|stream| ended.insert(stream));
        assert!(!ended.contains(1));
        assert!(ended.contains(3));
        assert!(ended.contains(1 + 2 * STREAMS_MAX as u32));
        assert_eq!(ended.0.len(), STREAMS_MAX);
    }
}
