//! Compressed messages on an open connection (RFC 7692 §6, §7.2).

use alloc::vec::Vec;
use core::mem;

use linerate_simd::mask;

use super::{
    Chunk, Event, Events,
    framing::{Arriving, ChunkHeader, Step},
    send::Sending,
};
use crate::{
    deflate::{Codec, Inflated, PayloadChunk},
    error::ProtocolError,
    frame::Header,
    opcode::{MessageKind, Opcode},
    role::{Endpoint, MaskKey},
};

/// RSV1, the bit of the first frame of a compressed message (RFC 7692 §7.2.3.1).
pub(super) const RSV1: u8 = 0x4;

impl<E: Endpoint> Sending<E> {
    /// Appends a compressed message in one frame if that makes it shorter; returns whether it did.
    #[inline(never)]
    pub(super) fn try_compressed(
        &mut self,
        codec: &mut Codec,
        out: &mut Vec<u8>,
        kind: MessageKind,
        payload: &[u8],
    ) -> bool {
        if !codec.is_worth(payload) {
            return false;
        }
        let compressor = codec.compress(payload, true);
        let is_shorter = compressor.output().len() < payload.len();
        if is_shorter {
            self.append_compressed(out, true, kind.opcode(), compressor.output());
            codec.keep(compressor, payload);
        } else {
            codec.discard(compressor);
        }
        is_shorter
    }

    /// Appends a compressed fragment if its message is compressed, which is decided on the first
    /// fragment; returns whether it is.
    pub(super) fn try_compressed_fragment(
        &mut self,
        codec: &mut Codec,
        out: &mut Vec<u8>,
        opcode: Opcode,
        payload: &[u8],
        fin: bool,
    ) -> bool {
        if opcode != Opcode::Continuation {
            codec.is_sending = codec.is_worth(payload);
        }
        let is_compressed = codec.is_sending;
        if is_compressed {
            // Each fragment ends at a byte boundary, so that any compressor can continue there.
            let compressor = codec.compress(payload, fin);
            self.append_compressed(out, fin, opcode, compressor.output());
            codec.keep(compressor, payload);
            codec.is_sending = !fin;
        }
        is_compressed
    }

    pub(super) fn append_compressed(
        &mut self,
        out: &mut Vec<u8>,
        fin: bool,
        opcode: Opcode,
        payload: &[u8],
    ) {
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

impl<E: Endpoint> Events<'_, '_, E> {
    /// Inflates the available part of a compressed frame, up to the size of the output buffer.
    pub(super) fn step_compressed(&mut self) -> Result<Step, ProtocolError> {
        self.spent = None;
        let engine = &mut *self.engine;
        let (Arriving::Payload(frame), Some(message), Some(codec)) = (
            &mut engine.receiving.frame,
            &mut engine.receiving.message,
            engine.lazy.codec_mut(),
        ) else {
            return Ok(Step::Feed);
        };
        let rest = &mut self.input[self.at..];
        let available = frame.left.min(rest.len() as u64) as usize;
        if available == 0 && frame.left > 0 {
            return Ok(Step::Feed);
        }
        let part = PayloadChunk {
            payload: &mut rest[..available],
            mask: frame.mask,
            phase: frame.phase.into(),
            is_rest: available as u64 == frame.left,
            fin: frame.fin,
        };
        let Inflated {
            taken,
            offset,
            spent,
        } = codec.inflate(part, &engine.config.limits)?;
        self.at += taken;
        frame.take(taken);
        let chunk = ChunkHeader {
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
        if chunk.ends {
            engine.receiving.message = None;
        }
        self.spent = spent;
        Ok(Step::Inflated(chunk))
    }

    /// Returns the bytes that were just inflated as an event; text is validated first.
    pub(super) fn inflated(&mut self, chunk: ChunkHeader) -> Result<Event<'_>, ProtocolError> {
        let ChunkHeader {
            kind,
            begins,
            ends,
            offset,
            ..
        } = chunk;
        if kind == MessageKind::Text {
            let engine = &mut *self.engine;
            let bytes = match (&mut self.spent, engine.lazy.codec_mut()) {
                (Some(spent), _) => &*spent.output(),
                (None, Some(codec)) => &*codec.output(),
                (None, None) => &[],
            };
            if let Err(valid_up_to) = engine.receiving.validate(bytes, ends) {
                return Err(engine.fail_text(offset, valid_up_to));
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
        match (&mut self.spent, self.engine.lazy.codec_mut()) {
            (Some(spent), _) => spent.output(),
            (None, Some(codec)) => codec.output(),
            (None, None) => &mut [],
        }
    }
}
