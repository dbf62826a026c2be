//! Reading the payload of a long frame into the memory of its message, which saves a copy.

use std::{
    io,
    pin::{Pin, pin},
    task::{Context, Poll, ready},
};

use bytes::BufMut;
use linerate_proto::{Engine, ProtocolError, engine::RawEvent};
use tokio::io::AsyncReadExt;

use super::{End, Incoming, Side};
use crate::{
    clock,
    pool::{READ_BYTES, ReadSize},
    transport::Transport,
};

/// How many bytes of a frame must not have arrived yet. Fewer are read together with the next
/// frame.
pub(super) const BYTES_MIN: u64 = if cfg!(fuzzing) {
    4 // Inputs of fuzz targets are short.
} else {
    READ_BYTES as u64
};

/// A message with less room than this, in bytes, grows before it is read into.
const PIECE_BYTES_MIN: usize = 16 << 10;

impl Incoming {
    /// Reads up to `size` once from `io` into the message whose frame is arriving; returns the
    /// number of bytes, and whether the message ends with them.
    pub(super) fn poll_read(
        &mut self,
        engine: &mut Engine<Side>,
        io: Pin<&mut Transport>,
        cx: &mut Context<'_>,
        size: ReadSize,
    ) -> Poll<io::Result<(usize, Result<End, ProtocolError>)>> {
        let bytes_max =
            self.make_room(engine.payload_bytes_left().min(size.bytes() as u64) as usize);
        let start = self.len();
        Poll::Ready(Ok(match self {
            Self::Binary(message) => {
                let bytes = ready!(poll_read(io, cx, &mut message.limit(bytes_max)))?;
                (bytes, Ok(unmask(engine, &mut message[start..])))
            }
            Self::Text(text) => {
                let mut piece = text.piece();
                let bytes = ready!(poll_read(io, cx, &mut (&mut piece).limit(bytes_max)))?;
                let end = unmask(engine, piece.as_mut_slice());
                let finished = piece.finish().map_err(|error| start + error.valid_up_to());
                let invalid_at = match finished {
                    Ok(()) if end == End::Reached && !text.is_complete() => Some(text.len()),
                    finished => finished.err(),
                };
                let invalid = invalid_at.map(|at| ProtocolError::InvalidUtf8 { offset: at as u64 });
                (bytes, invalid.map_or(Ok(end), Err))
            }
        }))
    }

    /// Makes room for the next part of the payload; returns how many of the `wanted` bytes to read.
    /// The memory grows in proportion to what has arrived.
    fn make_room(&mut self, wanted: usize) -> usize {
        if self.capacity() - self.len() < wanted.min(PIECE_BYTES_MIN) {
            self.reserve(wanted.min(self.len().max(PIECE_BYTES_MIN)));
        }
        wanted.min(self.capacity() - self.len())
    }
}

/// Reads once into `buffer`, which has room.
fn poll_read(
    mut io: Pin<&mut Transport>,
    cx: &mut Context<'_>,
    buffer: &mut (impl BufMut + ?Sized),
) -> Poll<io::Result<usize>> {
    pin!(io.read_buf(buffer)).poll(cx)
}

/// Unmasks the next part of a payload; returns whether the message ends with it.
fn unmask(engine: &mut Engine<Side>, payload: &mut [u8]) -> End {
    let mut events = engine.handle_input(payload, clock::now());
    if let Some(Ok(RawEvent::Data(data))) = events.next_raw() {
        let ends = data.ends;
        data.unmask();
        if ends {
            return End::Reached;
        }
    }
    End::Pending
}
