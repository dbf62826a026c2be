//! Input: from frames to events (RFC 6455 §6.2, §8.1).

use alloc::vec::Vec;

use linerate_simd::utf8;

use super::{
    Chunk, Engine, Event, RawEvent,
    framing::{Arriving, ChunkHeader, ControlFrame, Step},
};
use crate::{
    close::CloseFrame,
    error::ProtocolError,
    opcode::{MessageKind, Opcode},
    role::{Endpoint, MaskKey},
};

/// The events in one input; a lending iterator.
#[derive(Debug)]
pub struct Events<'e, 'i, E> {
    pub(super) engine: &'e mut Engine<E>,
    pub(super) input: &'i mut [u8],
    pub(super) at: usize,
    /// Holds the end of a compressed message while the caller borrows it.
    #[cfg(feature = "deflate")]
    pub(super) spent: Option<crate::deflate::PooledDecompressor>,
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
        if let Some((chunk, start)) = self.take_inner_chunk() {
            let chunk = self.engine.chunk(chunk, &mut self.input[start..]);
            return Some(chunk.map(Event::Chunk));
        }
        let (chunk, bytes) = match self.take_whole_message() {
            Some(data) => data,
            None => match self.step() {
                Ok(Step::Data(chunk, bytes)) => (chunk, bytes),
                Ok(Step::Control(frame)) => return Some(self.control(frame).map(Event::from)),
                #[cfg(feature = "deflate")]
                Ok(Step::Inflated(chunk)) => return Some(self.inflated(chunk)),
                Ok(Step::Feed) => return self.nothing_more(),
                Err(error) => return Some(Err(self.fail(error))),
            },
        };
        let payload = &mut self.input[self.at - bytes..self.at];
        Some(self.engine.message(chunk, payload))
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
        if let Some((chunk, start)) = self.take_inner_chunk() {
            return Some(Ok(RawEvent::Data(chunk.data(&mut self.input[start..]))));
        }
        let (chunk, bytes) = match self.take_whole_message() {
            Some(data) => data,
            None => match self.step() {
                Ok(Step::Data(chunk, bytes)) => (chunk, bytes),
                Ok(Step::Control(frame)) => return Some(self.control(frame).map(RawEvent::from)),
                #[cfg(feature = "deflate")]
                Ok(Step::Inflated(chunk)) => {
                    let data = super::Data {
                        inflated: true,
                        ..chunk.data(self.inflated_bytes())
                    };
                    return Some(Ok(RawEvent::Data(data)));
                }
                Ok(Step::Feed) => return self.nothing_more(),
                Err(error) => return Some(Err(self.fail(error))),
            },
        };
        let payload = &mut self.input[self.at - bytes..self.at];
        Some(Ok(RawEvent::Data(chunk.data(payload))))
    }

    /// Releases the memory that a compressed message needs only while there is input.
    ///
    /// [`next`](Self::next) does the same when it returns `None`. Call this only if you stop at the
    /// end of the input without waiting for `None`.
    #[inline]
    pub fn release_memory(&mut self) {
        #[cfg(feature = "deflate")]
        if let Some(codec) = self.engine.lazy.codec_mut() {
            codec.release_output();
        }
    }

    #[inline]
    fn nothing_more<T>(&mut self) -> Option<T> {
        self.release_memory();
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

    /// Takes the remaining input as a chunk of a message if all of it is inside one frame; also
    /// returns the offset at which the chunk starts.
    #[inline]
    fn take_inner_chunk(&mut self) -> Option<(ChunkHeader, usize)> {
        let (start, end) = (self.at, self.input.len());
        let chunk = self.engine.receiving.take_inner_chunk(end - start)?;
        self.at = end;
        Some((chunk, start))
    }

    /// Takes a message that is complete in the input, which needs no state. If this returns `None`,
    /// [`step`](Self::step) determines what comes next.
    #[inline]
    fn take_whole_message(&mut self) -> Option<(ChunkHeader, usize)> {
        let role = self.engine.endpoint().role();
        let whole = self.engine.whole_message(&self.input[self.at..], role)?;
        self.at += whole.prefix_bytes + whole.bytes;
        Some((whole.header(), whole.bytes))
    }

    /// Reads a header if no frame has begun, and takes the available part of the frame's payload.
    fn step(&mut self) -> Result<Step, ProtocolError> {
        if !self.engine.closing.is_input_open() {
            self.at = self.input.len();
            return Ok(Step::Feed);
        }
        let role = self.engine.endpoint().role();
        let receiving = &mut self.engine.receiving;
        if !matches!(receiving.frame, Arriving::Payload(_)) {
            let rest = &self.input[self.at..];
            let (header, bytes) = receiving.read_header(rest, role)?;
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
            return Ok(match receiving.take_chunk(self.input.len() - self.at) {
                Some((chunk, bytes)) => {
                    self.at += bytes;
                    Step::Data(chunk, bytes)
                }
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
            is_joined,
        } = frame;
        let Self {
            engine, input, at, ..
        } = self;
        let from_input = &input[*at - bytes..*at];
        if opcode == Opcode::Close {
            let payload = engine.receiving.control_payload(is_joined, from_input);
            match CloseFrame::decode(payload).map(|frame| frame.code) {
                Ok(code) => engine.answer_close(code),
                Err(error) => {
                    engine.fail(&error);
                    return Err(error);
                }
            }
            let payload = engine.receiving.control_payload(is_joined, from_input);
            return CloseFrame::decode(payload).map(Control::Close);
        }
        let payload = engine.receiving.control_payload(is_joined, from_input);
        let is_answered = engine.closing.is_output_open();
        if opcode == Opcode::Pong {
            if is_answered {
                engine.keepalive.handle_pong(payload);
            }
            return Ok(Control::Pong(payload));
        }
        if is_answered {
            engine.lazy.set_answer(payload);
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

impl<E: Endpoint> Engine<E> {
    /// Unmasks a message or a chunk of one and, if it is text, validates it.
    #[inline]
    fn message<'a>(
        &mut self,
        chunk: ChunkHeader,
        payload: &'a mut [u8],
    ) -> Result<Event<'a>, ProtocolError> {
        if !(chunk.begins && chunk.ends) {
            return self.chunk(chunk, payload).map(Event::Chunk);
        }
        let ChunkHeader {
            kind, mask, offset, ..
        } = chunk;
        let text = match (kind, mask) {
            (MessageKind::Binary, _) => return Ok(Event::Binary(chunk.data(payload).unmask())),
            (MessageKind::Text, Some(MaskKey(key))) => {
                let bytes = payload.len();
                utf8::validate_masked(key, payload, 0..bytes).map(|(text, _)| text)
            }
            (MessageKind::Text, None) => utf8::validate(payload),
        };
        text.map(Event::Text)
            .map_err(|error| self.fail_text(offset, error.valid_up_to()))
    }

    /// Unmasks a chunk of a message and, if it is text, validates it.
    ///
    /// Always inline: for a message that arrives in small reads, the cost per read dominates.
    #[inline(always)]
    fn chunk<'a>(
        &mut self,
        chunk: ChunkHeader,
        payload: &'a mut [u8],
    ) -> Result<Chunk<'a>, ProtocolError> {
        let ChunkHeader {
            kind,
            begins,
            ends,
            offset,
            ..
        } = chunk;
        let bytes = &*chunk.data(payload).unmask();
        if kind == MessageKind::Text {
            self.receiving
                .validate(bytes, ends)
                .map_err(|valid_up_to| self.fail_text(offset, valid_up_to))?;
        }
        Ok(Chunk {
            kind,
            begins,
            ends,
            bytes,
        })
    }

    /// Fails the connection because a chunk of text, at `offset` in the message, is not UTF-8.
    // Never inlined, like `fail_at`.
    #[cold]
    #[inline(never)]
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
    use crate::{
        engine::Message,
        role::{Role, Server},
    };

    #[test]
    fn take_message_takes_only_whole_messages() {
        let mut engine = Engine::new(Server, Arc::default(), Duration::ZERO);
        let mut input = *b"\x81\x82\x01\x01\x01\x01`c\x82\x80\0\0\0\0\x01\x81\0\0\0\0x";
        let taken = engine
            .take_message(Role::Server, &mut input, 0)
            .unwrap()
            .unwrap();
        assert_eq!((taken.message, taken.end), (Message::Text("ab"), 8));
        assert_eq!(taken.input[6..8], *b"ab");
        let taken = engine
            .take_message(Role::Server, &mut input, 8)
            .unwrap()
            .unwrap();
        assert_eq!((taken.message, taken.end), (Message::Binary(b""), 14));
        // A fragment, and then bytes that look like a message inside the fragmented one.
        assert_eq!(engine.take_message(Role::Server, &mut input, 14), None);
        let mut events = engine.handle_input(&mut input[14..], Duration::ZERO);
        assert!(matches!(events.next_raw(), Some(Ok(RawEvent::Data(data))) if !data.ends));
        assert_eq!(
            engine.take_message(Role::Server, &mut input.clone(), 0),
            None
        );
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
            assert_eq!(
                engine.take_message(Role::Server, &mut input, 0),
                None,
                "{wire:02x?}"
            );
            assert_eq!(input, wire);
        }
        engine.fail(&ProtocolError::UnmaskedFrame);
        assert_eq!(
            engine.take_message(Role::Server, &mut b"\x81\x80\0\0\0\0".to_vec(), 0),
            None
        );
    }
}
