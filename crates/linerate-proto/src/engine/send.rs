//! Output: appends messages, fragments and control frames to the caller's buffer.

use alloc::vec::Vec;

use linerate_simd::mask;

use super::Engine;
#[cfg(feature = "deflate")]
use crate::deflate::Prepared;
use crate::{
    close::ControlPayload,
    error::SendError,
    frame::{Header, append_frame},
    opcode::{MessageKind, Opcode},
    role::{Endpoint, MaskKey},
};

impl<E: Endpoint> Engine<E> {
    /// Appends a text message to `out`, in one frame.
    ///
    /// # Errors
    /// Fails if the connection is closing, or a fragmented message is being sent.
    #[inline]
    pub fn send_text(&mut self, out: &mut Vec<u8>, text: &str) -> Result<(), SendError> {
        self.send(out, MessageKind::Text, text.as_bytes())
    }

    /// Appends a binary message to `out`, in one frame.
    ///
    /// # Errors
    /// Fails if the connection is closing, or a fragmented message is being sent.
    #[inline]
    pub fn send_binary(&mut self, out: &mut Vec<u8>, bytes: &[u8]) -> Result<(), SendError> {
        self.send(out, MessageKind::Binary, bytes)
    }

    /// Appends a message to `out`, in one frame. The `payload` of a text message must be UTF-8.
    ///
    /// The message is compressed if the opening handshake negotiated compression and it makes the
    /// message shorter.
    ///
    /// # Errors
    /// Fails if the connection is closing, or a fragmented message is being sent.
    #[inline]
    pub fn send(
        &mut self,
        out: &mut Vec<u8>,
        kind: MessageKind,
        payload: &[u8],
    ) -> Result<(), SendError> {
        self.check_message_may_begin()?;
        #[cfg(feature = "deflate")]
        if self.receiving.rsv_known != 0
            && let Some(codec) = self.lazy.codec_mut()
            && self.sending.try_compressed(codec, out, kind, payload)
        {
            return Ok(());
        }
        self.sending.append_frame(out, true, kind.opcode(), payload);
        Ok(())
    }

    /// Appends a message to `out`, in one frame and never compressed.
    ///
    /// Use this for secrets, because the length of a compressed message reveals something about its
    /// content (RFC 7692 §8).
    ///
    /// # Errors
    /// Fails if the connection is closing, or a fragmented message is being sent.
    pub fn send_uncompressed(
        &mut self,
        out: &mut Vec<u8>,
        kind: MessageKind,
        payload: &[u8],
    ) -> Result<(), SendError> {
        self.check_message_may_begin()?;
        self.sending.append_frame(out, true, kind.opcode(), payload);
        Ok(())
    }

    /// Appends a prepared message to `out`: its compressed form if this connection can take it,
    /// else the uncompressed payload.
    ///
    /// # Errors
    /// Fails if the connection is closing, or a fragmented message is being sent.
    #[cfg(feature = "deflate")]
    pub fn send_prepared(
        &mut self,
        out: &mut Vec<u8>,
        prepared: &Prepared,
    ) -> Result<(), SendError> {
        self.check_message_may_begin()?;
        let opcode = prepared.kind().opcode();
        let codec = self.lazy.codec_mut();
        match codec.and_then(|codec| codec.keep_prepared(prepared)) {
            Some(compressed) => self
                .sending
                .append_compressed(out, true, opcode, compressed),
            None => self
                .sending
                .append_frame(out, true, opcode, prepared.payload()),
        }
        Ok(())
    }

    /// Appends only the header of a message to `out`; the caller sends the payload right after it.
    ///
    /// If a masking key is returned, the caller must mask the payload with it, starting at phase 0.
    ///
    /// This is for large payloads that are written without being copied. They are never compressed.
    ///
    /// # Errors
    /// Fails if the connection is closing, or a fragmented message is being sent.
    pub fn send_prefix(
        &mut self,
        out: &mut Vec<u8>,
        kind: MessageKind,
        payload_bytes: u64,
    ) -> Result<Option<MaskKey>, SendError> {
        self.check_message_may_begin()?;
        Ok(self
            .sending
            .append_prefix(out, true, kind.opcode(), payload_bytes))
    }

    /// Appends a fragment of a message to `out`; `fin` ends the message.
    ///
    /// The first call begins the message. A text message may be split anywhere, even inside a code
    /// point, but the whole message must be UTF-8.
    ///
    /// # Errors
    /// Fails if the connection is closing, or a message of the other kind is being sent.
    pub fn send_fragment(
        &mut self,
        out: &mut Vec<u8>,
        kind: MessageKind,
        payload: &[u8],
        fin: bool,
    ) -> Result<(), SendError> {
        self.closing.check_output_open()?;
        let opcode = self.sending.begin_fragment(kind, fin)?;
        #[cfg(feature = "deflate")]
        if let Some(codec) = self.lazy.codec_mut()
            && (self.sending).try_compressed_fragment(codec, out, opcode, payload, fin)
        {
            return Ok(());
        }
        self.sending.append_frame(out, fin, opcode, payload);
        Ok(())
    }

