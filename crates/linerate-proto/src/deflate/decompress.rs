//! The receiving direction (RFC 7692 §7.2.2).

mod portable;

use alloc::{boxed::Box, vec, vec::Vec};
use core::fmt;

use zlib_rs::{Inflate, InflateFlush, Status};

use super::{Budget, Context, compressor::TAIL, trail::Trail, window::Window};
use crate::error::ProtocolError;

/// The size of the output buffer, in bytes: the largest piece that is returned at a time.
const OUTPUT_BYTES: usize = 16 << 10;

/// More bytes than [`TAIL`], and the bits before it, can inflate to: these are up to 80 bits, and
/// the longest match, 258 bytes, takes at least two bits.
const TAIL_OUTPUT_BYTES: usize = 12 << 10;

/// The limit on blocks that are marked as final in one message. Each restarts the decompressor,
/// which takes a microsecond; without a limit, two bytes of input would be enough to cause that.
const FINAL_BLOCKS_MAX: u16 = 1_024;

/// An empty final block: it ends the stream only if the block before it is complete.
const PROBE: [u8; 2] = [0x03, 0x00];

/// The memory that a decompressor holds between two inputs, in bytes.
pub(super) const PARKED_BYTES: usize = 48 << 10;

/// The ratio is checked once this many bytes have been inflated.
const RATIO_BYTES_MIN: u64 = 64 << 10;

/// The state of a decompressor, together with its output.
pub struct Decompressor(Box<State>);

/// The output buffer of a decompressor, which needs it only while there is input.
pub struct Output(Box<[u8]>);

struct State {
    inflate: Inflate,
    /// Empty while it waits for input.
    output: Box<[u8]>,
    /// How many bytes of `output` hold inflated data.
    len: usize,
    /// The bytes that the message may refer back to, if the connection does not keep a window.
    history: Window,
    /// The compressed (`taken`) and inflated bytes of the message so far.
    taken: u64,
    inflated: u64,
    /// The last four compressed bytes of the message so far.
    last: [u8; 4],
    /// True if there was no input since the start or the last final block.
    is_fresh: bool,
    final_blocks: u16,
    /// The place in the compressed stream, if the message can be exported.
    trail: Trail,
    /// Inflated bytes that an export found and that were not returned yet. They are counted in
    /// `inflated`.
    found: Vec<u8>,
}

/// Limits on one inflated message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) message_bytes_max: u64,
    pub(super) ratio_max: Option<u32>,
}

impl Decompressor {
    pub(super) fn new() -> Self {
        Self(Box::new(State {
            // Always 15 bits, because a smaller window would need a separate state. The memory is
            // returned at the end of the message.
            inflate: Inflate::new(false, 15),
            output: Box::default(),
            len: 0,
            history: Window::new(15),
            taken: 0,
            inflated: 0,
            last: [0; 4],
            is_fresh: true,
            final_blocks: 0,
            trail: Trail::default(),
            found: Vec::new(),
        }))
    }

    /// Returns the bytes that the last step inflated.
    pub(crate) fn output(&mut self) -> &mut [u8] {
        &mut self.0.output[..self.0.len]
    }

    /// Ensures that there is an output buffer: the one that `take` returns, or a new one.
    pub(super) fn prepare(&mut self, take: impl FnOnce() -> Option<Output>) {
        if self.0.output.is_empty() {
            self.0.output = take().unwrap_or_default().0;
        }
    }

    /// Releases the output buffer until there is more input; its content is lost.
    pub(super) fn release_output(&mut self) -> Option<Output> {
        self.0.len = 0;
        let output = core::mem::take(&mut self.0.output);
        (!output.is_empty()).then_some(Output(output))
    }

    /// Returns how many bytes of the message have been returned.
    pub(super) const fn inflated(&self) -> u64 {
        self.0.inflated - self.0.found.len() as u64
    }

    /// Records bytes that were taken, so that the message can be exported.
    pub(super) fn follow(&mut self, taken: &[u8]) {
        self.0.trail.add(taken);
    }

