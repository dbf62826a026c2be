//! How much of a connection's input is processed before other connections get their turn.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll},
};

use tokio::task::yield_now;

use crate::pool::ReadSize;

/// How much of its turn a connection has used, in parts of [`Turn::PARTS`].
///
/// Reads bring messages, and a turn has room for sixteen. Frames that are not messages and bytes
/// that were inflated cost time that no read accounts for: a read may contain thousands of Pings,
/// or a message that inflates a thousandfold. A turn ends after about 30 µs of these.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turn(u8);

impl Turn {
    const PARTS: u8 = u8::MAX;

    /// A turn has 16 reads of the usual size.
    const READ: u8 = 16;

    /// The number of bytes, made by inflating, that count as one part: a turn has 64 KiB.
    const INFLATED_BYTES: usize = 256;

    /// Returns whether other connections must get their turn before this one continues.
    #[inline]
    pub(super) const fn is_over(self) -> bool {
        self.0 == Self::PARTS
    }

    pub(super) const fn count_read(&mut self, size: ReadSize) {
        self.count(size.usual_reads() * Self::READ);
    }

    /// Counts a Ping, which is answered, or another control frame.
    pub(super) const fn count_control(&mut self) {
        self.count(1);
    }

    /// Counts a part of a message, with the number of bytes to which it was inflated.
    pub(super) fn count_fragment(&mut self, inflated_bytes: usize) {
        let inflated = inflated_bytes / Self::INFLATED_BYTES;
        self.count(u8::try_from(1 + inflated).unwrap_or(u8::MAX));
    }

    /// Begins the next turn, because there is nothing to do now.
    pub(super) const fn restart(&mut self) {
        self.0 = 0;
    }

    /// Begins the next turn, which is due when other tasks have had theirs.
    ///
    /// The runtime looks for input of other connections before that. Without tokio's `yield_now`,
    /// it would do so only after 61 turns.
    pub(super) fn yield_to_others(&mut self, cx: &mut Context<'_>) {
        self.restart();
        let yielded: Poll<()> = pin!(yield_now()).poll(cx);
        debug_assert!(yielded.is_pending(), "the task is woken later");
    }

    const fn count(&mut self, parts: u8) {
        self.0 = self.0.saturating_add(parts);
    }
}

#[cfg(test)]
mod tests {
    use super::Turn;
    use crate::pool::ReadSize;

    /// Returns how often a turn that begins can be counted before it is over.
    fn times(mut count: impl FnMut(&mut Turn)) -> usize {
        let mut turn = Turn::default();
        std::iter::from_fn(|| {
            count(&mut turn);
            (!turn.is_over()).then_some(())
        })
        .count()
            + 1
    }

    #[test]
    fn a_turn_is_over_after_what_takes_as_long() {
        assert_eq!(times(|turn| turn.count_read(ReadSize::Usual)), 16);
        assert_eq!(times(|turn| turn.count_read(ReadSize::Long)), 4);
        assert_eq!(times(Turn::count_control), 255);
        assert_eq!(times(|turn| turn.count_fragment(0)), 255);
        assert_eq!(times(|turn| turn.count_fragment(16 << 10)), 4);
        assert_eq!(times(|turn| turn.count_fragment(1 << 30)), 1);
    }
}