    /// Appends only the header of a fragment to `out`, as [`send_prefix`](Self::send_prefix) does
    /// for a message.
    ///
    /// # Errors
    /// Fails like [`send_fragment`](Self::send_fragment), and also if the message was begun by
    /// [`send_fragment`](Self::send_fragment) and is compressed.
    pub fn send_fragment_prefix(
        &mut self,
        out: &mut Vec<u8>,
        kind: MessageKind,
        payload_bytes: u64,
        fin: bool,
    ) -> Result<Option<MaskKey>, SendError> {
        #[cfg(feature = "deflate")]
        if self.lazy.codec().is_some_and(|codec| codec.is_sending) {
            return Err(SendError::MessageCompressed);
        }
        self.closing.check_output_open()?;
        let opcode = self.sending.begin_fragment(kind, fin)?;
        Ok(self.sending.append_prefix(out, fin, opcode, payload_bytes))
    }

    /// Returns whether a fragmented message is being sent; no other message may begin before it
    /// ends.
    #[inline]
    pub const fn is_message_in_progress(&self) -> bool {
        self.sending.message.is_some()
    }

    /// Appends a Ping to `out`.
    ///
    /// # Errors
    /// Fails if the connection is closing, or `payload` has more than 125 bytes.
    pub fn send_ping(&mut self, out: &mut Vec<u8>, payload: &[u8]) -> Result<(), SendError> {
        self.send_control(out, Opcode::Ping, payload)
    }

    /// Appends an unsolicited Pong to `out` (§5.5.3). The engine answers Pings by itself.
    ///
    /// # Errors
    /// Fails if the connection is closing, or `payload` has more than 125 bytes.
    pub fn send_pong(&mut self, out: &mut Vec<u8>, payload: &[u8]) -> Result<(), SendError> {
        self.send_control(out, Opcode::Pong, payload)
    }

    fn send_control(
        &mut self,
        out: &mut Vec<u8>,
        opcode: Opcode,
        payload: &[u8],
    ) -> Result<(), SendError> {
        self.closing.check_output_open()?;
        if payload.len() > ControlPayload::BYTES_MAX {
            return Err(SendError::ControlTooLong {
                bytes: payload.len(),
            });
        }
        self.sending.append_frame(out, true, opcode, payload);
        Ok(())
    }

    #[inline]
    fn check_message_may_begin(&self) -> Result<(), SendError> {
        self.closing.check_output_open()?;
        if self.sending.message.is_some() {
            Err(SendError::MessageInProgress)
        } else {
            Ok(())
        }
    }
}

/// The endpoint, and the message that it sends in fragments.
#[derive(Debug)]
pub(super) struct Sending<E> {
    pub(super) endpoint: E,
    /// The kind of the fragmented message that is being sent.
    pub(super) message: Option<MessageKind>,
}

impl<E: Endpoint> Sending<E> {
    pub(super) const fn new(endpoint: E) -> Self {
        Self {
            endpoint,
            message: None,
        }
    }

    /// Returns the opcode of the next fragment, and records whether more fragments follow.
    fn begin_fragment(&mut self, kind: MessageKind, fin: bool) -> Result<Opcode, SendError> {
        let opcode = match self.message {
            None => kind.opcode(),
            Some(current) if current == kind => Opcode::Continuation,
            Some(_) => return Err(SendError::MessageInProgress),
        };
        self.message = (!fin).then_some(kind);
        Ok(opcode)
    }

    #[inline]
    pub(super) fn append_frame(
        &mut self,
        out: &mut Vec<u8>,
        fin: bool,
        opcode: Opcode,
        payload: &[u8],
    ) {
        match self.endpoint.next_mask_key() {
            Some(key) => append_masked_frame(out, fin, opcode, payload, key),
            None => append_frame(out, fin, opcode, payload),
        }
    }

    #[inline]
    fn append_prefix(
        &mut self,
        out: &mut Vec<u8>,
        fin: bool,
        opcode: Opcode,
        payload_bytes: u64,
    ) -> Option<MaskKey> {
        let mask = self.endpoint.next_mask_key();
        append_header(out, fin, opcode, payload_bytes, mask);
        mask
    }
}

/// Appends a frame as a client sends it. A separate function, so that the server's path stays short
/// if the role is known only at run time.
#[inline(never)]
fn append_masked_frame(out: &mut Vec<u8>, fin: bool, opcode: Opcode, payload: &[u8], key: MaskKey) {
    out.reserve(Header::BYTES_MAX + payload.len());
    append_header(out, fin, opcode, payload.len() as u64, Some(key));
    mask::append(key.0, 0, payload, out);
}

#[inline]
fn append_header(
    out: &mut Vec<u8>,
    fin: bool,
    opcode: Opcode,
    payload_bytes: u64,
    mask: Option<MaskKey>,
) {
    let header = Header {
        fin,
        ..Header::new(opcode, payload_bytes, mask)
    };
    let mut prefix = [0; Header::BYTES_MAX];
    let bytes = header.encode(&mut prefix);
    out.extend_from_slice(&prefix[..bytes]);
}
