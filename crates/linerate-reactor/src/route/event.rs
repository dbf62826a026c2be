//! What comes next in the input of a connection and is no whole message.

use std::time::Duration;

use linerate_proto::{
    ProtocolError,
    engine::{Data, MessageKind, RawEvent},
};

use crate::{
    connection::Connection,
    connection::gather::{Gather, Spare},
    memory::pool::Pool,
};

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

/// A piece of a message that is streamed, which lies unmasked in the input.
pub(super) struct Streamed {
    pub(super) kind: MessageKind,
    pub(super) begins: bool,
    pub(super) ends: bool,
    pub(super) bytes: usize,
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
    let mut events = engine.handle_input(input, now);
    let seen = loop {
        break match events.next_raw() {
            Some(Ok(RawEvent::Data(data))) => {
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
    (seen, events.consumed())
}

/// Adds a piece to the message that it belongs to, or validates it where it lies. `None` if nothing
/// comes of it yet.
fn add(
    data: Data<'_>,
    streamed_bytes_min: u64,
    gathering: &mut Option<Box<Gather>>,
    pool: &mut Pool,
    spare: &mut Spare,
) -> Option<Seen> {
    let (kind, begins, ends, bytes) = (data.kind, data.begins, data.ends, data.len());
    let gather = match gathering {
        Some(gather) => gather,
        None => gathering.insert(spare.begin(&data, streamed_bytes_min, pool)),
    };
    let is_streamed = matches!(**gather, Gather::StreamedBinary | Gather::StreamedText(_));
    let taken = take(data, gather, pool);
    if taken.is_ok() && !ends && !is_streamed {
        return None;
    }
    let whole = gathering.take_if(|_| ends || taken.is_err());
    match (taken, whole) {
        (Ok(()), whole) if is_streamed => {
            whole.into_iter().for_each(|done| spare.give(done));
            Some(Seen::Streamed(Streamed {
                kind,
                begins,
                ends,
                bytes,
            }))
        }
        (Ok(()), whole) => whole.map(Seen::Gathered),
        (Err(error), whole) => {
            if let Some(mut broken) = whole {
                pool.give(broken.take());
                spare.give(broken);
            }
            Some(Seen::Error(error))
        }
    }
}

/// Unmasks a piece and, if it is text, validates it: into the memory of the message, or in place.
fn take(data: Data<'_>, gather: &mut Gather, pool: &mut Pool) -> Result<(), ProtocolError> {
    match gather {
        Gather::Binary(bytes) => {
            pool.reserve(bytes, data.len());
            data.append_to(bytes);
            Ok(())
        }
        Gather::StreamedBinary => {
            data.unmask();
            Ok(())
        }
        Gather::StreamedText(validator) => data.unmask_text(validator).map(|_| ()),
        Gather::Text(text) => {
            if text.capacity() - text.len() < data.len() {
                let larger = pool.take((text.len() + data.len()).max(2 * text.len()));
                pool.give(text.move_into(larger));
            }
            data.append_text_to(text)
        }
    }
}