    /// Returns whether the output of the message's end fits after the current output.
    pub(super) const fn has_room_for_end(&self) -> bool {
        self.0.len + TAIL_OUTPUT_BYTES <= OUTPUT_BYTES
    }

    fn start(&mut self, window: &Window) {
        let state = &mut *self.0;
        state.history.clear();
        (state.taken, state.inflated, state.final_blocks) = (0, 0, 0);
        state.last = [0; 4];
        state.trail.clear();
        state.found.clear();
        state.restart(window);
    }
}

impl State {
    /// Starts a stream that may refer back to `window`.
    fn restart(&mut self, window: &Window) {
        self.inflate.reset(false);
        for part in window.parts() {
            if !part.is_empty() {
                let told = self.inflate.set_dictionary(part);
                told.expect("a raw stream takes a dictionary");
            }
        }
        self.is_fresh = true;
    }

    /// Inflates until the input is used up, the output is full, or a final block ends; returns how
    /// many bytes of the input were taken and whether a final block ended.
    fn step(&mut self, input: &[u8], bounds: &Bounds) -> Result<(usize, bool), ProtocolError> {
        // Allow one byte beyond the limit, to detect that it is exceeded.
        let allowed = bounds.message_bytes_max.saturating_sub(self.inflated);
        let room = (self.output.len() - self.len) as u64;
        let end = self.len + room.min(allowed.saturating_add(1)) as usize;
        let (taken, written) = (self.inflate.total_in(), self.inflate.total_out());
        let out = &mut self.output[self.len..end];
        let status = self.inflate.decompress(input, out, InflateFlush::NoFlush);
        let taken = (self.inflate.total_in() - taken) as usize;
        let written = self.inflate.total_out() - written;
        self.len += written as usize;
        self.inflated += written;
        if self.inflated > bounds.message_bytes_max {
            return Err(ProtocolError::MessageTooBig {
                bytes: self.inflated,
                bytes_max: bounds.message_bytes_max,
            });
        }
        match status {
            Ok(status) => Ok((taken, status == Status::StreamEnd)),
            Err(_) => Err(self.invalid()),
        }
    }

    /// Puts the bytes that an export found into the output.
    #[cold]
    fn return_found(&mut self, bounds: &Bounds) -> Result<(), ProtocolError> {
        let bytes_max = bounds.message_bytes_max;
        if self.inflated > bytes_max {
            return Err(ProtocolError::MessageTooBig {
                // As in `step`, which stops after one byte beyond the limit.
                bytes: bytes_max + 1,
                bytes_max,
            });
        }
        self.len = self.found.len();
        self.output[..self.len].copy_from_slice(&self.found);
        self.found = Vec::new();
        Ok(())
    }

    fn note(&mut self, taken: &[u8]) {
        self.taken += taken.len() as u64;
        for byte in &taken[taken.len().saturating_sub(4)..] {
            self.last.rotate_left(1);
            self.last[3] = *byte;
        }
    }

    fn check_ratio(&self, bounds: &Bounds) -> Result<(), ProtocolError> {
        match bounds.ratio_max {
            Some(ratio_max)
                if self.inflated >= RATIO_BYTES_MIN
                    && self.inflated > self.taken.saturating_mul(ratio_max.into()) =>
            {
                Err(ProtocolError::InflateRatio {
                    bytes: self.taken,
                    inflated_bytes: self.inflated,
                    ratio_max,
                })
            }
            _ => Ok(()),
        }
    }

    fn invalid(&self) -> ProtocolError {
        ProtocolError::InvalidCompression {
            offset: self.inflated,
        }
    }
}

impl Default for Output {
    fn default() -> Self {
        Self(vec![0; OUTPUT_BYTES].into())
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output").finish_non_exhaustive()
    }
}

impl fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decompressor")
            .field("taken", &self.0.taken)
            .field("inflated", &self.0.inflated)
            .finish_non_exhaustive()
    }
}

/// The state of the receiving direction: the window that messages may refer back to.
#[derive(Debug)]
pub(super) struct ReceiveState {
    context: Context,
    window: Window,
    share: super::budget::Share,
}

