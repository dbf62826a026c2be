//! One connection: what is kept of it, and the way of its output to the socket.

use std::{io::IoSlice, ops::Range, os::fd::OwnedFd, time::Duration};

use linerate_proto::{
    Engine, Server,
    engine::{Data, MessageKind, State},
    handshake::RequestReader,
};
use linerate_simd::utf8::TextBuf;

use crate::{
    ConnectionId,
    driver::Interest,
    pool::Pool,
    socket::{self, Lost},
    wheel::Tick,
};

/// Slices that one system call writes.
const SLICES_MAX: usize = 64;

/// Capacity that the cork buffer keeps; it may have held a message of any size.
const CORK_KEPT_BYTES_MAX: usize = 1 << 20;

/// What is kept of a connection for as long as it is open.
pub(crate) struct Connection {
    pub(crate) socket: OwnedFd,
    pub(crate) id: ConnectionId,
    pub(crate) stage: Stage,
    /// Meaningful once the stage is [`Stage::Open`].
    pub(crate) engine: Engine<Server>,
    /// The message that is arriving in pieces.
    pub(crate) gather: Option<Box<Gather>>,
    /// Output that the kernel did not take yet.
    pub(crate) backlog: Remainder,
    /// Input that was read and must not be looked at yet.
    pub(crate) held: Remainder,
    /// When the backlog is given up, if there is one; each byte that the peer takes moves it.
    pub(crate) stall_due: Tick,
    /// The tick for which the wheel has this connection; 0 if it has not.
    pub(crate) alarm: Tick,
    pub(crate) interest: Interest,
    /// The application has stopped the input.
    pub(crate) paused: bool,
    /// The backlog was at its limit and has not been written since.
    pub(crate) congested: bool,
    /// The socket failed; nothing can be written or read.
    pub(crate) lost: bool,
    /// The stream from the peer ended.
    pub(crate) ended: bool,
    /// The stream to the peer was ended.
    pub(crate) output_ended: bool,
}

// A million idle connections are to fit into 256 MB.
const _: () = assert!(size_of::<Connection>() <= 256);

/// How far a connection has come.
pub(crate) enum Stage {
    /// The opening handshake goes on.
    Opening(Box<Opening>),
    /// The WebSocket is open, or closing.
    Open {
        /// The index of the route.
        route: u16,
        /// Where the route keeps the connection's data.
        data: u32,
    },
    /// The opening handshake was refused; the answer is on its way until this time.
    Refused {
        /// When the client has had its time to read the answer.
        due: Tick,
    },
}

/// An opening handshake.
pub(crate) struct Opening {
    pub(crate) reader: RequestReader,
    pub(crate) due: Duration,
}

impl Connection {
    /// Returns whether input must not be looked at.
    #[inline]
    pub(crate) const fn is_stopped(&self) -> bool {
        self.paused || self.congested || self.lost
    }

    /// Returns whether the WebSocket is open in both directions.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Open { .. }) && self.engine.state() == State::Open
    }

    /// Returns what the driver should wait for.
    pub(crate) fn wanted(&self) -> Interest {
        Interest {
            read: !self.is_stopped() && !self.ended && self.held.is_empty(),
            write: !self.backlog.is_empty(),
        }
    }

    /// Writes as much of the backlog as the kernel takes.
    pub(crate) fn write_backlog(&mut self, pool: &mut Pool, stall_due: Tick) {
        match socket::write(&self.socket, self.backlog.rest()) {
            Ok(0) => {}
            Ok(bytes) => {
                self.stall_due = stall_due;
                self.backlog.skip(bytes, pool);
            }
            Err(Lost) => self.lost = true,
        }
    }
}

/// Bytes of which the first ones are done with.
#[derive(Debug, Default)]
pub(crate) struct Remainder {
    bytes: Vec<u8>,
    done: usize,
}

impl Remainder {
    /// Takes over `bytes`, of which `done` are done with.
    pub(crate) fn new(bytes: Vec<u8>, done: usize) -> Self {
        Self { bytes, done }
    }

    /// Adds bytes.
    pub(crate) fn append(&mut self, bytes: &[u8], pool: &mut Pool) {
        if bytes.is_empty() {
            return;
        }
        // What is done with is moved out once it is the larger part: a constant for each byte.
        if self.done > self.len() {
            self.bytes.drain(..self.done);
            self.done = 0;
        }
        pool.reserve(&mut self.bytes, bytes.len());
        self.bytes.extend_from_slice(bytes);
    }

