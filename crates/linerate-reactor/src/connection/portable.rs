//! Exports an open connection, and continues one that another process exported.
//!
//! The state has the flags of the connection, its deadlines as the time that is left, its output
//! and input that wait, the message that is arriving, and the state of its engine. The data of the
//! handler, topics, and the socket itself belong to the caller.

use std::time::Duration;

use linerate_proto::{
    Engine,
    engine::Importer,
    portable::{ImportError, Reader, Version, Writer},
};
use linerate_simd::utf8::{TextBuf, Validator};

use super::{
    Connection, Stage,
    endpoint::RuntimeRole,
    memory::Memory,
    partial::{PartialMessage, Stream},
};
use crate::{
    export::{ExportError, ImportOptions},
    wheel::{millis_until, tick_in},
};

/// The numbers of the variants of [`PartialMessage`].
const NONE: u8 = 0;
const BINARY: u8 = 1;
const TEXT: u8 = 2;
const STREAMED: u8 = 3;

impl Connection {
    /// Appends the state of the connection, with which [`import`](Self::import) continues it. This
    /// connection can continue too, if it turns out that the other one does not.
    ///
    /// Call this when the cork is empty, with a driver that does not queue output.
    ///
    /// # Errors
    /// Fails if the connection cannot be exported, or not yet. Nothing has changed then.
    pub(crate) fn export(
        &mut self,
        state: &mut Writer,
        version: Version,
        is_paused: bool,
        now: Duration,
    ) -> Result<(), ExportError> {
        if self.lost || !matches!(self.stage, Stage::Open { .. }) {
            return Err(ExportError::Ended);
        }
        let engine = self.engine.export(version, now)?;
        for flag in [is_paused, self.congested, self.ended, self.output_ended] {
            state.flag(flag);
        }
        state.bytes(&engine);
        // Once the input is over, nothing completes the message that was arriving.
        let is_input_over = self.engine.is_input_over();
        let partial = self.partial.as_deref().filter(|_| !is_input_over);
        export_partial(partial, state);
        if partial.is_some() {
            state.u32(match self.message_due {
                0 => u32::MAX,
                due => millis_until(due, now),
            });
        }
        state.bytes(self.held.unprocessed_mut());
        self.backlog.export(state, now);
        state.flag(self.tls.is_some());
        if let Some(tls) = &self.tls {
            tls.export(state)?;
        }
        Ok(())
    }

    /// Continues an exported connection, which is not in the reactor's tables yet. This connection
    /// must be new, and have the same role.
    ///
    /// # Errors
    /// Fails if no connection can be in this state.
    pub(crate) fn import(
        &mut self,
        state: &mut Reader<'_>,
        importer: &Importer,
        options: &ImportOptions,
        memory: &mut Memory,
        now: Duration,
    ) -> Result<(), ImportError> {
        let Memory {
            pool, queues, held, ..
        } = memory;
        self.paused = state.flag("paused")?;
        self.congested = state.flag("congested")?;
        self.ended = state.flag("end of the input")?;
        self.output_ended = state.flag("end of the output")?;
        let engine = state.bytes("engine", u32::MAX as usize)?;
        self.engine = importer.import(RuntimeRole(self.role()), engine, now)?;
        self.partial = import_partial(state, &self.engine)?.map(Box::new);
        if self.partial.is_some() {
            self.message_due = tick_in(state.u32("time for the message")?, now);
        }
        if self.engine.is_input_over() {
            // The message that was arriving exceeds a limit of this process.
            (self.partial, self.message_due) = (None, 0);
        }
        let waiting = state.bytes("held input", u32::MAX as usize)?;
        self.held.append(waiting, pool, held);
        self.backlog.import(state, pool, queues, now)?;
        if state.flag("TLS")? {
            self.tls = Some(options.import_tls(state)?);
        }
        if self.congested && self.backlog.is_empty() {
            let (field, value) = ("congested", 1);
            return Err(ImportError::Invalid { field, value });
        }
        Ok(())
    }
}

fn export_partial(partial: Option<&PartialMessage>, state: &mut Writer) {
    state.u8(match partial {
        None => NONE,
        Some(PartialMessage::Binary(_)) => BINARY,
        Some(PartialMessage::Text(_)) => TEXT,
        Some(PartialMessage::Streamed(_)) => STREAMED,
    });
    if let Some(PartialMessage::Streamed(stream)) = partial {
        state.u8(stream.validator.state());
        state.flag(stream.begun);
    }
    if let Some(partial) = partial {
        state.bytes(partial.as_bytes());
    }
}

fn import_partial(
    state: &mut Reader<'_>,
    engine: &Engine<RuntimeRole>,
) -> Result<Option<PartialMessage>, ImportError> {
    let invalid = |field, value: u64| ImportError::Invalid { field, value };
    let field = "joined message";
    let kind = state.u8(field)?;
    if kind == NONE {
        return Ok(None);
    }
    let mut stream = Stream::default();
    if kind == STREAMED {
        let number = state.u8("UTF-8 state")?;
        let validator = Validator::from_state(number);
        stream.validator = validator.ok_or(invalid("UTF-8 state", number.into()))?;
        stream.begun = state.flag("begun")?;
    }
    // A message that exceeds the limit of this process has ended the input.
    let bytes_max = match engine.is_input_over() {
        true => u64::MAX,
        false => engine.config().limits.message_bytes_max,
    };
    let bytes = state.bytes(field, usize::try_from(bytes_max).unwrap_or(usize::MAX))?;
    Ok(Some(match kind {
        BINARY => PartialMessage::Binary(bytes.into()),
        TEXT => {
            let mut text = TextBuf::new();
            let pushed = text.push(bytes);
            pushed.map_err(|error| invalid("joined text", error.valid_up_to() as u64))?;
            PartialMessage::Text(text)
        }
        STREAMED => {
            stream.held = bytes.into();
            PartialMessage::Streamed(stream)
        }
        other => return Err(invalid(field, other.into())),
    }))
}
