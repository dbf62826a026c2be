//! Compression on one connection: both directions, and the pool of their states.

mod portable;

use linerate_simd::mask;

use super::{
    Agreement, Compressor, Context, Decompressor, Deflate, Pool, Prepared,
    budget::Share,
    compress::SendState,
    decompress::{Bounds, PARKED_BYTES, ReceiveState},
    trail::TRAIL_BYTES,
    worth,
};
use crate::{config::Limits, error::ProtocolError, role::MaskKey};

/// The compression state of both directions of a connection.
pub(crate) struct Codec {
    pool: &'static dyn Pool,
    /// The agreement on what we send. Fewer messages may refer back than were agreed.
    agreed: Context,
    message_bytes_min: usize,
    ratio_max: Option<u32>,
    sending: SendState,
    receiving: ReceiveState,
    /// The message that is arriving.
    message: Option<Message>,
    /// True while we are sending a fragmented message that is compressed.
    pub(crate) is_sending: bool,
    /// True if a message that is arriving can be exported.
    is_exportable: bool,
}

/// A message that is partly inflated.
struct Message {
    decompressor: Decompressor,
    /// The memory of the decompressor, counted once the message has to wait for more input.
    parked: Share,
    /// Bytes at the start of the next input that are already unmasked.
    unmasked: usize,
    /// How many of these are already inflated: 0 or 1.
    eaten: usize,
}

/// The result of inflating a part of a frame's payload.
pub(crate) struct Inflated {
    /// Bytes of the payload that were used up.
    pub(crate) taken: usize,
    /// The offset of the output in the inflated message.
    pub(crate) offset: u64,
    /// The decompressor with the last part of the output, if the message ends.
    pub(crate) spent: Option<PooledDecompressor>,
}

/// The available part of a frame.
pub(crate) struct PayloadChunk<'i> {
    /// The available part of the payload.
    pub(crate) payload: &'i mut [u8],
    pub(crate) mask: Option<MaskKey>,
    /// Its offset in the whole payload of the frame.
    pub(crate) phase: usize,
    /// True if this part reaches to the end of the frame.
    pub(crate) is_rest: bool,
    /// True if the message ends with this frame.
    pub(crate) fin: bool,
}

/// A decompressor that returns to its pool on drop, when its output is no longer borrowed.
pub(crate) struct PooledDecompressor {
    decompressor: Option<Decompressor>,
    pool: &'static dyn Pool,
}

impl Codec {
    pub(crate) fn new(agreement: Agreement, options: &Deflate, pool: &'static dyn Pool) -> Self {
        let mut sending = agreement.sending;
        sending.takeover &= !options.external_takeover;
        Self {
            pool,
            agreed: agreement.sending,
            message_bytes_min: options.message_bytes_min,
            ratio_max: options.ratio_max,
            sending: SendState::new(sending, options.level, options.budget),
            receiving: ReceiveState::new(agreement.receiving, options.budget),
            message: None,
            is_sending: false,
            is_exportable: options.exportable,
        }
    }

    /// Returns whether a message that begins with `payload` should be compressed.
    ///
    /// This is decided before compressing: once the peer's window has moved, it cannot be undone.
    pub(crate) fn is_worth(&self, payload: &[u8]) -> bool {
        payload.len() >= self.message_bytes_min && worth::is_compressible(payload)
    }

    /// Compresses a message or a fragment; `ends` is true for the end of a message.
    pub(crate) fn compress(&self, payload: &[u8], ends: bool) -> Compressor {
        self.sending.compress(self.pool, payload, ends)
    }

    /// Records that the compressed form of `payload` is sent, and returns the compressor to its
    /// pool.
    pub(crate) fn keep(&mut self, compressor: Compressor, payload: &[u8]) {
        self.sending.keep(self.pool, compressor, payload);
    }

    /// Returns a compressor to its pool without sending its output.
    pub(crate) fn discard(&self, compressor: Compressor) {
        SendState::give(self.pool, compressor);
    }

