//! Input: from frames to events (RFC 6455 §6.2, §8.1).

use alloc::vec::Vec;

use linerate_simd::{mask, utf8};

use super::{
    Arriving, Aside, Chunk, Direction, Engine, Event, Message, RawEvent, Taken,
    framing::{ControlFrame, Piece, Step},
};
use crate::{
    close::CloseFrame,
    error::ProtocolError,
    frame::Header,
    opcode::{MessageKind, Opcode},
    role::{Endpoint, MaskKey, Role},
};

/// The events in one input; a lending iterator.
#[derive(Debug)]
pub struct Events<'e, 'i, E> {
    pub(super) engine: &'e mut Engine<E>,
    pub(super) input: &'i mut [u8],
    pub(super) at: usize,
    /// Holds the end of a compressed message while the caller borrows it.
    #[cfg(feature = "deflate")]
    pub(super) spent: Option<crate::deflate::Spent>,
}

impl<'e, 'i, E: Endpoint> Events<'e, 'i, E> {
    pub(super) fn new(engine: &'e mut Engine<E>, input: &'i mut [u8]) -> Self {
        Self {
            engine,
            input,
            at: 0,
            #[cfg(feature = "deflate")]
            spent: None,
        }
    }

    /// Returns the next event, or `None` when the input is used up.
    ///
    /// # Errors
    /// Fails if the peer violated the protocol or a limit. The connection has then failed: a Close
    /// frame is queued and all further input is ignored.
    #[allow(
        clippy::should_implement_trait,
        reason = "events borrow from `self`, which `Iterator` does not allow"
    )]
    #[inline]
    pub fn next(&mut self) -> Option<Result<Event<'_>, ProtocolError>> {
        // Each event uses at least one byte.
        if self.at == self.input.len() {
            return self.nothing_more();
        }
        if let Some((piece, start)) = self.take_inner_piece() {
            let chunk = self.engine.chunk(piece, &mut self.input[start..]);
            return Some(chunk.map(Event::Chunk));
        }
        let (piece, bytes) = match self.take_whole_message() {
            Some(data) => data,
            None => match self.step() {
                Ok(Step::Data(piece, bytes)) => (piece, bytes),
                Ok(Step::Control(frame)) => return Some(self.control(frame).map(Event::from)),
                #[cfg(feature = "deflate")]
                Ok(Step::Inflated(piece)) => return Some(self.inflated(piece)),
                Ok(Step::Feed) => return self.nothing_more(),
                Err(error) => return Some(Err(self.fail(error))),
            },
        };
        let payload = &mut self.input[self.at - bytes..self.at];
        Some(self.engine.message(piece, payload))
    }

    /// Returns the next event with the payload of messages still masked, or `None` when the input
    /// is used up.
    ///
    /// This is for callers that copy payloads: they can unmask and copy in one pass. Text is not
    /// validated.
    ///
    /// # Errors
    /// Same as for [`next`](Self::next).
    #[inline]
    pub fn next_raw(&mut self) -> Option<Result<RawEvent<'_>, ProtocolError>> {
        if self.at == self.input.len() {
            return self.nothing_more();
        }
        if let Some((piece, start)) = self.take_inner_piece() {
            return Some(Ok(RawEvent::Data(piece.data(&mut self.input[start..]))));
        }
        let (piece, bytes) = match self.take_whole_message() {
            Some(data) => data,
            None => match self.step() {
                Ok(Step::Data(piece, bytes)) => (piece, bytes),
                Ok(Step::Control(frame)) => return Some(self.control(frame).map(RawEvent::from)),
                #[cfg(feature = "deflate")]
                Ok(Step::Inflated(piece)) => {
                    let data = super::Data {
                        inflated: true,
                        ..piece.data(self.inflated_bytes())
                    };
                    return Some(Ok(RawEvent::Data(data)));
                }
                Ok(Step::Feed) => return self.nothing_more(),
                Err(error) => return Some(Err(self.fail(error))),
            },
        };
        let payload = &mut self.input[self.at - bytes..self.at];
        Some(Ok(RawEvent::Data(piece.data(payload))))
    }

    /// Releases the memory that a compressed message needs only while there is input.
    ///
    /// [`next`](Self::next) does the same when it returns `None`. Call this only if you stop at the
    /// end of the input without waiting for `None`.
    #[inline]
    pub fn rest(&mut self) {
        #[cfg(feature = "deflate")]
        if let Some(codec) = self.engine.codec_mut() {
            codec.rest();
        }
    }

    #[inline]
    fn nothing_more<T>(&mut self) -> Option<T> {
        self.rest();
        None
    }

    /// Appends the control frames that are due to `out`, as [`Engine::poll_transmit`] does.
    ///
    /// Call this after each [`Event::Ping`] to answer every Ping; otherwise only the newest is
    /// answered.
    pub fn poll_transmit(&mut self, out: &mut Vec<u8>) -> bool {
        self.engine.poll_transmit(out)
    }

    /// Returns how many bytes of the input have been used up.
    #[inline]
    pub const fn consumed(&self) -> usize {
        self.at
    }

    /// Returns whether the event just returned used up the input, so that a caller can write the
    /// output that it has collected.
    ///
    /// `false` can also mean that an unfinished frame follows; the next call to
    /// [`next`](Self::next) then returns `None`.
    #[inline]
    pub const fn last_in_input(&self) -> bool {
        self.at == self.input.len()
    }

    /// Takes the remaining input as a piece of a message if all of it is inside one frame; also
    /// returns the offset at which the piece starts.
    #[inline]
    fn take_inner_piece(&mut self) -> Option<(Piece, usize)> {
        let (start, end) = (self.at, self.input.len());
        let piece = self.engine.receiving.take_inner_piece(end - start)?;
        self.at = end;
        Some((piece, start))
    }

    /// Takes a message that is complete in the input, which needs no state. If this returns `None`,
    /// [`step`](Self::step) determines what comes next.
    #[inline]
    fn take_whole_message(&mut self) -> Option<(Piece, usize)> {
        let role = self.engine.endpoint.role();
        let whole = self.engine.whole_message(&self.input[self.at..], role)?;
        self.at += whole.prefix_bytes + whole.bytes;
        let piece = Piece {
            kind: whole.kind,
            begins: true,
            ends: true,
            frame_bytes_left: 0,
            mask: whole.mask,
            phase: 0,
            offset: 0,
        };
        Some((piece, whole.bytes))
    }

    /// Takes the available payload of a data frame; `None` if nothing has arrived yet.
    #[inline]
    fn take_piece(&mut self) -> Option<(Piece, usize)> {
        let available = self.input.len() - self.at;
        let taken = self.engine.receiving.take_piece(available)?;
        self.at += taken.1;
        Some(taken)
    }

    /// Reads a header if no frame has begun, and takes the available part of the frame's payload.
    fn step(&mut self) -> Result<Step, ProtocolError> {
        if self.engine.input != Direction::Open {
            self.at = self.input.len();
            return Ok(Step::Feed);
        }
        let receiving = &mut self.engine.receiving;
        if !matches!(receiving.frame, Arriving::Payload(_)) {
            let rest = &self.input[self.at..];
            let (header, bytes) = receiving.read_header(rest, self.engine.endpoint.role())?;
            self.at += bytes;
            let Some(header) = header else {
                return Ok(Step::Feed);
            };
            receiving.begin_frame(header, &self.engine.config.limits)?;
        }
        let Arriving::Payload(frame) = &mut receiving.frame else {
            return Ok(Step::Feed);
        };
        if !frame.opcode.is_control() {
            #[cfg(feature = "deflate")]
            if receiving.message.is_some_and(|message| message.compressed) {
                return self.step_compressed();
            }
            return Ok(match self.take_piece() {
                Some((piece, bytes)) => Step::Data(piece, bytes),
                None => Step::Feed,
            });
        }
        let (bytes, phase) = frame.take(self.input.len() - self.at);
        let frame = *frame;
        self.at += bytes;
        let payload = &mut self.input[self.at - bytes..self.at];
        Ok(receiving.take_control(&frame, payload, phase))
    }

    /// Processes a control frame and returns it.
    fn control(&mut self, frame: ControlFrame) -> Result<Control<'_>, ProtocolError> {
        let ControlFrame {
            opcode,
            bytes,
            pieces,
        } = frame;
        let Self {
            engine, input, at, ..
        } = self;
        let from_input = &input[*at - bytes..*at];
        if opcode == Opcode::Close {
            let payload = engine.receiving.control_payload(pieces, from_input);
            match CloseFrame::decode(payload).map(|frame| frame.code) {
                Ok(code) => engine.answer_close(code),
                Err(error) => {
                    engine.fail(&error);
                    return Err(error);
                }
            }
            let payload = engine.receiving.control_payload(pieces, from_input);
            return CloseFrame::decode(payload).map(Control::Close);
        }
        let payload = engine.receiving.control_payload(pieces, from_input);
        if opcode == Opcode::Pong {
            if engine.output == Direction::Open {
                engine.keepalive.handle_pong(payload);
            }
            return Ok(Control::Pong(payload));
        }
        if engine.output == Direction::Open {
            Aside::of(&mut engine.aside).answer.set(payload);
            engine.answer_due = Some(Opcode::Pong);
        }
        Ok(Control::Ping(payload))
    }

    #[cold]
    fn fail(&mut self, error: ProtocolError) -> ProtocolError {
        self.engine.fail(&error);
        self.at = self.input.len();
        error
    }
}

