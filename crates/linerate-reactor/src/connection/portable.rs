//! Exports an open connection without TLS, and continues one that another process exported.
//!
//! The state has the flags of the connection, its output and input that wait, the message that is
//! arriving, and the state of its engine. What the handler keeps, its topics, and the socket itself
//! belong to the caller. Deadlines of the wheel follow from the rest.
#![cfg_attr(
    not(test),
    expect(dead_code, reason = "the workers do not hand over connections yet")
)]

use std::time::Duration;

use linerate_proto::{
    Engine,
    engine::Importer,
    portable::{self, ImportError, Reader, Version, Writer},
};
use linerate_simd::utf8::{TextBuf, Validator};

use super::{
    Connection, Stage,
    endpoint::RuntimeRole,
    memory::Memory,
    partial::{PartialMessage, Stream},
};
use crate::driver::{Driver, event::InFlight};

/// A connection cannot be exported now.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum ExportError {
    #[error(transparent)]
    Engine(#[from] portable::ExportError),
    #[error("kernel is sending output of the connection")]
    InFlight,
    #[error("connection is not open, or was lost")]
    NotOpen,
    #[error("connection is encrypted")]
    Tls,
}

/// The numbers of the variants of [`PartialMessage`].
const NONE: u8 = 0;
const BINARY: u8 = 1;
const TEXT: u8 = 2;
const STREAMED: u8 = 3;

impl Connection {
    /// Returns the state of the connection, with which [`import`](Self::import) continues it. This
    /// connection can continue too, if it turns out that the other one does not.
    ///
    /// Call this between turns, when the cork is empty. Output that was queued in the driver is
    /// moved to the backlog.
    ///
    /// # Errors
    /// Fails if the connection cannot be exported, or not yet.
    pub(crate) fn export(
        &mut self,
        version: Version,
        driver: &mut Driver,
        memory: &mut Memory,
        now: Duration,
    ) -> Result<Vec<u8>, ExportError> {
        if self.tls.is_some() {
            return Err(ExportError::Tls);
        }
        if self.lost || !matches!(self.stage, Stage::Open { .. }) {
            return Err(ExportError::NotOpen);
        }
        match driver.withdraw(self.slot.token(), &mut self.watch) {
            Ok(None) => {}
            Ok(Some(bytes)) => {
                let Memory { pool, queues, .. } = memory;
                self.backlog.prepend(bytes, 0, pool, queues);
            }
            Err(InFlight) => return Err(ExportError::InFlight),
        }
        let mut state = Writer::new(version);
        for flag in [
            self.paused,
            self.congested,
            self.congestion_reported,
            self.ended,
            self.output_ended,
        ] {
            state.flag(flag);
        }
        state.bytes(&self.engine.export(version, now)?);
        export_partial(self.partial.as_deref(), &mut state);
        state.bytes(self.held.unprocessed_mut());
        self.backlog.export(&mut state);
        Ok(state.finish())
    }

    /// Continues an exported connection. This connection must be new, and have the same role.
    ///
    /// # Errors
    /// Fails if the state has an unknown version, or no connection can be in it.
    pub(crate) fn import(
        &mut self,
        state: &[u8],
        importer: &Importer,
        memory: &mut Memory,
        now: Duration,
    ) -> Result<(), ImportError> {
        let Memory {
            pool, queues, held, ..
        } = memory;
        let (mut state, _) = Reader::new(state)?;
        self.paused = state.flag("paused")?;
        self.congested = state.flag("congested")?;
        self.congestion_reported = state.flag("congestion reported")?;
        self.ended = state.flag("end of the input")?;
        self.output_ended = state.flag("end of the output")?;
        let engine = state.bytes("engine", u32::MAX as usize)?;
        self.engine = importer.import(RuntimeRole(self.role()), engine, now)?;
        self.partial = import_partial(&mut state, &self.engine)?.map(Box::new);
        let waiting = state.bytes("held input", u32::MAX as usize)?;
        self.held.append(waiting, pool, held);
        self.backlog.import(&mut state, pool, queues)?;
        if self.congested && self.backlog.is_empty() {
            let (field, value) = ("congested", 1);
            return Err(ImportError::Invalid { field, value });
        }
        state.finish()
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
    if engine.is_input_over() {
        return Err(invalid(field, kind.into()));
    }
    let mut stream = Stream::default();
    if kind == STREAMED {
        let number = state.u8("UTF-8 state")?;
        let validator = Validator::from_state(number);
        stream.validator = validator.ok_or(invalid("UTF-8 state", number.into()))?;
        stream.begun = state.flag("begun")?;
    }
    let bytes = state.bytes(field, u32::MAX as usize)?;
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