    /// Returns the compressed form of a prepared message if this connection can take it, and
    /// records that it is sent.
    pub(crate) fn keep_prepared<'p>(&mut self, prepared: &'p Prepared) -> Option<&'p [u8]> {
        let compressed = prepared.compressed_for(self.sending.context().window_bits)?;
        self.sending.keep_prepared(prepared.payload());
        Some(compressed)
    }

    pub(crate) const fn sending(&self) -> Context {
        self.agreed
    }

    /// Releases memory that an idle connection can do without; called from time to time.
    pub(crate) fn tick(&mut self) {
        self.sending.tick();
    }

    /// Discards the message that is arriving.
    pub(crate) fn stop(&mut self) {
        if let Some(message) = self.message.take() {
            self.pool.give_decompressor(message.decompressor);
        }
    }

    /// Releases the memory that the arriving message does not need until there is more input.
    pub(crate) fn release_output(&mut self) {
        if let Some(message) = &mut self.message
            && let Some(output) = message.decompressor.release_output()
        {
            self.pool.give_output(output);
        }
    }

    /// Returns the last inflated part of the arriving message.
    pub(crate) fn output(&mut self) -> &mut [u8] {
        match &mut self.message {
            Some(message) => message.decompressor.output(),
            None => &mut [],
        }
    }

    /// Inflates as much of a frame's payload as fits into the output.
    ///
    /// While the input already taken may yield more output, its last byte is not reported as used
    /// up, so that callers do not stop at the apparent end of their input.
    pub(crate) fn inflate(
        &mut self,
        part: PayloadChunk<'_>,
        limits: &Limits,
    ) -> Result<Inflated, ProtocolError> {
        let bounds = Bounds {
            message_bytes_max: limits.message_bytes_max,
            ratio_max: self.ratio_max,
        };
        let message = match &mut self.message {
            Some(message) => message,
            none => none.insert(Message::start(self.pool, &self.receiving)),
        };
        message.decompressor.prepare(|| self.pool.take_output());
        let available = part.payload.len();
        let payload = part.payload;
        if let Some(MaskKey(key)) = part.mask {
            let unmasked = message.unmasked.min(available);
            mask::apply(key, part.phase + unmasked, &mut payload[unmasked..]);
        }
        let offset = message.decompressor.inflated();
        let (receiving, decompressor) = (&mut self.receiving, &mut message.decompressor);
        let input = &payload[message.eaten..];
        let (inflated, is_full) = receiving.inflate(decompressor, input, &bounds)?;
        let mut taken = message.eaten + inflated;
        let mut ends = part.fin && part.is_rest && taken == available && !is_full;
        let hold = is_full || ends && !decompressor.has_room_for_end();
        message.eaten = (hold && taken == available && taken > 0).into();
        ends &= !hold;
        taken -= message.eaten;
        message.unmasked = available - taken;
        if ends {
            receiving.finish(decompressor, &bounds)?;
        } else {
            if self.is_exportable {
                decompressor.follow(&input[..inflated]);
            }
            if !(part.is_rest && part.fin) {
                message.park(self.is_exportable)?;
            }
        }
        let spent = self
            .message
            .take_if(|_| ends)
            .map(|message| PooledDecompressor {
                decompressor: Some(message.decompressor),
                pool: self.pool,
            });
        Ok(Inflated {
            taken,
            offset,
            spent,
        })
    }
}

impl Message {
    fn start(pool: &'static dyn Pool, receiving: &ReceiveState) -> Self {
        let taken = pool.take_decompressor();
        let mut decompressor = taken.unwrap_or_else(Decompressor::new);
        receiving.start(&mut decompressor);
        Self {
            decompressor,
            parked: Share::new(receiving.budget()),
            unmasked: 0,
            eaten: 0,
        }
    }

    /// Counts the memory of a message that has to wait for more input.
    fn park(&mut self, is_exportable: bool) -> Result<(), ProtocolError> {
        let bytes = parked_bytes(is_exportable);
        if self.parked.grow_to(bytes) {
            return Ok(());
        }
        let bytes_max = self.parked.budget().bytes_max();
        Err(ProtocolError::CompressionMemory { bytes, bytes_max })
    }
}

/// Returns the memory of a message that has to wait for more input, in bytes.
const fn parked_bytes(is_exportable: bool) -> usize {
    if is_exportable {
        PARKED_BYTES + TRAIL_BYTES
    } else {
        PARKED_BYTES
    }
}

impl PooledDecompressor {
    pub(crate) fn output(&mut self) -> &mut [u8] {
        match &mut self.decompressor {
            Some(decompressor) => decompressor.output(),
            None => &mut [],
        }
    }
}

impl Drop for PooledDecompressor {
    fn drop(&mut self) {
        if let Some(decompressor) = self.decompressor.take() {
            self.pool.give_decompressor(decompressor);
        }
    }
}

impl Drop for Codec {
    fn drop(&mut self) {
        self.stop();
    }
}