/// A complete, unfragmented message at the start of the input.
struct WholeMessage {
    kind: MessageKind,
    mask: Option<MaskKey>,
    prefix_bytes: usize,
    bytes: usize,
}

impl<E: Endpoint> Engine<E> {
    /// Takes the message at `at` in `input` if it is complete and in one frame: unmasks it in place
    /// and validates it if it is text.
    ///
    /// Returns `None` and changes nothing in all other cases; call
    /// [`handle_input`](Self::handle_input) then.
    ///
    /// This is for callers that use the engine, or inspect the whole input, while they hold a
    /// message. This method does not learn the time, so call [`handle_input`](Self::handle_input)
    /// once for each read, with empty input if nothing is left.
    ///
    /// # Errors
    /// Fails if a text message is not UTF-8. The connection has then failed, as in
    /// [`Events::next`].
    ///
    /// # Panics
    /// Panics if `at` is greater than the length of `input`.
    #[inline]
    pub fn take_message<'i>(
        &mut self,
        input: &'i mut [u8],
        at: usize,
    ) -> Option<Result<Taken<'i>, ProtocolError>> {
        self.take_message_as(self.endpoint.role(), input, at)
    }

    /// Takes a message like [`take_message`](Self::take_message), for callers that know the role.
    ///
    /// `role` must be the endpoint's. If the endpoint chooses its role at run time, passing a
    /// constant here avoids the branches for the other role.
    ///
    /// # Errors
    /// Same as for [`take_message`](Self::take_message).
    ///
    /// # Panics
    /// Panics if `at` is greater than the length of `input`.
    #[inline(always)]
    pub fn take_message_as<'i>(
        &mut self,
        role: Role,
        input: &'i mut [u8],
        at: usize,
    ) -> Option<Result<Taken<'i>, ProtocolError>> {
        let whole = self.whole_message(&input[at..], role)?;
        let start = at + whole.prefix_bytes;
        let end = start + whole.bytes;
        if whole.kind == MessageKind::Binary {
            if let Some(MaskKey(key)) = whole.mask {
                mask::apply(key, 0, &mut input[start..end]);
            }
            let message = Message::Binary(&input[start..end]);
            return Some(Ok(Taken {
                message,
                input,
                end,
            }));
        }
        let text = match whole.mask {
            Some(MaskKey(key)) => utf8::validate_masked(key, input, start..end),
            None => utf8::validate(&input[start..end]).map(|text| (text, &*input)),
        };
        Some(match text {
            Ok((text, input)) => Ok(Taken {
                message: Message::Text(text),
                input,
                end,
            }),
            Err(error) => Err(self.fail_text(0, error.valid_up_to())),
        })
    }

    /// Returns the message at the start of `input` if it is complete, in one frame and valid.
    #[inline(always)]
    fn whole_message(&self, input: &[u8], role: Role) -> Option<WholeMessage> {
        let receiving = &self.receiving;
        if self.input != Direction::Open
            || !matches!(receiving.frame, Arriving::Nothing)
            || receiving.message.is_some()
        {
            return None;
        }
        let kind = match input.first() {
            Some(0x81) => MessageKind::Text,
            Some(0x82) => MessageKind::Binary,
            _ => return None,
        };
        let (header, prefix_bytes) = Header::decode(input).ok()??;
        let limits = &self.config.limits;
        if header.mask.is_some() != role.expects_masked()
            || header.payload_bytes > (input.len() - prefix_bytes) as u64
            || !limits.allow_message_of_one_frame(header.payload_bytes)
        {
            return None;
        }
        Some(WholeMessage {
            kind,
            mask: header.mask,
            prefix_bytes,
            bytes: header.payload_bytes as usize,
        })
    }

    /// Unmasks a message or a piece of one and, if it is text, validates it.
    #[inline]
    fn message<'a>(
        &mut self,
        piece: Piece,
        payload: &'a mut [u8],
    ) -> Result<Event<'a>, ProtocolError> {
        if !(piece.begins && piece.ends) {
            return self.chunk(piece, payload).map(Event::Chunk);
        }
        let Piece {
            kind, mask, offset, ..
        } = piece;
        let text = match (kind, mask) {
            (MessageKind::Binary, _) => return Ok(Event::Binary(piece.data(payload).unmask())),
            (MessageKind::Text, Some(MaskKey(key))) => {
                let bytes = payload.len();
                utf8::validate_masked(key, payload, 0..bytes).map(|(text, _)| text)
            }
            (MessageKind::Text, None) => utf8::validate(payload),
        };
        text.map(Event::Text)
            .map_err(|error| self.fail_text(offset, error.valid_up_to()))
    }

    /// Unmasks a piece of a message and, if it is text, validates it.
    ///
    /// Always inline: for a message that arrives in small reads, the cost per read dominates.
    #[inline(always)]
    fn chunk<'a>(
        &mut self,
        piece: Piece,
        payload: &'a mut [u8],
    ) -> Result<Chunk<'a>, ProtocolError> {
        let Piece {
            kind,
            begins,
            ends,
            offset,
            ..
        } = piece;
        let bytes = &*piece.data(payload).unmask();
        if kind == MessageKind::Text {
            self.receiving
                .validate_piece(bytes, ends)
                .map_err(|valid_up_to| self.fail_text(offset, valid_up_to))?;
        }
        Ok(Chunk {
            kind,
            begins,
            ends,
            bytes,
        })
    }

    /// Fails the connection because a piece of text, at `offset` in the message, is not UTF-8.
    #[cold]
    pub(super) fn fail_text(&mut self, offset: u64, valid_up_to: usize) -> ProtocolError {
        let error = ProtocolError::InvalidUtf8 {
            offset: offset + valid_up_to as u64,
        };
        self.fail(&error);
        error
    }
}

