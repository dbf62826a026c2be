//! The queue of input: unparsed bytes, an incomplete message, and messages that the application has
//! not taken yet.

mod ahead;
mod collect;
mod in_place;
mod incoming;
mod unparsed;

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    thread::LocalKey,
};

use linerate_proto::{
    Config, Engine, Header, MaskKey, Opcode, ProtocolError, Role,
    engine::{MessageKind, RawEvent},
};

use super::{Side, round_trips::PongMark, turn::Turn};
use crate::{
    CloseFrame, Error,
    message::Message,
    pool::{ReadSize, Recycle, Recycled, Spare},
    transport::Transport,
};

use ahead::Ahead;
use incoming::Incoming;
use unparsed::{EngineTime, Unparsed};

/// A message, or a part of one as it arrived.
pub(crate) struct Chunk {
    pub(crate) message: Message,
    /// True if the message ends here.
    pub(crate) end: End,
}

impl Chunk {
    /// Returns a message that is complete.
    const fn whole(message: Message) -> Self {
        Self {
            message,
            end: End::Reached,
        }
    }
}

/// What a receiver gets: a chunk, `None` at the end of the connection, or an error.
///
/// A chunk is moved several times on its way to the application, and a processor stalls when it
/// loads bytes that were stored in other portions just before. Therefore everything on this way
/// consists of whole words: errors are boxed, because the first field of [`Error`] may be smaller.
pub(crate) type Received<T = Chunk> = Result<Option<T>, Box<Error>>;

/// The end of a message, or not yet; of the size of a word, like all that [`Received`] contains.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(usize)]
pub(crate) enum End {
    Reached,
    Pending,
}

/// What the receiver asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Mode {
    /// Whole messages, while the application does not receive: it is not known yet how it will
    /// receive them, and therefore which limits apply.
    Ahead,
    /// Further chunks of the current message, as they arrive.
    Chunks,
    /// The first chunk of the next message.
    FirstChunk,
    /// Whole messages.
    Messages,
}

impl Mode {
    /// Returns whether messages are collected until they are complete.
    pub(super) fn is_whole(self) -> bool {
        matches!(self, Self::Ahead | Self::Messages)
    }
}

/// What was found in the input.
pub(super) enum Parsed<T = Chunk> {
    Control(Control),
    Item(T),
    /// More input must be read first.
    Nothing,
}

/// A control frame that concerns the connection.
pub(super) enum Control {
    /// A Close frame.
    Close(Box<CloseFrame>),
    /// A Ping, which the engine has an answer to.
    Ping,
    /// A Pong.
    Pong(PongMark),
}

/// What happens to the message that is arriving.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Parsing {
    /// The receiver decides whether it is parsed in chunks.
    AsAsked,
    /// It is parsed in chunks, because its first chunk was returned.
    InChunks,
    /// It is discarded, and so are all messages after it.
    Discarding,
}

/// The queue of input, from the socket to the application.
pub(crate) struct Inbox {
    held: Recycled<Held>,
    pub(super) turn: Turn,
    /// The number of messages completed since the count was last taken.
    messages: u32,
    parsing: Parsing,
    /// True if the application has a chunk of a message, but not yet the last one.
    is_mid_message: bool,
    limits: EngineLimits,
    /// The configuration for the limits that the engine does not use now.
    other_config: Arc<Config>,
}

/// The input that an inbox holds.
struct Held {
    unparsed: Unparsed,
    message: Option<Incoming>,
    ahead: Option<Box<Ahead>>,
    engine_time: EngineTime,
}

thread_local! {
    static SPARE: Spare<Held> = const { Spare::new() };
}

impl Held {
    const EMPTY: Self = Self {
        unparsed: Unparsed::EMPTY,
        message: None,
        ahead: None,
        engine_time: EngineTime::Stale,
    };
}

impl Default for Held {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Recycle for Held {
    const IDLE: &'static Self = &Self::EMPTY;

    fn spare() -> &'static LocalKey<Spare<Self>> {
        &SPARE
    }

