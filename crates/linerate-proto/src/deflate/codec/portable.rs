//! Exports the compression of a connection, and continues it.

use super::{Codec, Message, parked_bytes};
use crate::{
    deflate::{Agreement, Context, Deflate, Pool},
    portable::{ExportError, ImportError, Reader, Writer, check},
};

impl Codec {
    /// Brings a message that is arriving to a place that can be exported.
    pub(crate) fn settle(&mut self) -> Result<(), ExportError> {
        let Some(message) = &mut self.message else {
            return Ok(());
        };
        if !self.is_exportable {
            return Err(ExportError::CompressedMessage);
        }
        self.receiving.settle(&mut message.decompressor);
        Ok(())
    }

    /// Exports the agreement and the windows of the directions that are open.
    pub(crate) fn export(&self, state: &mut Writer, is_input_open: bool) {
        self.agreed.export(state);
        self.receiving.context().export(state);
        state.flag(self.is_sending);
        state.parts(self.sending.sent());
        if is_input_open {
            self.receiving.export(state);
        }
    }

    /// Exports the message that is arriving, which must be [settled](Self::settle).
    pub(crate) fn export_message(&self, state: &mut Writer) {
        state.flag(self.message.is_some());
        if let Some(message) = &self.message {
            state.u64(message.unmasked as u64);
            state.u8(message.eaten as u8);
            message.decompressor.export(state);
        }
    }

    pub(crate) fn import(
        state: &mut Reader<'_>,
        options: &Deflate,
        pool: &'static dyn Pool,
        is_input_open: bool,
    ) -> Result<Self, ImportError> {
        let agreement = Agreement {
            sending: Context::import(state)?,
            receiving: Context::import(state)?,
        };
        let mut codec = Self::new(agreement, options, pool);
        codec.is_sending = state.flag("compressed message being sent")?;
        let sending = agreement.sending;
        let bytes_max = if sending.takeover {
            1 << sending.window_bits
        } else {
            0
        };
        codec
            .sending
            .continue_after(state.bytes("sending window", bytes_max)?);
        if is_input_open {
            codec.receiving.import(state)?;
        }
        Ok(codec)
    }

    /// Continues the message that is arriving, if there is one, given how many bytes of its frame
    /// are still to come; returns whether there is one.
    pub(crate) fn import_message(
        &mut self,
        state: &mut Reader<'_>,
        frame_bytes_left: u64,
    ) -> Result<bool, ImportError> {
        if !state.flag("inflater")? {
            return Ok(false);
        }
        let unmasked = state.u64("unmasked bytes")?;
        check(unmasked <= frame_bytes_left, "unmasked bytes", unmasked)?;
        let eaten = state.u8("inflated bytes of the input")?;
        let is_possible = eaten <= 1 && u64::from(eaten) <= unmasked;
        check(is_possible, "inflated bytes of the input", eaten)?;
        // Put into the codec first, so that the decompressor returns to its pool after an error.
        let message = self
            .message
            .insert(Message::start(self.pool, &self.receiving));
        message.unmasked = usize::try_from(unmasked).unwrap_or(usize::MAX);
        message.eaten = eaten.into();
        // The other process had room for it, so it does not fail here.
        message.parked.insist_on(parked_bytes(self.is_exportable));
        self.receiving
            .import_message(&mut message.decompressor, state)?;
        let has_found = message.decompressor.has_found();
        let is_possible = !has_found || frame_bytes_left > 0;
        check(is_possible, "inflated bytes to return", has_found)?;
        Ok(true)
    }
}

impl Context {
    fn export(self, state: &mut Writer) {
        state.u8(self.window_bits);
        state.flag(self.takeover);
    }

    fn import(state: &mut Reader<'_>) -> Result<Self, ImportError> {
        let window_bits = state.u8("window bits")?;
        check((8..=15).contains(&window_bits), "window bits", window_bits)?;
        let takeover = state.flag("context takeover")?;
        Ok(Self {
            window_bits,
            takeover,
        })
    }
}