    /// Is done with `bytes` more; gives the memory back after the last.
    pub(crate) fn skip(&mut self, bytes: usize, pool: &mut Pool) {
        self.done += bytes;
        if self.is_empty() {
            self.clear(pool);
        }
    }

    /// Forgets all and gives the memory back.
    pub(crate) fn clear(&mut self, pool: &mut Pool) {
        let Self { bytes, .. } = std::mem::take(self);
        pool.give(bytes);
    }

    /// Returns the bytes that are not done with.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.bytes[self.done..]
    }

    /// Returns the bytes that are not done with.
    pub(crate) fn rest_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.done..]
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.done
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A message that is put together; text is validated as it grows.
pub(crate) enum Gather {
    Binary(Vec<u8>),
    Text(TextBuf),
}

impl Gather {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Binary(bytes) => bytes,
            Self::Text(text) => text.as_bytes(),
        }
    }

    /// Returns the memory, and leaves the gather empty.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        match std::mem::replace(self, Self::Binary(Vec::new())) {
            Self::Binary(bytes) => bytes,
            Self::Text(text) => text.into_bytes(),
        }
    }
}

/// Boxes for gathers, to be used again.
#[derive(Default)]
pub(crate) struct Spare(
    #[allow(
        clippy::vec_box,
        reason = "what is kept is the allocation that a connection points to"
    )]
    Vec<Box<Gather>>,
);

impl Spare {
    /// How many are kept.
    const KEPT_MAX: usize = 64;

    /// Starts a message with memory for `data` and, as far as that is in proportion, for what its
    /// frame announces.
    pub(crate) fn begin(&mut self, data: &Data<'_>, pool: &mut Pool) -> Box<Gather> {
        let announced = usize::try_from(data.frame_bytes_left).unwrap_or(usize::MAX);
        let memory = pool.take_announced(data.len(), announced);
        let gather = match data.kind {
            MessageKind::Binary => Gather::Binary(memory),
            MessageKind::Text => Gather::Text(TextBuf::from_recycled(memory)),
        };
        match self.0.pop() {
            Some(mut spare) => {
                *spare = gather;
                spare
            }
            None => Box::new(gather),
        }
    }

    /// Gives one back, whose memory has been taken out.
    pub(crate) fn give(&mut self, gather: Box<Gather>) {
        if self.0.len() < Self::KEPT_MAX {
            self.0.push(gather);
        }
    }
}

/// The output of the callbacks that one read leads to: corked bytes, and what of the input goes
/// out from where it lies.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pub(crate) cork: Vec<u8>,
    splices: Vec<Splice>,
    splice_bytes: usize,
}

/// A part of the input that goes out behind the first `at` bytes of the cork.
#[derive(Clone, Debug)]
struct Splice {
    at: usize,
    input: Range<usize>,
}

impl Output {
    /// Adds a part of the input; it must stay where it is until the next flush.
    pub(crate) fn splice(&mut self, input: Range<usize>) {
        self.splice_bytes += input.len();
        let at = self.cork.len();
        self.splices.push(Splice { at, input });
    }

    /// Returns whether it holds parts of the input.
    pub(crate) fn has_splices(&self) -> bool {
        !self.splices.is_empty()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.cork.is_empty() && self.splices.is_empty()
    }

    fn len(&self) -> usize {
        self.cork.len() + self.splice_bytes
    }

    /// Writes the output and `tail` behind it; what the kernel does not take is copied to the
    /// backlog.
    #[inline]
    pub(crate) fn flush(
        &mut self,
        connection: &mut Connection,
        input: &[u8],
        tail: &[u8],
        pool: &mut Pool,
        stall_due: Tick,
    ) {
        let bytes = self.len() + tail.len();
        let sent = self.write(connection, input, tail);
        if sent < bytes && !connection.lost {
            self.keep(connection, input, tail, sent, pool, stall_due);
        }
        self.clear();
    }