    #[inline]
    fn reset(&mut self) -> bool {
        let is_idle = self.unparsed.is_empty() && self.message.is_none() && self.ahead.is_none();
        if is_idle && self.unparsed.capacity() > 0 {
            self.unparsed.clear();
        }
        self.engine_time = EngineTime::Stale;
        is_idle
    }
}

/// Which limits on messages the engine uses.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum EngineLimits {
    /// Those of the options.
    Messages,
    /// None: nothing that is received in chunks accumulates.
    Streaming,
}

impl Inbox {
    /// Creates an inbox that starts with `input`; `streaming` is the configuration for messages
    /// that are received in chunks.
    pub(crate) fn new(input: &[u8], streaming: Arc<Config>) -> Self {
        let mut held = Recycled::<Held>::default();
        if !input.is_empty() {
            held.unparsed = Unparsed::new(input);
        }
        Self {
            held,
            turn: Turn::default(),
            messages: 0,
            parsing: Parsing::AsAsked,
            is_mid_message: false,
            limits: EngineLimits::Messages,
            other_config: streaming,
        }
    }

    /// Returns whether all input that was read has been returned.
    pub(crate) fn is_empty(&self) -> bool {
        self.held.unparsed.is_empty()
            && self
                .held
                .ahead
                .as_ref()
                .is_none_or(|ahead| ahead.is_empty())
    }

    /// Returns whether the queue for the application is so long that reading should stop.
    pub(crate) fn is_full(&self, bytes_max: usize) -> bool {
        let unfinished = self.held.message.as_ref().map_or(0, Incoming::len);
        match &self.held.ahead {
            Some(ahead) => ahead.is_full(unfinished, bytes_max),
            None => unfinished >= bytes_max,
        }
    }

    /// Returns the memory of unparsed input, an incomplete message and the queue, in bytes.
    pub(crate) fn capacity(&self) -> usize {
        let queued = self.held.ahead.as_ref().map_or(0, |ahead| ahead.capacity());
        let message = self.held.message.as_ref().map_or(0, Incoming::capacity);
        self.held.unparsed.capacity() + message + queued
    }

    /// Returns how many messages were completed since the last call.
    pub(crate) fn take_message_count(&mut self) -> u64 {
        std::mem::take(&mut self.messages).into()
    }

    /// Returns the next message or chunk for the application: from the queue or, if that is empty,
    /// from the input.
    ///
    /// # Errors
    /// The peer violated the protocol; the engine has failed the connection.
    pub(super) fn next(
        &mut self,
        engine: &mut Engine<Side>,
        mode: Mode,
    ) -> Result<Parsed, Box<ProtocolError>> {
        loop {
            let parsed = match self.take_queued() {
                Some(chunk) => {
                    self.check_queued(engine, mode, &chunk)?;
                    Ok(Parsed::Item(chunk))
                }
                None => self.parse(engine, mode),
            };
            let Ok(Parsed::Item(Chunk { end, .. })) = parsed else {
                return parsed;
            };
            let is_rest = std::mem::replace(&mut self.is_mid_message, end == End::Pending);
            // The rest of a message whose reader was dropped is skipped.
            if mode == Mode::Chunks || !is_rest {
                return parsed;
            }
        }
    }

    /// Checks a message that was queued before it was known how the application would receive it.
    fn check_queued(
        &mut self,
        engine: &mut Engine<Side>,
        mode: Mode,
        chunk: &Chunk,
    ) -> Result<(), Box<ProtocolError>> {
        let bytes = chunk.message.len() as u64;
        if mode != Mode::Messages || self.is_mid_message {
            return Ok(());
        }
        let config = match self.limits {
            EngineLimits::Messages => engine.config(),
            EngineLimits::Streaming => &self.other_config,
        };
        let bytes_max = config.limits.message_bytes_max;
        if bytes <= bytes_max {
            return Ok(());
        }
        let error = ProtocolError::MessageTooBig { bytes, bytes_max };
        self.fail(engine, &error);
        Err(Box::new(error))
    }

    /// Fails the connection because of a message that the application does not want.
    pub(crate) fn fail(&mut self, engine: &mut Engine<Side>, error: &ProtocolError) {
        engine.fail(error);
        self.discard_queued();
        self.discard_input();
    }

