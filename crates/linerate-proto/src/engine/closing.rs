//! The closing handshake (RFC 6455 §1.4, §7).

use crate::{close_code::CloseCode, error::SendError};

/// The state of a connection after the opening handshake (RFC 6455 §4.1, §7.1).
///
/// This enum is exhaustive: it has the states of the RFC except `Connecting`, which
/// [`handshake`](crate::handshake) covers.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "the states of RFC 6455")]
pub enum State {
    /// Messages may be sent and received.
    Open,
    /// A Close frame was sent or received, or the connection failed, but the closing handshake is
    /// not complete.
    Closing,
    /// Both Close frames were exchanged; only the end of the stream is left.
    Closed,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "other transports, such as a browser, build it too"
)]
pub struct Closed {
    /// The code of the peer's Close frame, or a code that is never sent:
    /// [`NO_STATUS`](Self::NO_STATUS) or [`ABNORMAL`](Self::ABNORMAL).
    pub code: u16,
    /// True if both sides sent a Close frame (§7.1.4).
    pub clean: bool,
}

impl Closed {
    /// 1005: the peer's Close frame had no code.
    pub const NO_STATUS: u16 = 1005;
    /// 1006: the stream ended without a Close frame.
    pub const ABNORMAL: u16 = 1006;
}

/// How far the closing handshake is.
#[derive(Debug)]
pub(super) struct Closing {
    input: Direction,
    output: Direction,
    /// The code of the peer's Close frame: 0 before it arrives, [`Closed::NO_STATUS`] if it has no
    /// code.
    peer_code: u16,
}

/// The state of one direction of the connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Direction {
    /// A Close frame was sent or received.
    Closed,
    /// The connection failed: input is ignored.
    Failed,
    /// Messages may be sent or received.
    Open,
}

impl Closing {
    pub(super) const fn new() -> Self {
        Self {
            input: Direction::Open,
            output: Direction::Open,
            peer_code: 0,
        }
    }

    /// Records the peer's Close frame.
    pub(super) fn handle_close(&mut self, code: Option<CloseCode>) {
        self.input = Direction::Closed;
        self.peer_code = code.map_or(Closed::NO_STATUS, CloseCode::as_u16);
    }

    /// Records that all further input is ignored.
    pub(super) const fn fail_input(&mut self) {
        self.input = Direction::Failed;
    }

    /// Records that our Close frame is queued, or that nothing more can be sent.
    pub(super) const fn close_output(&mut self) {
        self.output = Direction::Closed;
    }

    #[inline]
    pub(super) fn is_input_open(&self) -> bool {
        self.input == Direction::Open
    }

    pub(super) fn has_input_failed(&self) -> bool {
        self.input == Direction::Failed
    }

    #[inline]
    pub(super) fn is_output_open(&self) -> bool {
        self.output == Direction::Open
    }

    #[inline]
    pub(super) fn check_output_open(&self) -> Result<(), SendError> {
        if self.is_output_open() {
            Ok(())
        } else {
            Err(SendError::Closed)
        }
    }

    /// Returns the state, given whether a control frame is still queued.
    #[inline]
    pub(super) const fn state(&self, is_answer_due: bool) -> State {
        match (self.input, self.output, is_answer_due) {
            (Direction::Open, Direction::Open, _) => State::Open,
            (Direction::Closed, Direction::Closed, false) => State::Closed,
            _ => State::Closing,
        }
    }

    /// Returns how a connection ended whose closing handshake was or was not complete.
    pub(super) const fn ended(&self, clean: bool) -> Closed {
        match self.peer_code {
            0 => Closed {
                code: Closed::ABNORMAL,
                clean: false,
            },
            code => Closed { code, clean },
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;
    use core::time::Duration;

    use crate::{
        engine::{Engine, Event},
        role::Server,
    };

    #[test]
    fn input_after_the_end_within_a_frame_is_ignored() {
        let mut engine = Engine::new(Server, Arc::default(), Duration::ZERO);
        let mut input = *b"\x82\x84\x00\x00\x00\x00ab";
        let mut events = engine.handle_input(&mut input, Duration::ZERO);
        assert!(matches!(events.next(), Some(Ok(Event::Chunk(_)))));
        assert!(!engine.handle_eof().clean);
        let mut more = *b"c";
        let mut events = engine.handle_input(&mut more, Duration::ZERO);
        assert_eq!(events.next(), None);
        assert_eq!(events.consumed(), 1);
    }
}
