//! Exports an engine, and continues one that another process exported.

mod receiving;

use alloc::{sync::Arc, vec::Vec};
use core::time::Duration;

use super::{Engine, closing::Closing, keepalive::Keepalive, keepalive::time, send::Sending};
#[cfg(feature = "deflate")]
use crate::deflate::{Codec, Deflate, Pool, Unpooled};
use crate::{
    close::{CloseFrame, ControlPayload},
    config::Config,
    opcode::{MessageKind, Opcode},
    portable::{ExportError, ImportError, Reader, Version, Writer, check, invalid},
    role::{Endpoint, Role},
};

/// The size of the state of an idle connection without compression, in bytes, and some more.
const STATE_BYTES: usize = 128;

impl<E: Endpoint> Engine<E> {
    /// Returns the state of the connection, with which an [`Importer`] continues it. This engine
    /// can continue too, if it turns out that the other one does not.
    ///
    /// Call this between two reads, when no events are left to take. Input that was not consumed
    /// and output that was not written are not part of the state; see
    /// [`portable`](crate::portable) for what the caller has to transmit with it.
    ///
    /// # Errors
    /// Fails if a compressed message is arriving and
    /// [`Deflate::exportable`](crate::deflate::Deflate::exportable) is not set. Try again once the
    /// message is complete.
    pub fn export(&mut self, version: Version, now: Duration) -> Result<Vec<u8>, ExportError> {
        let is_input_open = self.closing.is_input_open();
        #[cfg(feature = "deflate")]
        if is_input_open && let Some(codec) = self.lazy.codec_mut() {
            codec.settle()?;
        }
        let mut state = Writer::with_capacity(version, STATE_BYTES);
        state.u8(role_number(self.endpoint().role()));
        self.closing.export(&mut state);
        self.export_answer(&mut state);
        let is_closing = !self.closing.is_output_open();
        self.keepalive.export(&mut state, is_closing, time(now));
        self.sending.export(&mut state);
        self.export_codec(&mut state, is_input_open);
        if is_input_open {
            self.receiving.export(&mut state);
            #[cfg(feature = "deflate")]
            if let Some(codec) = self.lazy.codec() {
                codec.export_message(&mut state);
            }
        }
        Ok(state.finish())
    }

    fn export_answer(&self, state: &mut Writer) {
        state.u8(self.answer_due.map_or(0, |opcode| opcode as u8));
        // Our Close frame is remembered, but not an answered Ping.
        if self.answer_due.is_some() || self.closing.initiator().is_some() {
            state.bytes(self.lazy.answer());
        }
    }

    fn import_answer(&mut self, state: &mut Reader<'_>) -> Result<(), ImportError> {
        let number = state.u8("control frame due")?;
        let has_closed = self.closing.initiator().is_some();
        self.answer_due = match number {
            0 => None,
            _ => Opcode::from_bits(number),
        };
        let is_possible = match self.answer_due {
            None => number == 0,
            Some(Opcode::Close) => has_closed,
            Some(Opcode::Pong) => self.closing.is_output_open(),
            Some(_) => false,
        };
        check(is_possible, "control frame due", number)?;
        if self.answer_due.is_some() || has_closed {
            let payload = state.bytes("control payload due", ControlPayload::BYTES_MAX)?;
            if has_closed && CloseFrame::decode(payload).is_err() {
                return Err(invalid("sent close payload", payload.len() as u64));
            }
            self.lazy.set_answer(payload);
        }
        Ok(())
    }

    #[cfg(feature = "deflate")]
    fn export_codec(&self, state: &mut Writer, is_input_open: bool) {
        let codec = self.lazy.codec();
        state.flag(codec.is_some());
        if let Some(codec) = codec {
            codec.export(state, is_input_open);
        }
    }

    #[cfg(not(feature = "deflate"))]
    fn export_codec(&self, state: &mut Writer, _: bool) {
        state.flag(false);
    }
}

/// Continues connections that another process has exported.
///
/// ```
/// use core::time::Duration;
/// use linerate_proto::{Engine, Event, Server, engine::Importer, portable::Version};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let wire = b"\x81\x84\x00\x00\x00\x00Spam"; // a masked text frame
/// let (mut first, mut rest) = (wire[..8].to_vec(), wire[8..].to_vec());
///
/// let mut old = Engine::new(Server, Default::default(), Duration::ZERO);
/// let mut text = Vec::new();
/// let mut events = old.handle_input(&mut first, Duration::ZERO);
/// while let Some(event) = events.next() {
///     if let Event::Chunk(chunk) = event? {
///         text.extend_from_slice(chunk.bytes);
///     }
/// }
/// let state = old.export(Version::NEWEST, Duration::ZERO)?;
///
/// // In another process:
/// let importer = Importer::new(Default::default());
/// let mut new = importer.import(Server, &state, Duration::ZERO)?;
/// let mut events = new.handle_input(&mut rest, Duration::ZERO);
/// while let Some(event) = events.next() {
///     if let Event::Chunk(chunk) = event? {
///         text.extend_from_slice(chunk.bytes);
///     }
/// }
/// assert_eq!(text, b"Spam");
/// # Ok(())
/// # }
/// ```
pub struct Importer {
    config: Arc<Config>,
    #[cfg(feature = "deflate")]
    options: Deflate,
    #[cfg(feature = "deflate")]
    pool: &'static dyn Pool,
}

