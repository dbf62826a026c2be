//! The closing handshake and its timeout (RFC 6455 §1.4, §7).

use core::time::Duration;

use super::{Arriving, Direction, Engine, Time, time};
use crate::{
    close::ControlPayload,
    close_code::CloseCode,
    error::{ProtocolError, SendError},
    role::{Endpoint, Role},
};

/// The state of a connection after the opening handshake (RFC 6455 §4.1, §7.1).
///
/// This enum is exhaustive: it has the states of the RFC except `Connecting`, which
/// [`handshake`](crate::handshake) covers.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
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

impl<E: Endpoint> Engine<E> {
    /// Starts the closing handshake: queues a Close frame for
    /// [`poll_transmit`](Self::poll_transmit).
    ///
    /// Messages keep arriving until the peer's Close frame; nothing more can be sent. Does nothing
    /// if the connection is already closing.
    ///
    /// # Errors
    /// Fails if `reason` has more than 123 bytes.
    pub fn close(&mut self, code: CloseCode, reason: &str, now: Duration) -> Result<(), SendError> {
        let payload = ControlPayload::close(Some(code), reason)?;
        if self.output == Direction::Open {
            self.queue_close(payload, time(now));
        }
        Ok(())
    }

    /// Fails the connection (§7.1.7): queues a Close frame with the error's code and ignores all
    /// further input.
    ///
    /// The engine does this itself for the errors that it finds. Call it only for an error that
    /// the caller finds in the data of [`Events::next_raw`](super::Events::next_raw).
    pub fn fail(&mut self, error: &ProtocolError) {
        self.fail_at(error, self.keepalive.last_input());
    }

    pub(super) fn fail_at(&mut self, error: &ProtocolError, now: Time) {
        self.stop_input();
        if self.output == Direction::Open {
            let mut payload = ControlPayload::new();
            payload.set(&error.close_code().as_u16().to_be_bytes());
            self.queue_close(payload, now);
        }
    }

    /// Records that the stream ended and returns how the connection ended.
    pub fn handle_eof(&mut self) -> Closed {
        let clean = self.state() == State::Closed;
        if self.input == Direction::Open {
            self.stop_input();
        }
        self.output = Direction::Closed;
        self.answer_due = None;
        self.keepalive.cancel_ping();
        match self.peer_code {
            0 => Closed {
                code: Closed::ABNORMAL,
                clean: false,
            },
            code => Closed { code, clean },
        }
    }

    /// Returns the state.
    pub fn state(&self) -> State {
        match (self.input, self.output, self.answer_due) {
            (Direction::Open, Direction::Open, _) => State::Open,
            (Direction::Closed, Direction::Closed, None) => State::Closed,
            _ => State::Closing,
        }
    }

    /// Returns whether further input is ignored: the peer's Close frame has arrived, or the
    /// connection failed.
    pub fn is_input_over(&self) -> bool {
        self.input != Direction::Open
    }

    /// Returns whether [`poll_transmit`](Self::poll_transmit) has appended our Close frame, after
    /// which there is never any output.
    pub fn is_output_over(&self) -> bool {
        self.output != Direction::Open && self.answer_due.is_none()
    }

    /// Returns whether our side should end the stream once the output is written.
    ///
    /// §7.1.1: the server closes the TCP connection first. A client waits for that until the
    /// closing handshake times out, unless the peer violated the protocol.
    pub fn ends_stream(&self) -> bool {
        self.is_output_over()
            && self.is_input_over()
            && (self.endpoint.role() == Role::Server || self.input == Direction::Failed)
    }

    /// Ignores all input from now on.
    fn stop_input(&mut self) {
        self.input = Direction::Failed;
        self.receiving.frame = Arriving::Nothing;
        #[cfg(feature = "deflate")]
        if let Some(codec) = self.codec_mut() {
            codec.stop();
        }
    }

    /// Answers the peer's Close frame.
    pub(super) fn answer_close(&mut self, code: Option<CloseCode>) {
        self.record_peer_close(code);
        if self.output == Direction::Open {
            // §5.5.1: "the endpoint MUST send a Close frame in response". We echo the code only,
            // because the reason is text that the peer controls.
            let mut payload = ControlPayload::new();
            if let Some(code) = code {
                payload.set(&code.as_u16().to_be_bytes());
            }
            let now = self.keepalive.last_input();
            self.queue_close(payload, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;

    use super::*;
    use crate::{engine::Event, role::Server};

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
