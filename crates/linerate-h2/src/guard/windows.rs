//! Windows that a client opens too far (RFC 9113 §6.9.1).
//!
//! h2 checks the window of a stream only until it has answered. On a stream that is answered and
//! whose request continues, a client could break the rule unnoticed. The guard computes a lower
//! bound of the window: it began at 0 or above, has grown by the client's increments, and has
//! shrunk at most by what was written on the whole connection and by changes of settings.

use std::collections::VecDeque;

/// The largest window that HTTP/2 allows.
pub(super) const WINDOW_BYTES_MAX: u32 = (1 << 31) - 1;

/// The initial window of a stream if settings do not change it (§6.9.2).
const INITIAL_BYTES: u32 = 65_535;

/// How many streams are remembered: those whose windows have started to grow most recently. This is
/// more than the 100 streams that may be open at a time by default. A stream that was forgotten
/// counts as a new one.
pub(super) const STREAMS_MAX: usize = 128;

/// How far a client has opened the windows of its latest streams.
#[derive(Debug)]
pub(super) struct Windows {
    streams: VecDeque<Window>,
    /// Bytes written to the client since the connection began.
    written_bytes: u64,
    initial_bytes: u32,
    /// By how many bytes settings have shrunk the windows of all streams.
    shrunk_bytes: u64,
}

/// The window of one stream since its first WINDOW_UPDATE frame.
#[derive(Debug)]
struct Window {
    stream: u32,
    grown_bytes: u64,
    written_before_bytes: u64,
}

impl Default for Windows {
    fn default() -> Self {
        Self {
            streams: VecDeque::new(),
            written_bytes: 0,
            initial_bytes: INITIAL_BYTES,
            shrunk_bytes: 0,
        }
    }
}

impl Windows {
    /// Records bytes that are being written to the client.
    pub(super) fn note_written(&mut self, bytes: usize) {
        self.written_bytes += bytes as u64;
    }

    /// Applies the initial window size of a setting: the windows of all streams grow or shrink by
    /// the difference (§6.9.2).
    pub(super) fn resize(&mut self, initial_bytes: u32) {
        let shrunk = self.initial_bytes.saturating_sub(initial_bytes);
        self.shrunk_bytes += u64::from(shrunk);
        self.initial_bytes = initial_bytes;
    }

    /// Opens the window of a stream further; returns whether it is certainly open too far now.
    pub(super) fn open(&mut self, stream: u32, increment_bytes: u32) -> bool {
        let written_bytes = self.written_bytes;
        let place = self.streams.iter().position(|it| it.stream == stream);
        let place = place.unwrap_or_else(|| {
            if self.streams.len() == STREAMS_MAX {
                self.streams.pop_front();
            }
            self.streams.push_back(Window {
                stream,
                grown_bytes: 0,
                written_before_bytes: written_bytes,
            });
            self.streams.len() - 1
        });
        let window = &mut self.streams[place];
        window.grown_bytes += u64::from(increment_bytes);
        // Earlier reductions by settings count as well, because the window may have been below 0
        // when it started to grow.
        let spent_bytes = written_bytes - window.written_before_bytes + self.shrunk_bytes;
        window.grown_bytes > u64::from(WINDOW_BYTES_MAX) + spent_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_may_be_as_large_as_any_and_no_larger() {
        let mut windows = Windows::default();
        assert!(!windows.open(1, WINDOW_BYTES_MAX));
        assert!(windows.open(1, 1));
        assert!(!windows.open(3, WINDOW_BYTES_MAX), "another stream");
    }

    #[test]
    fn what_was_written_may_be_given_back() {
        let mut windows = Windows::default();
        windows.note_written(1_000);
        assert!(!windows.open(1, WINDOW_BYTES_MAX));
        windows.note_written(10);
        assert!(!windows.open(1, 10));
        assert!(windows.open(1, 1));
    }

    #[test]
    fn what_settings_take_may_be_given_back() {
        let mut windows = Windows::default();
        windows.resize(INITIAL_BYTES - 100);
        windows.resize(WINDOW_BYTES_MAX);
        windows.resize(WINDOW_BYTES_MAX - 5);
        assert!(!windows.open(1, WINDOW_BYTES_MAX));
        assert!(!windows.open(1, 105));
        assert!(windows.open(1, 1));
    }

    #[test]
    fn all_streams_that_are_open_at_a_time_are_remembered() {
        let streams = crate::Http2Limits::default().streams_max;
        let mut windows = Windows::default();
        for stream in (1..).step_by(2).take(streams as usize) {
            assert!(!windows.open(stream, WINDOW_BYTES_MAX));
        }
        for stream in (1..).step_by(2).take(streams as usize) {
            assert!(windows.open(stream, 1), "{stream}");
        }
    }

    #[test]
    fn streams_that_are_forgotten_are_taken_for_new_ones() {
        let mut windows = Windows::default();
        let streams = (1..).step_by(2).take(STREAMS_MAX + 1);
        for stream in streams {
            assert!(!windows.open(stream, WINDOW_BYTES_MAX));
        }
        assert_eq!(windows.streams.len(), STREAMS_MAX);
        assert!(windows.open(3, 1), "remembered");
        assert!(!windows.open(1, 1), "forgotten");
    }
}