    /// Makes the engine use these limits.
    fn set_limits(
        &mut self,
        engine: &mut Engine<Side>,
        limits: EngineLimits,
    ) -> Result<(), Box<ProtocolError>> {
        if self.limits == limits {
            return Ok(());
        }
        self.limits = limits;
        engine.swap_config(&mut self.other_config).map_err(Box::new)
    }

    /// Parses input up to the end of the next message, or of the next chunk if `mode` asks for
    /// chunks; control frames that concern the caller come in between. Input may be left if the
    /// turn is over.
    ///
    /// # Errors
    /// The peer violated the protocol; the engine has failed the connection.
    pub(super) fn parse(
        &mut self,
        engine: &mut Engine<Side>,
        mode: Mode,
    ) -> Result<Parsed, Box<ProtocolError>> {
        if self.held.ahead.is_some() {
            self.fail_if_due(engine)?;
        }
        let mode = match self.parsing {
            Parsing::AsAsked => mode,
            Parsing::Discarding | Parsing::InChunks => Mode::Chunks,
        };
        loop {
            let parsed = self.parse_once(engine, mode);
            let Ok(Parsed::Item(Chunk { end, .. })) = parsed else {
                return parsed;
            };
            if self.parsing == Parsing::Discarding {
                self.turn.count_fragment(0);
                if self.turn.is_over() {
                    return Ok(Parsed::Nothing);
                }
            } else {
                self.parsing = if end == End::Reached {
                    Parsing::AsAsked
                } else {
                    Parsing::InChunks
                };
                return parsed;
            }
        }
    }

    /// Queues a message or chunk that was parsed while the application did not receive.
    pub(crate) fn queue(&mut self, chunk: Chunk) {
        self.ahead_mut().push(chunk);
    }

    fn ahead_mut(&mut self) -> &mut Ahead {
        self.held.ahead.get_or_insert_with(Ahead::take)
    }

    /// Queues the message that was arriving and is now complete.
    fn queue_incoming(&mut self) {
        if let Some(message) = self.held.message.take() {
            self.messages += 1;
            self.queue(Chunk::whole(message.finish()));
        }
    }

    /// Queues an error, which fails the connection once the messages before it were received.
    fn queue_error(&mut self, error: Box<ProtocolError>) {
        self.ahead_mut().push_error(error);
    }

    /// Discards the queue, because the application no longer receives.
    pub(crate) fn discard_queued(&mut self) {
        if self.held.ahead.is_some()
            && let Some(ahead) = &mut self.held.ahead
        {
            ahead.clear();
        }
    }

    /// Discards the incomplete message and, from now on, all messages that arrive; control frames
    /// are still processed.
    pub(crate) fn stop_listening(&mut self) {
        self.parsing = Parsing::Discarding;
        // Take it as a chunk, so that a partial code point is kept and can be completed.
        if self.held.message.is_some() {
            drop(self.held.message.as_mut().and_then(Incoming::take_chunk));
        }
    }

    /// Records that time may have passed since input was last parsed.
    pub(crate) fn let_time_pass(&mut self) {
        if self.held.is_held() {
            self.held.engine_time = EngineTime::Stale;
        }
    }

    /// Takes everything that the application has not received, as frames from the peer; `None` if
    /// messages may be compressed.
    pub(crate) fn take_unread(&mut self, engine: &Engine<Side>) -> Option<Vec<u8>> {
        let begun = engine.unread()?;
        let role = engine.endpoint().0;
        let mut unread = Vec::new();
        let mut continues = self.is_mid_message;
        while let Some(Chunk { message, end }) = self.take_queued() {
            let ends = end == End::Reached;
            let kind = (!continues).then(|| message.kind());
            append_frame(&mut unread, role, kind, message.as_bytes(), ends);
            continues = !ends;
        }
        if let Some(incoming) = self.held.message.take() {
            let (kind, bytes) = incoming.into_bytes();
            if !continues || !bytes.is_empty() {
                let kind = (!continues).then_some(kind);
                append_frame(&mut unread, role, kind, &bytes, false);
            }
        }
        unread.extend_from_slice(&begun);
        unread.extend_from_slice(self.held.unparsed.as_mut_slice());
        self.held.unparsed.clear();
        Some(unread)
    }

