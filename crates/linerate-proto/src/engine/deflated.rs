//! Compressed messages on an open connection (RFC 7692 §6, §7.2).

use alloc::{boxed::Box, vec::Vec};
use core::mem;

use linerate_simd::mask;

use super::{Arriving, Aside, Chunk, Engine, Event, Events, framing::Piece, framing::Step};
use crate::{
    deflate::{Agreement, Codec, Context, Deflate, Part, Pool, Prepared, Round},
    error::{ProtocolError, SendError},
    frame::Header,
    opcode::{MessageKind, Opcode},
    role::{Endpoint, MaskKey},
};

/// RSV1, the bit of the first frame of a compressed message (RFC 7692 §7.2.3.1).
const RSV1: u8 = 0x4;

impl<E: Endpoint> Engine<E> {
    /// Enables compression with the parameters that the opening handshake negotiated, taking
    /// compression states from `pool`.
    ///
    /// Messages that are not worth compressing are sent uncompressed; `options` holds the remaining
    /// settings. Call this before passing any input.
    pub fn with_deflate(
        mut self,
        agreement: Agreement,
        options: &Deflate,
        pool: &'static dyn Pool,
    ) -> Self {
        self.set_deflate(agreement, options, pool);
        self
    }

    /// Like [`with_deflate`](Self::with_deflate), but changes the engine in place.
    pub fn set_deflate(
        &mut self,
        agreement: Agreement,
        options: &Deflate,
        pool: &'static dyn Pool,
    ) {
        let codec = Codec::new(agreement, options, pool);
        Aside::of(&mut self.aside).deflate = Some(Box::new(codec));
        self.receiving.rsv_known = RSV1;
    }

    /// Returns the parameters of our compressed messages; `None` if compression is off.
    pub fn deflates(&self) -> Option<Context> {
        self.codec().map(Codec::sending)
    }

    /// Returns whether [`send`](Self::send) would try to compress this payload.
    #[inline]
    pub fn would_deflate(&self, payload: &[u8]) -> bool {
        self.codec().is_some_and(|codec| codec.is_worth(payload))
    }

    /// Appends a prepared message to `out`: its compressed form if this connection can take it,
    /// else the uncompressed payload.
    ///
    /// # Errors
    /// Fails if the connection is closing, or a fragmented message is being sent.
    pub fn send_prepared(
        &mut self,
        out: &mut Vec<u8>,
        prepared: &Prepared,
    ) -> Result<(), SendError> {
        self.check_message_may_begin()?;
        let opcode = prepared.kind().opcode();
        match self
            .codec_mut()
            .and_then(|codec| codec.keep_prepared(prepared))
        {
            Some(compressed) => self.append_compressed(out, true, opcode, compressed),
            None => self.append_frame(out, true, opcode, prepared.payload()),
        }
        Ok(())
    }

    /// Appends a compressed message in one frame if that makes it shorter; returns whether it did.
    #[inline(never)]
    pub(super) fn try_send_compressed(
        &mut self,
        out: &mut Vec<u8>,
        kind: MessageKind,
        payload: &[u8],
    ) -> bool {
        let Some(mut codec) = self.take_codec() else {
            return false;
        };
        let mut sent = false;
        if codec.is_worth(payload) {
            let compressor = codec.compress(payload, true);
            sent = compressor.output().len() < payload.len();
            if sent {
                self.append_compressed(out, true, kind.opcode(), compressor.output());
                codec.keep(compressor, payload);
            } else {
                codec.discard(compressor);
            }
        }
        Aside::of(&mut self.aside).deflate = Some(codec);
        sent
    }

    /// Appends a compressed fragment if its message is compressed, which is decided on the first
    /// fragment; returns whether it is.
    pub(super) fn try_send_compressed_fragment(
        &mut self,
        out: &mut Vec<u8>,
        opcode: Opcode,
        payload: &[u8],
        fin: bool,
    ) -> bool {
        let Some(mut codec) = self.take_codec() else {
            return false;
        };
        if opcode != Opcode::Continuation {
            codec.is_sending = codec.is_worth(payload);
        }
        let compressed = codec.is_sending;
        if compressed {
            // Each fragment ends at a byte boundary, so that any compressor can continue there.
            let compressor = codec.compress(payload, fin);
            self.append_compressed(out, fin, opcode, compressor.output());
            codec.keep(compressor, payload);
            codec.is_sending = !fin;
        }
        Aside::of(&mut self.aside).deflate = Some(codec);
        compressed
    }

