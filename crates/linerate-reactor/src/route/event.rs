//! The next event in the input of a connection that is not a whole message.

use std::time::Duration;

use linerate_proto::{
    ProtocolError,
    engine::{Data, MessageKind, RawEvent},
};

use crate::{
    connection::{
        Connection,
        memory::Memory,
        partial::{PartialMessage, Stream},
    },
    memory::pool::Pool,
};

/// A piece of a streamed message with at least this many bytes is passed to the handler without a
/// copy.
const PIECE_BYTES_MIN: usize = 16 << 10;

/// Smaller pieces are joined up to this many bytes, because what the handler does for each piece,
/// such as a system call, costs more than the copy.
const HELD_BYTES_MAX: usize = 64 << 10;

/// Inflating this many bytes takes at least as long as handling a small frame.
const INFLATED_BYTES_PER_FRAME: usize = 256;

/// An event, without references into the engine.
pub(super) enum InputEvent {
    /// No event that needs attention, and no more events in the input.
    Nothing,
    /// Pieces of a message that is not complete yet.
    Incomplete,
    /// The last piece of a message that was joined.
    Whole(Box<PartialMessage>),
    /// A piece of a streamed message.
    Streamed(Streamed),
    Ping(ControlPayload),
    Pong(ControlPayload),
    /// The peer violated the protocol; the engine may not know yet.
    Error(ProtocolError),
}

/// A piece of a streamed message, unmasked: the held bytes or, if there are none, the end of the
/// input processed so far.
pub(super) struct Streamed {
    pub(super) kind: MessageKind,
    pub(super) begins: bool,
    pub(super) ends: bool,
    /// The length of the piece in the input, if nothing is held.
    pub(super) bytes: usize,
    pub(super) held: Vec<u8>,
}

/// A copy of the payload of a control frame.
pub(super) struct ControlPayload {
    bytes: [u8; 125],
    len: usize,
}

impl ControlPayload {
    fn new(payload: &[u8]) -> Self {
        let mut control = Self {
            bytes: [0; 125],
            len: payload.len(),
        };
        control.bytes[..payload.len()].copy_from_slice(payload);
        control
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Handles the next event in `input`. Pieces of a message that is being joined are handled
/// together, until `frames` reaches `frames_max`. Adds to `frames`; returns the event and how many
/// bytes it took.
pub(super) fn next(
    connection: &mut Connection,
    input: &mut [u8],
    streamed_bytes_min: u64,
    memory: &mut Memory,
    (frames, frames_max): (&mut u32, u32),
    now: Duration,
) -> (InputEvent, usize) {
    let Connection {
        engine,
        partial,
        message_due,
        ..
    } = connection;
    let input_bytes = input.len();
    let mut events = engine.handle_input(input, now);
    let seen = loop {
        break match events.next_raw() {
            Some(Ok(RawEvent::Data(data))) => {
                if data.inflated {
                    *frames += (data.len() / INFLATED_BYTES_PER_FRAME) as u32;
                }
                if partial.is_none() {
                    *message_due = 0;
                }
                match add(data, streamed_bytes_min, partial, memory) {
                    Some(seen) => seen,
                    None if *frames < frames_max => {
                        *frames += 1;
                        continue;
                    }
                    None => InputEvent::Incomplete,
                }
            }
            Some(Ok(RawEvent::Ping(payload))) => InputEvent::Ping(ControlPayload::new(payload)),
            Some(Ok(RawEvent::Pong(payload))) => InputEvent::Pong(ControlPayload::new(payload)),
            Some(Err(error)) => InputEvent::Error(error),
            // Everything after a Close frame is ignored; our Close frame is queued.
            Some(Ok(RawEvent::Close(_))) | None => InputEvent::Nothing,
        };
    };
    let bytes = events.consumed();
    if bytes == input_bytes {
        events.release_memory();
    }
    (seen, bytes)
}

/// Adds a piece to its message. Returns `None` if there is nothing to report yet.
fn add(
    data: Data<'_>,
    streamed_bytes_min: u64,
    partial: &mut Option<Box<PartialMessage>>,
    memory: &mut Memory,
) -> Option<InputEvent> {
    let ends = data.ends;
    let Memory { pool, messages, .. } = memory;
    let message = partial.get_or_insert_with(|| {
        let mut message = messages.take();
        *message = PartialMessage::begin(&data, streamed_bytes_min, pool);
        message
    });
    let taken = match &mut **message {
        PartialMessage::Streamed(stream) => stream_piece(data, stream, pool),
        message => join_piece(data, message, pool).map(|()| None),
    };
    let failed = taken.is_err();
    let whole = partial.take_if(|_| ends || failed);
    let seen = match taken {
        Ok(Some(streamed)) => InputEvent::Streamed(streamed),
        Ok(None) => return whole.map(InputEvent::Whole),
        Err(error) => InputEvent::Error(error),
    };
    if let Some(mut done) = whole {
        pool.give(done.take());
        messages.give(done);
    }
    Some(seen)
}

/// Unmasks a piece in place and, if it is text, validates it. Pieces that are too small for a call
/// of their own are held, and so are inflated pieces, because their memory is reused.
fn stream_piece(
    data: Data<'_>,
    stream: &mut Stream,
    pool: &mut Pool,
) -> Result<Option<Streamed>, ProtocolError> {
    let (kind, ends, bytes) = (data.kind, data.ends, data.len());
    let lies_in_input = !data.inflated;
    let piece = match kind {
        MessageKind::Binary => data.unmask(),
        MessageKind::Text => data.unmask_text(&mut stream.validator)?,
    };
    let is_large = ends || bytes >= PIECE_BYTES_MIN;
    if !(is_large && lies_in_input && stream.held.is_empty()) {
        pool.reserve(&mut stream.held, bytes);
        stream.held.extend_from_slice(piece);
        if !ends && stream.held.len() < HELD_BYTES_MAX {
            return Ok(None);
        }
    }
    Ok(Some(Streamed {
        kind,
        begins: !std::mem::replace(&mut stream.begun, true),
        ends,
        bytes,
        held: std::mem::take(&mut stream.held),
    }))
}

/// Unmasks a piece into the memory of its message and, if it is text, validates it.
fn join_piece(
    data: Data<'_>,
    message: &mut PartialMessage,
    pool: &mut Pool,
) -> Result<(), ProtocolError> {
    match message {
        PartialMessage::Text(text) => {
            if text.capacity() - text.len() < data.len() {
                let larger = pool.take((text.len() + data.len()).max(2 * text.len()));
                pool.give(text.move_into(larger));
            }
            data.append_text_to(text)
        }
        PartialMessage::Binary(bytes) | PartialMessage::Streamed(Stream { held: bytes, .. }) => {
            pool.reserve(bytes, data.len());
            data.append_to(bytes);
            Ok(())
        }
    }
}

#[cfg(all(test, unix, feature = "deflate"))]
mod tests;