    /// Writes the output and `tail` behind it; what the kernel does not take of the tail stays in
    /// its memory, which becomes the backlog.
    pub(crate) fn flush_owned(
        &mut self,
        connection: &mut Connection,
        input: &[u8],
        tail: Vec<u8>,
        pool: &mut Pool,
        stall_due: Tick,
    ) {
        let before = self.len();
        let sent = self.write(connection, input, &tail);
        if connection.lost || sent == before + tail.len() {
            pool.give(tail);
        } else if sent >= before && connection.backlog.is_empty() {
            connection.backlog = Remainder::new(tail, sent - before);
            connection.stall_due = stall_due;
        } else {
            self.keep(connection, input, &tail, sent, pool, stall_due);
            pool.give(tail);
        }
        self.clear();
    }

    fn clear(&mut self) {
        self.cork.clear();
        self.cork.shrink_to(CORK_KEPT_BYTES_MAX);
        self.splices.clear();
        self.splice_bytes = 0;
    }

    /// Writes what can be written; returns how many bytes that were.
    #[inline]
    fn write(&self, connection: &mut Connection, input: &[u8], tail: &[u8]) -> usize {
        if connection.lost || !connection.backlog.is_empty() {
            return 0;
        }
        let written = if self.splices.is_empty() && tail.is_empty() {
            socket::write(&connection.socket, &self.cork)
        } else {
            self.write_slices(&connection.socket, input, tail)
        };
        written.unwrap_or_else(|Lost| {
            connection.lost = true;
            0
        })
    }

    fn write_slices(&self, socket: &OwnedFd, input: &[u8], tail: &[u8]) -> Result<usize, Lost> {
        let mut slices = self.slices(input, tail);
        let mut sent = 0;
        loop {
            let mut some = [IoSlice::new(&[]); SLICES_MAX];
            let (mut count, mut bytes) = (0, 0);
            for (place, slice) in some.iter_mut().zip(&mut slices) {
                *place = IoSlice::new(slice);
                count += 1;
                bytes += slice.len();
            }
            if count == 0 {
                return Ok(sent);
            }
            let written = socket::write_slices(socket, &some[..count])?;
            sent += written;
            if written < bytes {
                return Ok(sent);
            }
        }
    }

    /// Moves all but the first `sent` bytes to the backlog.
    #[cold]
    fn keep(
        &self,
        connection: &mut Connection,
        input: &[u8],
        tail: &[u8],
        mut sent: usize,
        pool: &mut Pool,
        stall_due: Tick,
    ) {
        if connection.backlog.is_empty() {
            connection.stall_due = stall_due;
        }
        for slice in self.slices(input, tail) {
            let skipped = sent.min(slice.len());
            sent -= skipped;
            connection.backlog.append(&slice[skipped..], pool);
        }
    }

    /// Returns the pieces of the output in order.
    fn slices<'a>(&'a self, input: &'a [u8], tail: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let mut from = 0;
        let spliced = self.splices.iter().flat_map(move |splice| {
            let corked = &self.cork[from..splice.at];
            from = splice.at;
            [corked, &input[splice.input.clone()]]
        });
        let last = self.splices.last().map_or(0, |splice| splice.at);
        let end = [&self.cork[last..], tail];
        spliced.chain(end).filter(|slice| !slice.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_in_the_order_in_which_it_was_added() {
        let mut output = Output::default();
        output.cork.extend_from_slice(b"ab");
        output.splice(2..4);
        output.splice(0..1);
        output.cork.extend_from_slice(b"c");
        let all: Vec<u8> = output.slices(b"WXYZ", b"!").flatten().copied().collect();
        assert_eq!(all, b"abYZWc!");
        assert_eq!(output.len() + 1, all.len());
    }

    #[test]
    fn a_remainder_keeps_order_over_appends_and_skips() {
        let mut pool = Pool::default();
        let mut remainder = Remainder::default();
        let (mut put, mut taken) = (0_u8, 0_u8);
        for round in 0..2_000_usize {
            for _ in 0..round % 7 {
                remainder.append(&[put], &mut pool);
                put = put.wrapping_add(1);
            }
            let bytes = (round % 5).min(remainder.len());
            for byte in &remainder.rest()[..bytes] {
                assert_eq!(*byte, taken);
                taken = taken.wrapping_add(1);
            }
            remainder.skip(bytes, &mut pool);
        }
        let bytes = remainder.len();
        assert_eq!(taken.wrapping_add(bytes as u8), put);
        remainder.skip(bytes, &mut pool);
        assert!(remainder.is_empty());
    }
}