impl core::fmt::Debug for Codec {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Codec")
            .field("sending", &self.sending)
            .field("receiving", &self.receiving)
            .finish_non_exhaustive()
    }
}

impl core::fmt::Debug for PooledDecompressor {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PooledDecompressor").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::deflate::{CompressorRequest, Output, Stock};

    /// A pool that several threads can share and that counts what was returned to it.
    struct Counting(Mutex<(Stock, [usize; 3])>);

    impl Counting {
        const fn new() -> Self {
            Self(Mutex::new((Stock::new(4), [0; 3])))
        }

        /// Returns how many compressors, decompressors and outputs have come back.
        fn given(&self) -> [usize; 3] {
            self.0.lock().unwrap().1
        }
    }

    impl Pool for Counting {
        fn take_compressor(&self, wanted: &CompressorRequest) -> Option<Compressor> {
            self.0.lock().unwrap().0.take_compressor(wanted)
        }

        fn give_compressor(&self, compressor: Compressor) {
            let (stock, given) = &mut *self.0.lock().unwrap();
            given[0] += 1;
            stock.give_compressor(compressor);
        }

        fn take_decompressor(&self) -> Option<Decompressor> {
            self.0.lock().unwrap().0.take_decompressor()
        }

        fn give_decompressor(&self, decompressor: Decompressor) {
            let (stock, given) = &mut *self.0.lock().unwrap();
            given[1] += 1;
            stock.give_decompressor(decompressor);
        }

        fn take_output(&self) -> Option<Output> {
            self.0.lock().unwrap().0.take_output()
        }

        fn give_output(&self, output: Output) {
            let (stock, given) = &mut *self.0.lock().unwrap();
            given[2] += 1;
            stock.give_output(output);
        }
    }

    fn codec(pool: &'static dyn Pool) -> Codec {
        let context = Context {
            window_bits: 12,
            takeover: true,
        };
        let agreement = Agreement {
            sending: context,
            receiving: context,
        };
        Codec::new(agreement, &Deflate::default(), pool)
    }

    /// Inflates a part of a message; `ends` is true for its last part.
    fn inflate(codec: &mut Codec, payload: &mut [u8], ends: bool) -> Option<PooledDecompressor> {
        let part = PayloadChunk {
            payload,
            mask: None,
            phase: 0,
            is_rest: ends,
            fin: true,
        };
        codec.inflate(part, &Limits::default()).unwrap().spent
    }

    #[test]
    fn waiting_codecs_return_their_output_and_finished_ones_everything() {
        static POOL: Counting = Counting::new();
        let (text, mut ours, mut theirs) = ([b'a'; 100], codec(&POOL), codec(&POOL));
        let compressor = theirs.compress(&text, true);
        let mut wire = compressor.output().to_vec();
        theirs.keep(compressor, &text);
        assert_eq!(POOL.given(), [1, 0, 0]);
        let half = wire.len() / 2;
        let (first, second) = wire.split_at_mut(half);
        assert!(inflate(&mut ours, first, false).is_none());
        ours.release_output();
        assert_eq!(POOL.given(), [1, 0, 1]);
        assert!(ours.output().is_empty());
        ours.release_output();
        assert_eq!(
            POOL.given(),
            [1, 0, 1],
            "an output must be given back once only"
        );
        let spent = inflate(&mut ours, second, true);
        assert!(spent.is_some());
        drop(spent);
        assert_eq!(POOL.given(), [1, 1, 1]);
        assert!(inflate(&mut ours, &mut wire.clone()[..half], false).is_none());
        ours.stop();
        assert_eq!(
            POOL.given(),
            [1, 2, 1],
            "stop must give the decompressor back"
        );
        assert!(inflate(&mut ours, &mut wire[..half], false).is_none());
        drop(ours);
        assert_eq!(
            POOL.given(),
            [1, 3, 1],
            "drop must give the decompressor back"
        );
        theirs.discard(theirs.compress(&text, true));
        assert_eq!(POOL.given(), [2, 3, 1]);
    }

    #[test]
    fn short_or_incompressible_messages_are_not_worth_compressing() {
        let codec = codec(&crate::deflate::Unpooled);
        let text = [b'a'; 1_000];
        let least = Deflate::default().message_bytes_min;
        assert!(codec.is_worth(&text[..least]) && !codec.is_worth(&text[..least - 1]));
        let mut rng = linerate_testkit::Rng::new(1);
        assert!(!codec.is_worth(&rng.bytes(10_000)));
    }
}