    /// Fails if the message that is being sent is compressed.
    pub(super) fn check_not_compressing(&self) -> Result<(), SendError> {
        match self.codec() {
            Some(codec) if codec.is_sending => Err(SendError::MessageCompressed),
            _ => Ok(()),
        }
    }

    pub(super) fn codec(&self) -> Option<&Codec> {
        self.aside.as_ref()?.deflate.as_deref()
    }

    pub(super) fn codec_mut(&mut self) -> Option<&mut Codec> {
        codec_in(&mut self.aside)
    }

    /// Takes the codec out; the caller puts it back.
    fn take_codec(&mut self) -> Option<Box<Codec>> {
        self.aside.as_mut()?.deflate.take()
    }

    fn append_compressed(&mut self, out: &mut Vec<u8>, fin: bool, opcode: Opcode, payload: &[u8]) {
        let mask = self.endpoint.next_mask_key();
        let is_first = opcode != Opcode::Continuation;
        let header = Header {
            fin,
            rsv: if is_first { RSV1 } else { 0 },
            ..Header::new(opcode, payload.len() as u64, mask)
        };
        let mut prefix = [0; Header::BYTES_MAX];
        let bytes = header.encode(&mut prefix);
        out.reserve(bytes + payload.len());
        out.extend_from_slice(&prefix[..bytes]);
        match mask {
            Some(MaskKey(key)) => mask::append(key, 0, payload, out),
            None => out.extend_from_slice(payload),
        }
    }
}

/// Returns the codec in an engine's optional state.
fn codec_in(aside: &mut Option<Box<Aside>>) -> Option<&mut Codec> {
    aside.as_mut()?.deflate.as_deref_mut()
}

impl<E: Endpoint> Events<'_, '_, E> {
    /// Inflates the available part of a compressed frame, up to the size of the output buffer.
    pub(super) fn step_compressed(&mut self) -> Result<Step, ProtocolError> {
        self.spent = None;
        let engine = &mut *self.engine;
        let (Arriving::Payload(frame), Some(message), Some(codec)) = (
            &mut engine.receiving.frame,
            &mut engine.receiving.message,
            codec_in(&mut engine.aside),
        ) else {
            return Ok(Step::Feed);
        };
        let rest = &mut self.input[self.at..];
        let available = frame.left.min(rest.len() as u64) as usize;
        if available == 0 && frame.left > 0 {
            return Ok(Step::Feed);
        }
        let part = Part {
            payload: &mut rest[..available],
            mask: frame.mask,
            phase: frame.phase.into(),
            is_rest: available as u64 == frame.left,
            fin: frame.fin,
        };
        let Round {
            taken,
            offset,
            spent,
        } = codec.inflate(part, &engine.config.limits)?;
        self.at += taken;
        frame.take(taken);
        let piece = Piece {
            kind: message.kind,
            begins: !mem::replace(&mut message.begun, true),
            ends: spent.is_some(),
            frame_bytes_left: 0,
            mask: None,
            phase: 0,
            offset,
        };
        if frame.left == 0 {
            engine.receiving.frame = Arriving::Nothing;
        }
        if piece.ends {
            engine.receiving.message = None;
        }
        self.spent = spent;
        Ok(Step::Inflated(piece))
    }

    /// Returns the bytes that were just inflated as an event; text is validated first.
    pub(super) fn inflated(&mut self, piece: Piece) -> Result<Event<'_>, ProtocolError> {
        let Piece {
            kind,
            begins,
            ends,
            offset,
            ..
        } = piece;
        if kind == MessageKind::Text {
            let Engine {
                receiving, aside, ..
            } = &mut *self.engine;
            let bytes = match (&mut self.spent, codec_in(aside)) {
                (Some(spent), _) => &*spent.output(),
                (None, Some(codec)) => &*codec.output(),
                (None, None) => &[],
            };
            if let Err(valid_up_to) = receiving.validate_piece(bytes, ends) {
                return Err(self.engine.fail_text(offset, valid_up_to));
            }
        }
        Ok(Event::Chunk(Chunk {
            kind,
            begins,
            ends,
            bytes: self.inflated_bytes(),
        }))
    }

    pub(super) fn inflated_bytes(&mut self) -> &mut [u8] {
        match (&mut self.spent, self.engine.codec_mut()) {
            (Some(spent), _) => spent.output(),
            (None, Some(codec)) => codec.output(),
            (None, None) => &mut [],
        }
    }
}
