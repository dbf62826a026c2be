//! Messages that many connections receive in the same order, compressed once for all of them.

use alloc::vec::Vec;
use core::{fmt, ops::Range};

use super::{
    Compressor, CompressorRequest, Deflate, Pool, budget::Share, compress::SendState,
    compressor::Machine, short, worth,
};
use crate::{
    frame::{Header, append_frame},
    opcode::Opcode,
};

/// The longest block, in bytes. It bounds the memory of a history.
const BLOCK_BYTES_MAX: usize = 64 << 10;

/// RSV1 in the first byte of a frame.
const COMPRESSED: u8 = 0x40;

/// Compresses blocks of messages that refer back to earlier blocks, once for all connections that
/// received the same ones.
///
/// A back-reference is valid for each connection whose window holds the bytes that it reaches. A
/// connection holds the last `n` bytes of this stream if what it received last in compressed form
/// were blocks of this stream, with at least `n` bytes and nothing in between. Messages that are
/// sent uncompressed do not matter, because they are not added to the window of the peer.
///
/// The stream counts the bytes of the messages that are compressed. Each block is
/// [appended](Self::append) once, which returns its positions. It can then be
/// [compressed](Self::compress) several times, for connections that hold more or less of the bytes
/// before it, until the next block is appended.
///
/// The connections must have agreed on context takeover for what they are sent, with a window of at
/// least 2^[`WINDOW_BITS`](Self::WINDOW_BITS) bytes, and be set up with
/// [`Deflate::external_takeover`].
///
/// The length of a block reveals something about the blocks before it. Never add secrets and data
/// that an attacker can choose to the same stream (RFC 7692 §8).
///
/// ```
/// use linerate_proto::{Opcode, frame, deflate::{Deflate, Lockstep, ThreadPool}};
///
/// let mut stream = Lockstep::new(&Deflate::default());
/// let mut lengths = Vec::new();
/// for bid in ["123.25", "123.75"] {
///     let message = format!(r#"{{"channel":"prices","symbol":"ABC","currency":"EUR","bid":{bid}}}"#);
///     let (mut block, mut wire) = (Vec::new(), Vec::new());
///     frame::append(&mut block, Opcode::Text, message.as_bytes());
///     let positions = stream.append(&block).ok_or("no memory")?;
///     // A connection that received all blocks so far holds all bytes before this one.
///     stream.compress(&block, positions.start, &ThreadPool, &mut wire);
///     lengths.push(wire.len());
/// }
/// assert!(lengths[1] < lengths[0] / 3);
/// # Ok::<_, &str>(())
/// ```
pub struct Lockstep {
    history: Option<short::History>,
    share: Share,
    level: u8,
    message_bytes_min: usize,
    /// Where the last block is in the history.
    block: Range<usize>,
    /// The position after the last block.
    end: u64,
}

impl Lockstep {
    /// Blocks refer back at most 2^`WINDOW_BITS` bytes.
    pub const WINDOW_BITS: u8 = short::History::WINDOW_BITS;

    /// Creates an empty stream, which allocates nothing until the first block.
    pub const fn new(options: &Deflate) -> Self {
        Self {
            history: None,
            share: Share::new(options.budget),
            level: options.level,
            message_bytes_min: options.message_bytes_min,
            block: 0..0,
            end: 0,
        }
    }

    /// Appends a block: complete, unmasked frames of messages. Returns its positions in the stream,
    /// which are empty if none of its messages is worth compressing.
    ///
    /// Returns `None` if the block is not part of the stream, because it is longer than 64 KiB, one
    /// of its messages is longer than 16 KiB, or the budget has no room. Such a block must be
    /// compressed in another way, and a connection that receives it compressed holds nothing of the
    /// stream any more.
    pub fn append(&mut self, block: &[u8]) -> Option<Range<u64>> {
        if block.len() > BLOCK_BYTES_MAX {
            return None;
        }
        let mut bytes = 0;
        for message in messages(block).filter(|message| self.is_worth(message.payload)) {
            if message.payload.len() > short::BYTES_MAX {
                return None;
            }
            bytes += message.payload.len();
        }
        let mut history = self.history.take().unwrap_or_else(short::History::new);
        let memory = short::History::memory_bytes(history.capacity_for(bytes));
        if !self.share.resize(memory) {
            // Without a history, the memory is free for streams that are in use.
            self.share.give_back();
            return None;
        }
        history.make_room(bytes);
        let start = history.len();
        for message in messages(block).filter(|message| self.is_worth(message.payload)) {
            history.append(message.payload);
        }
        self.block = start..history.len();
        self.history = Some(history);
        let from = self.end;
        self.end += bytes as u64;
        Some(from..self.end)
    }

    /// Returns the position after the last block. Only this block can be compressed.
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// Appends the frames of the last block to `out`, compressed for connections that hold `reach`
    /// bytes before it.
    ///
    /// # Panics
    /// This may panic if `block` is not the block that was appended last.
    pub fn compress(&self, block: &[u8], reach: u64, pool: &dyn Pool, out: &mut Vec<u8>) {
        let Some(history) = &self.history else {
            out.extend_from_slice(block);
            return;
        };
        let reach = usize::try_from(reach).unwrap_or(usize::MAX);
        let oldest = self.block.start.saturating_sub(reach);
        let wanted = CompressorRequest {
            level: self.level,
            window_bits: Self::WINDOW_BITS,
            machine: Machine::Short,
        };
        let taken = pool.take_compressor(&wanted);
        let taken = taken.filter(|compressor| compressor.suits(&wanted));
        let mut compressor = taken.unwrap_or_else(|| Compressor::new(&wanted));
        let mut at = self.block.start;
        for message in messages(block) {
            let first = out.len();
            if self.is_worth(message.payload) {
                let range = at..at + message.payload.len();
                at = range.end;
                compressor.run_after(history, (oldest, range), self.level);
                append_frame(out, true, message.opcode, compressor.output());
                out[first] |= COMPRESSED;
            } else {
                append_frame(out, true, message.opcode, message.payload);
            }
        }
        SendState::give(pool, compressor);
    }

    /// Returns whether a message is compressed. This depends on the message only, because all
    /// connections must have the same messages in their windows.
    fn is_worth(&self, payload: &[u8]) -> bool {
        payload.len() >= self.message_bytes_min.max(1) && worth::is_compressible(payload)
    }
}

impl fmt::Debug for Lockstep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lockstep")
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

struct Message<'b> {
    opcode: Opcode,
    payload: &'b [u8],
}

/// Returns the messages in complete, unmasked frames.
fn messages(mut frames: &[u8]) -> impl Iterator<Item = Message<'_>> {
    core::iter::from_fn(move || {
        let (header, start) = Header::decode(frames).ok()??;
        let end = start.checked_add(usize::try_from(header.payload_bytes).ok()?)?;
        let payload = frames.get(start..end)?;
        frames = &frames[end..];
        let opcode = header.opcode;
        Some(Message { opcode, payload })
    })
}

#[cfg(test)]
mod tests;