    /// Discards input that no longer matters.
    pub(crate) fn discard_input(&mut self) {
        if self.held.is_held() {
            self.held.unparsed.clear();
        }
    }

    /// Reads up to `size` once from `io` and keeps the bytes that were read: the payload of a long
    /// frame in its message, anything else as unparsed input.
    pub(crate) fn poll_read(
        &mut self,
        engine: &mut Engine<Side>,
        io: Pin<&mut Transport>,
        cx: &mut Context<'_>,
        size: ReadSize,
    ) -> Poll<io::Result<usize>> {
        debug_assert!(
            self.held.unparsed.is_empty(),
            "input must be parsed before more is read"
        );
        if self.reads_in_place(engine)
            && let Some(message) = &mut self.held.message
        {
            let (bytes, end) = ready!(message.poll_read(engine, io, cx, size))?;
            match end {
                Ok(End::Pending) => {}
                Ok(End::Reached) => self.queue_incoming(),
                Err(error) => self.queue_error(Box::new(error)),
            }
            return Poll::Ready(Ok(bytes));
        }
        let read = ready!(Unparsed::poll_read(io, cx, size))?;
        self.let_time_pass();
        let bytes = read.len();
        if bytes > 0 {
            self.held.unparsed = read;
        }
        Poll::Ready(Ok(bytes))
    }

    /// Returns whether the next read goes straight into the message that is arriving.
    #[inline]
    pub(super) fn reads_in_place(&self, engine: &Engine<Side>) -> bool {
        self.held.message.is_some()
            && self.parsing == Parsing::AsAsked
            && engine.payload_bytes_left() >= in_place::BYTES_MIN
    }

    /// Returns whether the inbox may take any memory.
    #[inline]
    pub(crate) const fn is_held(&self) -> bool {
        self.held.is_held()
    }

    /// Recycles the memory of the input if none is left.
    #[inline]
    pub(crate) fn release(&mut self) {
        self.held.release();
    }

    /// Takes the oldest message or chunk from the queue, and recycles the queue once it is empty.
    #[inline]
    fn take_queued(&mut self) -> Option<Chunk> {
        self.held.ahead.as_ref()?;
        self.take_queued_slow()
    }

    #[cold]
    fn take_queued_slow(&mut self) -> Option<Chunk> {
        let chunk = self.held.ahead.as_mut()?.pop();
        if chunk.is_none()
            && let Some(ahead) = self.held.ahead.take_if(|ahead| ahead.is_empty())
        {
            Ahead::give(ahead);
        }
        chunk
    }

    /// Fails the connection if an error is queued.
    #[cold]
    fn fail_if_due(&mut self, engine: &mut Engine<Side>) -> Result<(), Box<ProtocolError>> {
        match self
            .held
            .ahead
            .as_mut()
            .and_then(|ahead| ahead.take_error())
        {
            Some(error) => {
                engine.fail(&error);
                Err(error)
            }
            None => Ok(()),
        }
    }