impl Importer {
    /// Creates an importer of connections that share one `Config`.
    pub fn new(config: Arc<Config>) -> Self {
        Self {
            config,
            #[cfg(feature = "deflate")]
            options: Deflate::default(),
            #[cfg(feature = "deflate")]
            pool: &Unpooled,
        }
    }

    /// Sets the options of connections that compress, and where they take compression states from.
    /// The parameters that were negotiated are part of their state.
    #[cfg(feature = "deflate")]
    pub fn with_deflate(mut self, options: &Deflate, pool: &'static dyn Pool) -> Self {
        (self.options, self.pool) = (*options, pool);
        self
    }

    /// Returns an engine that continues at `now` where the exported one was.
    ///
    /// The zero of `now` may differ from that of the other process. If it is so recent that
    /// something happened before it, the deadlines that follow from this become later.
    ///
    /// If the message that is arriving exceeds a limit of this importer's `Config`, the connection
    /// has failed, and its Close frame is queued.
    ///
    /// # Errors
    /// Fails if the state has an unknown version, or is not that of an engine in this role.
    pub fn import<E: Endpoint>(
        &self,
        endpoint: E,
        state: &[u8],
        now: Duration,
    ) -> Result<Engine<E>, ImportError> {
        let (mut reader, _) = Reader::new(state)?;
        let state = &mut reader;
        let expected = endpoint.role();
        let found = import_role(state)?;
        if found != expected {
            return Err(ImportError::Role { found, expected });
        }
        let mut engine = Engine::new(endpoint, Arc::clone(&self.config), now);
        engine.closing = Closing::import(state)?;
        engine.import_answer(state)?;
        let is_closing = !engine.closing.is_output_open();
        engine.keepalive = Keepalive::import(state, is_closing, time(now))?;
        engine.sending.import(state)?;
        let compresses = state.flag("compression")?;
        if compresses {
            self.import_codec(&mut engine, state)?;
        }
        if engine.closing.is_input_open() {
            engine.receiving.import(state, expected, compresses)?;
            #[cfg(feature = "deflate")]
            engine.import_message(state)?;
        }
        reader.finish()?;
        if let Err(error) = engine.receiving.check_message(&engine.config.limits) {
            engine.fail(&error);
        }
        Ok(engine)
    }

    #[cfg(feature = "deflate")]
    fn import_codec<E: Endpoint>(
        &self,
        engine: &mut Engine<E>,
        state: &mut Reader<'_>,
    ) -> Result<(), ImportError> {
        let codec = Codec::import(
            state,
            &self.options,
            self.pool,
            engine.closing.is_input_open(),
        )?;
        check(
            !codec.is_sending || engine.is_message_in_progress(),
            "compressed message being sent",
            1_u8,
        )?;
        engine.lazy.set_codec(codec);
        engine.receiving.rsv_known = super::deflated::RSV1;
        Ok(())
    }

    #[cfg(not(feature = "deflate"))]
    fn import_codec<E: Endpoint>(
        &self,
        _: &mut Engine<E>,
        _: &mut Reader<'_>,
    ) -> Result<(), ImportError> {
        Err(ImportError::Compression)
    }
}

impl core::fmt::Debug for Importer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Importer")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

#[cfg(feature = "deflate")]
impl<E: Endpoint> Engine<E> {
    /// Continues the inflater, which exists from the first byte of a compressed message on.
    fn import_message(&mut self, state: &mut Reader<'_>) -> Result<(), ImportError> {
        let Some(codec) = self.lazy.codec_mut() else {
            return Ok(());
        };
        let frame_bytes_left = self.receiving.compressed_bytes_left();
        let is_inflating = codec.import_message(state, frame_bytes_left.unwrap_or(0))?;
        let message = self.receiving.message.filter(|message| message.compressed);
        let has_begun = message.is_some_and(|message| message.begun);
        check(is_inflating == has_begun, "inflater", is_inflating)
    }
}

impl<E> Sending<E> {
    fn export(&self, state: &mut Writer) {
        let opcode = self.message.map(MessageKind::opcode);
        state.u8(opcode.map_or(0, |opcode| opcode as u8));
    }

    fn import(&mut self, state: &mut Reader<'_>) -> Result<(), ImportError> {
        let field = "message being sent";
        self.message = match state.u8(field)? {
            0 => None,
            number => Some(kind(number).ok_or(invalid(field, number))?),
        };
        Ok(())
    }
}

/// Returns the kind of message that begins with a frame of this opcode.
fn kind(opcode: u8) -> Option<MessageKind> {
    match Opcode::from_bits(opcode)? {
        Opcode::Binary => Some(MessageKind::Binary),
        Opcode::Text => Some(MessageKind::Text),
        _ => None,
    }
}

const fn role_number(role: Role) -> u8 {
    match role {
        Role::Client => 0,
        Role::Server => 1,
    }
}

fn import_role(state: &mut Reader<'_>) -> Result<Role, ImportError> {
    match state.u8("role")? {
        0 => Ok(Role::Client),
        1 => Ok(Role::Server),
        other => Err(invalid("role", other)),
    }
}
