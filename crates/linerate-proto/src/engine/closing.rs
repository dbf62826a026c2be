//! The closing handshake (RFC 6455 §1.4, §7).

mod portable;

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

/// The side that sent the first Close frame.
///
/// This enum is exhaustive: a connection has two ends.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a connection has two sides")]
pub enum Initiator {
    /// This side, also if the Close frames of both sides crossed.
    Local,
    /// The peer; our Close frame answered it.
    Peer,
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
    /// Our Close frame answered the peer's. Only for output.
    Answered,
    /// A Close frame was sent or received.
    Closed,
    /// The connection failed or ended: input is ignored, and there is no more output.
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

    /// Records that our Close frame is queued.
    pub(super) fn close_output(&mut self) {
        self.output = match self.input {
            Direction::Closed => Direction::Answered,
            _ => Direction::Closed,
        };
    }

    /// Records that nothing more can be sent, although there was no Close frame.
    pub(super) const fn fail_output(&mut self) {
        self.output = Direction::Failed;
    }

    #[inline]
    pub(super) fn is_input_open(&self) -> bool {
        self.input == Direction::Open
    }

    pub(super) fn has_input_failed(&self) -> bool {
        self.input == Direction::Failed
    }

    /// Returns who sent the first Close frame; `None` if we have not sent any.
    pub(super) const fn initiator(&self) -> Option<Initiator> {
        match self.output {
            Direction::Answered => Some(Initiator::Peer),
            Direction::Closed => Some(Initiator::Local),
            Direction::Failed | Direction::Open => None,
        }
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
            (Direction::Closed, Direction::Answered | Direction::Closed, false) => State::Closed,
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
    use alloc::{sync::Arc, vec::Vec};
    use core::time::Duration;

    use crate::{
        close::CloseFrame,
        close_code::CloseCode,
        engine::{Engine, Event, Initiator},
        error::ProtocolError,
        role::Server,
    };

    fn close_frame(code: CloseCode, reason: &str) -> CloseFrame<'_> {
        CloseFrame {
            code: Some(code),
            reason,
        }
    }

    #[test]
    fn our_close_frame_is_known_until_the_end_together_with_who_began() {
        let mut engine = Engine::new(Server, Arc::default(), Duration::ZERO);
        assert_eq!(engine.sent_close(), None);
        engine
            .close(CloseCode::NORMAL, "done", Duration::ZERO)
            .unwrap();
        for _ in 0..2 {
            let expected = close_frame(CloseCode::NORMAL, "done");
            assert_eq!(engine.sent_close(), Some((expected, Initiator::Local)));
            engine.poll_transmit(&mut Vec::new());
            // The peer's Close frame crosses ours.
            let mut input = *b"\x88\x82\x00\x00\x00\x00\x03\xe9";
            assert!(
                engine
                    .handle_input(&mut input, Duration::ZERO)
                    .next()
                    .is_none_or(|event| event.is_ok())
            );
            engine.handle_eof();
        }

        let mut engine = Engine::new(Server, Arc::default(), Duration::ZERO);
        let mut input = *b"\x88\x85\x00\x00\x00\x00\x03\xe9bye";
        assert!(
            engine
                .handle_input(&mut input, Duration::ZERO)
                .next()
                .is_some()
        );
        engine.handle_eof();
        let expected = close_frame(CloseCode::GOING_AWAY, "");
        assert_eq!(engine.sent_close(), Some((expected, Initiator::Peer)));
    }

    #[test]
    fn a_failure_sends_its_code_and_an_end_without_close_frames_sends_nothing() {
        let mut engine = Engine::new(Server, Arc::default(), Duration::ZERO);
        engine.fail(&ProtocolError::UnmaskedFrame);
        engine.handle_eof();
        let expected = close_frame(CloseCode::PROTOCOL_ERROR, "");
        assert_eq!(engine.sent_close(), Some((expected, Initiator::Local)));

        let mut engine = Engine::new(Server, Arc::default(), Duration::ZERO);
        let mut ping = *b"\x89\x82\x00\x00\x00\x00\x03\xe8";
        assert!(
            engine
                .handle_input(&mut ping, Duration::ZERO)
                .next()
                .is_some()
        );
        engine.handle_eof();
        assert_eq!(engine.sent_close(), None);
    }

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