impl ReceiveState {
    pub(super) fn new(context: Context, budget: &'static Budget) -> Self {
        let mut share = super::budget::Share::new(budget);
        if context.takeover {
            share.insist_on(1 << context.window_bits);
        }
        Self {
            context,
            window: Window::new(context.window_bits),
            share,
        }
    }

    pub(super) const fn context(&self) -> Context {
        self.context
    }

    pub(super) const fn budget(&self) -> &'static Budget {
        self.share.budget()
    }

    /// Starts a message.
    pub(super) fn start(&self, decompressor: &mut Decompressor) {
        decompressor.start(&self.window);
    }

    /// Inflates until `input` is used up or the output is full; returns how many bytes were taken,
    /// and whether the output is full, in which case the bytes taken may yield more output.
    pub(super) fn inflate(
        &mut self,
        decompressor: &mut Decompressor,
        input: &[u8],
        bounds: &Bounds,
    ) -> Result<(usize, bool), ProtocolError> {
        let state = &mut *decompressor.0;
        state.len = 0;
        if !state.found.is_empty() {
            state.return_found(bounds)?;
        }
        let mut at = 0;
        loop {
            let before = state.len;
            let (taken, is_final) = state.step(&input[at..], bounds)?;
            state.note(&input[at..at + taken]);
            at += taken;
            let (takeover, window) = (self.context.takeover, &mut self.window);
            let window = if takeover { window } else { &mut state.history };
            window.append(&state.output[before..state.len]);
            state.is_fresh &= taken == 0;
            if is_final {
                state.final_blocks += 1;
                if state.final_blocks > FINAL_BLOCKS_MAX {
                    return Err(ProtocolError::TooManyFinalBlocks {
                        blocks_max: FINAL_BLOCKS_MAX.into(),
                    });
                }
                self.restart(state);
            }
            let is_full = state.len == state.output.len();
            if is_full || at == input.len() {
                state.check_ratio(bounds)?;
                return Ok((at, is_full));
            }
            if taken == 0 && !is_final {
                return Err(state.invalid());
            }
        }
    }

    /// Starts a stream inside the message, after a final block.
    ///
    /// §7.2.3.4: a block with BFINAL may occur anywhere. The blocks after it may refer back to the
    /// bytes before it.
    fn restart(&self, state: &mut State) {
        let history = core::mem::take(&mut state.history);
        let window = if self.context.takeover {
            &self.window
        } else {
            &history
        };
        state.restart(window);
        state.history = history;
    }

    /// Ends the message, whose input has all been inflated. Any further output is appended to the
    /// current output, which must have room for it.
    pub(super) fn finish(
        &mut self,
        decompressor: &mut Decompressor,
        bounds: &Bounds,
    ) -> Result<(), ProtocolError> {
        let state = &mut *decompressor.0;
        let before = state.len;
        // An empty message, and one that ends with a final block, are already complete.
        if !state.is_fresh {
            // §7.2.2: "Append 4 octets of 0x00 0x00 0xff 0xff to the tail end". Some leave them on.
            let mut is_final = false;
            if state.last != TAIL {
                let (taken, ended) = state.step(&TAIL, bounds)?;
                is_final = ended;
                if taken < TAIL.len() {
                    return Err(state.invalid());
                }
            }
            let end = state.len;
            // Check that a block has just ended: inside a block, the probe would mean something
            // else.
            if !is_final && state.step(&PROBE, bounds)? != (PROBE.len(), true) || state.len != end {
                return Err(state.invalid());
            }
        }
        if self.context.takeover {
            self.window.append(&state.output[before..state.len]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x02_a_message_may_have_the_ratio_and_not_a_byte_more() {
        let bounds = Bounds {
            message_bytes_max: u64::MAX,
            ratio_max: Some(100),
        };
        let mut state = Decompressor::new().0;
        (state.taken, state.inflated) = (1_000, 100_000);
        assert_eq!(state.check_ratio(&bounds), Ok(()));
        state.inflated += 1;
        let error = ProtocolError::InflateRatio {
            bytes: 1_000,
            inflated_bytes: 100_001,
            ratio_max: 100,
        };
        assert_eq!(state.check_ratio(&bounds), Err(error));
    }
}