/// A control frame whose payload is borrowed.
enum Control<'a> {
    Close(CloseFrame<'a>),
    Ping(&'a [u8]),
    Pong(&'a [u8]),
}

impl<'a> From<Control<'a>> for Event<'a> {
    fn from(control: Control<'a>) -> Self {
        match control {
            Control::Close(frame) => Self::Close(frame),
            Control::Ping(payload) => Self::Ping(payload),
            Control::Pong(payload) => Self::Pong(payload),
        }
    }
}

impl<'a> From<Control<'a>> for RawEvent<'a> {
    fn from(control: Control<'a>) -> Self {
        match control {
            Control::Close(frame) => Self::Close(frame),
            Control::Ping(payload) => Self::Ping(payload),
            Control::Pong(payload) => Self::Pong(payload),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;
    use core::time::Duration;

    use super::*;
    use crate::role::Server;

    #[test]
    fn take_message_takes_only_whole_messages() {
        let mut engine = Engine::new(Server, Arc::default(), Duration::ZERO);
        let mut input = *b"\x81\x82\x01\x01\x01\x01`c\x82\x80\0\0\0\0\x01\x81\0\0\0\0x";
        let taken = engine.take_message(&mut input, 0).unwrap().unwrap();
        assert_eq!((taken.message, taken.end), (Message::Text("ab"), 8));
        assert_eq!(taken.input[6..8], *b"ab");
        let taken = engine.take_message(&mut input, 8).unwrap().unwrap();
        assert_eq!((taken.message, taken.end), (Message::Binary(b""), 14));
        // A fragment, and then bytes that look like a message inside the fragmented one.
        assert_eq!(engine.take_message(&mut input, 14), None);
        let mut events = engine.handle_input(&mut input[14..], Duration::ZERO);
        assert!(matches!(events.next_raw(), Some(Ok(RawEvent::Data(data))) if !data.ends));
        assert_eq!(engine.take_message(&mut input.clone(), 0), None);
    }

    #[test]
    fn take_message_leaves_invalid_or_unfinished_messages() {
        let mut engine = Engine::new(Server, Arc::default(), Duration::ZERO);
        for wire in [
            &b""[..],
            b"\x81",
            b"\x81\x82\0\0\0\0a",
            b"\x81\x01a",
            b"\xC1\x81\0\0\0\0a",
            b"\x89\x80\0\0\0\0",
            b"\x82\xFE\0\x01\0\0\0\0a",
        ] {
            let mut input = wire.to_vec();
            assert_eq!(engine.take_message(&mut input, 0), None, "{wire:02x?}");
            assert_eq!(input, wire);
        }
        engine.fail(&ProtocolError::UnmaskedFrame);
        assert_eq!(
            engine.take_message(&mut b"\x81\x80\0\0\0\0".to_vec(), 0),
            None
        );
    }
}
