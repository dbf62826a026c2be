//! Payloads of messages: unmasks them and validates text (RFC 6455 §5.3, §8.1).

use linerate_simd::{
    mask,
    utf8::{self, InPlacePayloads},
};

use super::{
    InPlaceMessage, Message,
    framing::{Receiving, WholeMessage},
};
use crate::{opcode::MessageKind, role::MaskKey};

impl WholeMessage {
    /// Unmasks the message at `at` in `input` and, if it is text, validates it. Fails with the
    /// length of its valid part if it is not UTF-8.
    #[inline(always)]
    pub(super) fn take(self, input: &mut [u8], at: usize) -> Result<InPlaceMessage<'_>, usize> {
        let start = at + self.prefix_bytes;
        let end = start + self.bytes;
        if self.kind == MessageKind::Binary {
            if let Some(MaskKey(key)) = self.mask {
                mask::apply(key, 0, &mut input[start..end]);
            }
            let message = Message::Binary(&input[start..end]);
            return Ok(InPlaceMessage {
                message,
                input,
                end,
            });
        }
        let text = match self.mask {
            Some(MaskKey(key)) => utf8::validate_masked(key, input, start..end),
            None => utf8::validate(&input[start..end]).map(|text| (text, &*input)),
        };
        match text {
            Ok((text, input)) => Ok(InPlaceMessage {
                message: Message::Text(text),
                input,
                end,
            }),
            Err(error) => Err(error.valid_up_to()),
        }
    }

    /// Unmasks the message at `at` in the input of `payloads`, validates it if it is text, and
    /// lists it there; returns where it ends. Fails like [`take`](Self::take).
    #[inline(always)]
    pub(super) fn list(self, payloads: &mut InPlacePayloads, at: usize) -> Result<usize, usize> {
        let start = at + self.prefix_bytes;
        let end = start + self.bytes;
        let key = self.mask.map(|MaskKey(key)| key);
        match self.kind {
            MessageKind::Binary => payloads.push_binary(key, start..end),
            MessageKind::Text => payloads
                .push_text(key, start..end)
                .map_err(|error| error.valid_up_to())?,
        }
        Ok(end)
    }
}

impl Receiving {
    /// Validates the next chunk of a text message. Fails with the length of its valid part if it is
    /// not UTF-8, or if it `ends` the message inside a code point.
    pub(super) fn validate(&mut self, bytes: &[u8], ends: bool) -> Result<(), usize> {
        self.utf8.push(bytes).map_err(|error| error.valid_up_to())?;
        if ends && !self.utf8.is_complete() {
            Err(bytes.len())
        } else {
            Ok(())
        }
    }
}
