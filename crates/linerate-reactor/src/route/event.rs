//! What comes next in the input of a connection and is no whole message.

use std::time::Duration;

use linerate_proto::{
    ProtocolError,
    engine::{Data, MessageKind, RawEvent},
};

use crate::{
    connection::{
        Connection,
        gather::{Gather, Spare, Stream},
    },
    memory::pool::Pool,
};

/// A piece of a long message that has this many bytes goes to the handler from where it lies.
const PIECE_BYTES_MIN: usize = 16 << 10;

/// Smaller ones are put together up to this many bytes, since what the handler does for each, like a
/// system call, costs more than the copy.
const HELD_BYTES_MAX: usize = 64 << 10;

/// To inflate so many bytes takes as long as a small frame does otherwise, or longer.
const INFLATED_BYTES_PER_FRAME: usize = 256;

/// What an event was, once nothing of the engine is borrowed any more.
pub(super) enum Seen {
    /// Nothing that is anybody's business, and nothing behind it.
    Nothing,
    /// Pieces of a message, of which more may follow.
    Pieces,
    /// The last piece of a message.
    Gathered(Box<Gather>),
    /// A piece of a message that is streamed.
    Streamed(Streamed),
    Ping(Control),
    Pong(Control),
    /// The peer broke the rules; the engine may not know yet.
    Error(ProtocolError),
}

/// A piece of a message that is streamed, unmasked: what is held, or else the end of the input so far.
pub(super) struct Streamed {
    pub(super) kind: MessageKind,
    pub(super) begins: bool,
    pub(super) ends: bool,
    /// How many bytes of the input, if nothing is held.
    pub(super) bytes: usize,
    pub(super) held: Vec<u8>,
}

/// A copy of what a control frame carries.
pub(super) struct Control {
    bytes: [u8; 125],
    len: usize,
}

impl Control {
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

/// Takes what comes next in `input`, and with it the pieces of a message that is put together, as
/// far as `frames_max` goes; counts in `frames`, and returns what it was and how many bytes it took.
pub(super) fn next(
    connection: &mut Connection,
    input: &mut [u8],
    streamed_bytes_min: u64,
    (pool, spare): (&mut Pool, &mut Spare),
    (frames, frames_max): (&mut u32, u32),
    now: Duration,
) -> (Seen, usize) {
    let Connection { engine, gather, .. } = connection;
    let input_bytes = input.len();
    let mut events = engine.handle_input(input, now);
    let seen = loop {
        break match events.next_raw() {
            Some(Ok(RawEvent::Data(data))) => {
                if data.inflated {
                    *frames += (data.len() / INFLATED_BYTES_PER_FRAME) as u32;
                }
                match add(data, streamed_bytes_min, gather, pool, spare) {
                    Some(seen) => seen,
                    None if *frames < frames_max => {
                        *frames += 1;
                        continue;
                    }
                    None => Seen::Pieces,
                }
            }
            Some(Ok(RawEvent::Ping(payload))) => Seen::Ping(Control::new(payload)),
            Some(Ok(RawEvent::Pong(payload))) => Seen::Pong(Control::new(payload)),
            Some(Err(error)) => Seen::Error(error),
            // Whatever follows a Close frame means nothing; the answer is queued.
            Some(Ok(RawEvent::Close(_))) | None => Seen::Nothing,
        };
    };
    let bytes = events.consumed();
    if bytes == input_bytes {
        events.rest();
    }
    (seen, bytes)
}

/// Adds a piece to the message that it belongs to. `None` if nothing comes of it yet.
fn add(
    data: Data<'_>,
    streamed_bytes_min: u64,
    gathering: &mut Option<Box<Gather>>,
    pool: &mut Pool,
    spare: &mut Spare,
) -> Option<Seen> {
    let ends = data.ends;
    let gather = match gathering {
        Some(gather) => gather,
        None => gathering.insert(spare.begin(&data, streamed_bytes_min, pool)),
    };
    let taken = match &mut **gather {
        Gather::Streamed(stream) => stream_piece(data, stream, pool),
        gather => gather_piece(data, gather, pool).map(|()| None),
    };
    let failed = taken.is_err();
    let whole = gathering.take_if(|_| ends || failed);
    let seen = match taken {
        Ok(Some(streamed)) => Seen::Streamed(streamed),
        Ok(None) => return whole.map(Seen::Gathered),
        Err(error) => Seen::Error(error),
    };
    if let Some(mut done) = whole {
        pool.give(done.take());
        spare.give(done);
    }
    Some(seen)
}

/// Unmasks a piece where it lies and, if it is text, validates it. What is not worth a call of its own
/// is held, and so is what was inflated, since it does not stay.
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

/// Unmasks a piece into the memory of the message and, if it is text, validates it.
fn gather_piece(data: Data<'_>, gather: &mut Gather, pool: &mut Pool) -> Result<(), ProtocolError> {
    match gather {
        Gather::Text(text) => {
            if text.capacity() - text.len() < data.len() {
                let larger = pool.take((text.len() + data.len()).max(2 * text.len()));
                pool.give(text.move_into(larger));
            }
            data.append_text_to(text)
        }
        Gather::Binary(bytes) | Gather::Streamed(Stream { held: bytes, .. }) => {
            pool.reserve(bytes, data.len());
            data.append_to(bytes);
            Ok(())
        }
    }
}
