//! The compression states: zlib's for streams, our own for short messages.

use alloc::{boxed::Box, vec::Vec};
use core::{fmt, ops::Range};

use zlib_rs::{Deflate, DeflateFlush};

use super::{position::MessagePosition, short};

/// The end of a sync flush: an empty stored block without its first byte. It is removed from the
/// end of each message.
pub(super) const TAIL: [u8; 4] = [0x00, 0x00, 0xFF, 0xFF];

/// The output buffer is kept for the next message unless it is longer than this, in bytes.
const OUTPUT_BYTES_KEPT_MAX: usize = 256 << 10;

/// Space that must be left in the output after a flush; if it is full, the flush is not complete.
const OUTPUT_BYTES_SPARE: usize = 16;

/// The state of a compressor, together with the output for the last message.
pub struct Compressor {
    state: State,
    output: Output,
}

enum State {
    Short(Box<short::Encoder>),
    Stream(Box<Stream>),
}

/// A state of zlib.
struct Stream {
    deflate: Deflate,
    level: u8,
    window_bits: u8,
    /// The position up to which the state knows the bytes sent.
    position: Option<MessagePosition>,
}

/// Describes which compressor is requested.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CompressorRequest {
    pub(super) level: u8,
    pub(super) window_bits: u8,
    pub(super) machine: Machine,
}

/// Which kind of state is requested.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Machine {
    /// For a message of at most [`short::BYTES_MAX`] bytes that does not refer back to others.
    Short,
    /// For a stream; preferably a state that is at this position.
    Stream(MessagePosition),
}

/// A compressed message.
#[derive(Default)]
struct Output {
    /// The buffer; its first `len` bytes are output.
    bytes: Vec<u8>,
    len: usize,
}

impl Compressor {
    pub(super) fn new(wanted: &CompressorRequest) -> Self {
        let state = match wanted.machine {
            Machine::Short => State::Short(Box::new(short::Encoder::new())),
            Machine::Stream(_) => State::Stream(Box::new(Stream::new(wanted))),
        };
        let output = Output::default();
        Self { state, output }
    }

    /// Returns the compressed message.
    pub(crate) fn output(&self) -> &[u8] {
        &self.output.bytes[..self.output.len]
    }

    pub(super) fn suits(&self, wanted: &CompressorRequest) -> bool {
        match (&self.state, wanted.machine) {
            (State::Short(_), Machine::Short) => true,
            (State::Stream(stream), Machine::Stream(_)) => stream.suits(wanted),
            _ => false,
        }
    }

    pub(super) fn is_owned(&self, wanted: &CompressorRequest) -> bool {
        match (&self.state, wanted.machine) {
            (State::Short(_), Machine::Short) => true,
            (State::Stream(stream), Machine::Stream(position)) => {
                stream.position == Some(position) && stream.suits(wanted)
            }
            _ => false,
        }
    }

    pub(super) fn is_free(&self) -> bool {
        match &self.state {
            State::Short(_) => true,
            State::Stream(stream) => stream.position.is_none(),
        }
    }

    /// Compresses `input` up to a byte boundary; it may refer back to `history`. `ends` is true for
    /// the last part of a message.
    ///
    /// Afterwards the state has no position until [`set_position`](Self::set_position) is called,
    /// because it knows bytes that the peer may never receive.
    pub(super) fn run(
        &mut self,
        wanted: &CompressorRequest,
        history: [&[u8]; 2],
        input: &[u8],
        ends: bool,
    ) {
        if let State::Stream(stream) = &mut self.state
            && stream.position.take().map(Machine::Stream) != Some(wanted.machine)
        {
            stream.start(history);
        }
        let output = &mut self.output;
        output.len = 0;
        if input.is_empty() {
            // There is nothing to flush. The end of a message is the first byte of an empty stored
            // block; any other fragment is empty.
            output.reserve(1);
            output.bytes[0] = 0;
            output.len = ends.into();
            return;
        }
        match &mut self.state {
            State::Short(encoder) => {
                let CompressorRequest {
                    level, window_bits, ..
                } = *wanted;
                output.len = encoder.encode(input, level, window_bits, &mut output.bytes);
                output.append(&TAIL);
            }
            State::Stream(stream) => stream.run(input, output),
        }
        debug_assert!(output.bytes[..output.len].ends_with(&TAIL));
        if ends {
            output.len -= TAIL.len();
        }
    }

    /// Compresses a message in `history`, which must not be empty; it may refer back to the bytes
    /// from `oldest` on. The state must be one for short messages.
    pub(super) fn run_after(
        &mut self,
        history: &short::History,
        (oldest, message): (usize, Range<usize>),
        level: u8,
    ) {
        if let State::Short(encoder) = &mut self.state {
            let output = &mut self.output;
            output.len = encoder.encode_after(history, (oldest, message), level, &mut output.bytes);
        }
    }

    /// Records that the compressed bytes are sent, so that the state is now at `position`.
    pub(super) fn set_position(&mut self, position: MessagePosition) {
        if let State::Stream(stream) = &mut self.state {
            stream.position = Some(position);
        }
    }

    /// Releases an output buffer that is larger than most messages need.
    pub(super) fn shrink_output(&mut self) {
        if self.output.bytes.len() > OUTPUT_BYTES_KEPT_MAX {
            self.output = Output::default();
        }
    }
}

impl Stream {
    fn new(wanted: &CompressorRequest) -> Self {
        let window_bits = Self::window_bits(wanted);
        Self {
            deflate: Deflate::new(wanted.level.into(), false, window_bits),
            level: wanted.level,
            window_bits,
            position: None,
        }
    }

    /// Returns the window bits for zlib, which does not support 8. With 9 it refers back at most
    /// 512 - 262 bytes, because it leaves space for the longest match and its lookahead.
    fn window_bits(wanted: &CompressorRequest) -> u8 {
        wanted.window_bits.max(9)
    }

    fn suits(&self, wanted: &CompressorRequest) -> bool {
        (self.level, self.window_bits) == (wanted.level, Self::window_bits(wanted))
    }

    fn start(&mut self, history: [&[u8]; 2]) {
        self.deflate.reset();
        for part in history {
            if !part.is_empty() {
                let told = self.deflate.set_dictionary(part);
                told.expect("a raw stream that was just reset takes a dictionary");
            }
        }
    }

    fn run(&mut self, input: &[u8], output: &mut Output) {
        output.reserve(input.len() / 2 + 64);
        let mut rest = input;
        loop {
            let (taken, written) = (self.deflate.total_in(), self.deflate.total_out());
            let out = &mut output.bytes[output.len..];
            let run = self.deflate.compress(rest, out, DeflateFlush::SyncFlush);
            run.expect("the state is consistent");
            rest = &rest[(self.deflate.total_in() - taken) as usize..];
            output.len += (self.deflate.total_out() - written) as usize;
            if rest.is_empty() && output.len < output.bytes.len() {
                break;
            }
            output.reserve(input.len() / 2 + OUTPUT_BYTES_SPARE);
        }
    }
}

impl Output {
    fn reserve(&mut self, bytes: usize) {
        if self.bytes.len() - self.len < bytes {
            self.bytes.resize(self.len + bytes, 0);
        }
    }

    fn append(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len());
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
}

impl fmt::Debug for Compressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compressor")
            .field("is_short", &matches!(self.state, State::Short(_)))
            .finish_non_exhaustive()
    }
}