    fn parse_once(
        &mut self,
        engine: &mut Engine<Side>,
        mode: Mode,
    ) -> Result<Parsed, Box<ProtocolError>> {
        match (self.parsing, mode) {
            // What is discarded keeps its limits.
            (Parsing::Discarding, _) => {}
            (Parsing::AsAsked, Mode::Messages) => {
                self.set_limits(engine, EngineLimits::Messages)?
            }
            _ => self.set_limits(engine, EngineLimits::Streaming)?,
        }
        if let Some(begun) = self.take_begun(mode) {
            return Ok(Parsed::Item(begun));
        }
        if self.held.unparsed.is_empty() {
            return Ok(Parsed::Nothing);
        }
        let now = self.held.engine_time.tell();
        let Held {
            unparsed, message, ..
        } = &mut *self.held;
        let mut events = engine.handle_input(unparsed.as_mut_slice(), now);
        let mut parsed = Ok(Parsed::Nothing);
        while let Some(event) = events.next_raw() {
            parsed = match event {
                Ok(RawEvent::Data(data)) => {
                    if data.inflated {
                        self.turn.count_fragment(data.len());
                    }
                    match Incoming::add(message, data, mode) {
                        Ok(Some(chunk)) => {
                            self.messages += u32::from(chunk.end == End::Reached);
                            Ok(Parsed::Item(chunk))
                        }
                        Ok(None) => {
                            self.turn.count_fragment(0);
                            if self.turn.is_over() {
                                break;
                            }
                            continue;
                        }
                        Err(error) => Err(Box::new(error)),
                    }
                }
                Ok(RawEvent::Close(frame)) => {
                    Ok(Parsed::Control(Control::Close(Box::new(frame.into()))))
                }
                Ok(RawEvent::Ping(_)) => {
                    self.turn.count_control();
                    Ok(Parsed::Control(Control::Ping))
                }
                Ok(RawEvent::Pong(payload)) => {
                    self.turn.count_control();
                    Ok(Parsed::Control(Control::Pong(PongMark::of(payload))))
                }
                Err(error) => Err(Box::new(error)),
            };
            break;
        }
        if let Ok(Parsed::Control(_) | Parsed::Nothing) = parsed {
            // This may be the end of the input or of the turn, inside a compressed message.
            events.release_memory();
        }
        let consumed = events.consumed();
        unparsed.advance(consumed);
        if let Err(error) = &parsed {
            engine.fail(error);
        }
        if unparsed.is_empty() || engine.is_input_over() {
            unparsed.clear();
        }
        parsed
    }

    /// Returns the part of a message that was collected so far, if `mode` now asks for chunks.
    fn take_begun(&mut self, mode: Mode) -> Option<Chunk> {
        if mode.is_whole() || self.held.message.is_none() {
            return None;
        }
        self.held.message.as_mut()?.take_chunk()
    }
}

/// Appends a frame as the peer of `role` could have sent it; without a `kind`, it is a continuation
/// frame.
fn append_frame(
    wire: &mut Vec<u8>,
    role: Role,
    kind: Option<MessageKind>,
    payload: &[u8],
    fin: bool,
) {
    let opcode = kind.map_or(Opcode::Continuation, MessageKind::opcode);
    // A masking key of zeros leaves the payload unchanged.
    let mask = role.expects_masked().then(MaskKey::default);
    let header = Header {
        fin,
        ..Header::new(opcode, payload.len() as u64, mask)
    };
    let mut bytes = [0; Header::BYTES_MAX];
    let len = header.encode(&mut bytes);
    wire.extend_from_slice(&bytes[..len]);
    wire.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use linerate_testkit::Frame;

    use super::{incoming::ANNOUNCED_BYTES, *};

    #[test]
    fn nothing_is_kept_of_a_message_that_nobody_listens_to_any_more() {
        let begun = Frame::new(0x1, "Grüße".as_bytes()).with_claimed_bytes(60_000);
        let mut begun = begun.to_role(Role::Server).to_bytes();
        begun.truncate(begun.len() - 3); // In the middle of the ß.
        let mut inbox = Inbox::new(&begun, Arc::default());
        let mut engine = Engine::new(Side(Role::Server), Arc::default(), Duration::ZERO);
        let parsed = inbox.next(&mut engine, Mode::Messages);
        assert!(matches!(parsed, Ok(Parsed::Nothing)));
        let before = inbox.capacity();
        inbox.stop_listening();
        let after = inbox.capacity();
        assert!(before >= 1024 && after < 512, "{before} to {after} bytes");
    }

    #[test]
    fn f09_a_frame_that_has_begun_takes_no_memory_by_what_it_announces() {
        for opcode in [0x1, 0x2] {
            let begun = Frame::new(opcode, b"x").with_claimed_bytes(60_000);
            let mut inbox = Inbox::new(&begun.to_role(Role::Server).to_bytes(), Arc::default());
            let mut engine = Engine::new(Side(Role::Server), Arc::default(), Duration::ZERO);
            let parsed = inbox.next(&mut engine, Mode::Messages);
            assert!(matches!(parsed, Ok(Parsed::Nothing)));
            let capacity = inbox.held.message.as_ref().map_or(0, Incoming::capacity);
            assert!((1..=2 * ANNOUNCED_BYTES).contains(&capacity), "{capacity}");
        }
    }
}
