//! The queue of input: unparsed bytes, an incomplete message, and messages that the application has
//! not taken yet.

use std::{
    cell::RefCell,
    collections::VecDeque,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use linerate_proto::{
    Engine, Header, MaskKey, Opcode, ProtocolError, Role,
    engine::{Data, MessageKind, RawEvent, State},
};
use linerate_simd::utf8::TextBuf;
use tokio::io::{AsyncRead, ReadBuf};

use super::{Side, outbox::Outbox};
use crate::{
    clock,
    message::Message,
    pool::{self, READ_BYTES},
    transport::Transport,
};

/// A message, or a chunk of one.
pub(crate) struct Chunk {
    pub(crate) message: Message,
    /// True if this is the last chunk.
    pub(crate) ends: bool,
}

/// What the receiver asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Mode {
    /// Further chunks of the current message, as they arrive.
    Chunks,
    /// The first chunk of the next message.
    FirstChunk,
    /// Whole messages.
    Messages,
}

/// The maximum number of messages in the queue, whatever their size.
const QUEUED_MAX: usize = 1_024;

/// How many bytes of the length that a frame announces are allocated as soon as its first byte
/// arrives. This is no more than the base cost of a connection, so an attacker gains nothing by
/// only starting frames.
const ANNOUNCED_BYTES: usize = 2 << 10;

/// The queue of input, from the socket to the application.
pub(crate) struct Inbox {
    /// Input that was read; `rest[at..end]` has not been parsed.
    rest: Vec<u8>,
    at: u32,
    end: u32,
    message: Option<Incoming>,
    ahead: Option<Box<Ahead>>,
    /// The number of messages completed since the count was last taken.
    messages: u32,
    /// True if a chunk of a message was returned, but not yet the last one.
    streaming: bool,
    /// True if the message that is arriving is parsed in chunks, because its first chunk was
    /// returned.
    in_chunks: bool,
    /// True if messages that still arrive are discarded.
    deaf: bool,
    /// True if the engine has an accurate enough time.
    time_told: bool,
}

/// What was parsed while the application did not receive.
#[derive(Default)]
struct Ahead {
    queued: VecDeque<Chunk>,
    queued_bytes: usize,
    /// The memory of the queued messages in bytes.
    queued_capacity: usize,
    close_reason: Option<Box<str>>,
}

#[allow(
    clippy::vec_box,
    reason = "queues are recycled together with their boxes"
)]
type Spare = Vec<Box<Ahead>>;

thread_local! {
    /// Recycled queues. An idle connection does not have a queue.
    static SPARE: RefCell<Spare> = const { RefCell::new(Vec::new()) };
}

/// How many queues a thread keeps; queues with room for more than [`SPARE_MESSAGES_MAX`] messages
/// are not kept.
const SPARE_MAX: usize = 64;

const SPARE_MESSAGES_MAX: usize = 64;

impl Ahead {
    fn take() -> Box<Self> {
        let spare = SPARE.try_with(|spare| spare.borrow_mut().pop());
        spare.ok().flatten().unwrap_or_default()
    }

    /// Takes back a queue, which must be empty.
    fn give(ahead: Box<Self>) {
        _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < SPARE_MAX && ahead.queued.capacity() <= SPARE_MESSAGES_MAX {
                spare.push(ahead);
            }
        });
    }
}

/// A message that has not arrived completely.
enum Incoming {
    Binary(Vec<u8>),
    Text(TextBuf),
}

impl Inbox {
    /// Creates an inbox that starts with `input`.
    pub(crate) fn new(input: &[u8]) -> Self {
        let mut rest = Vec::new();
        if !input.is_empty() {
            rest = pool::take(input.len());
            rest.extend_from_slice(input);
        }
        Self {
            rest,
            at: 0,
            end: input.len() as u32,
            message: None,
            ahead: None,
            messages: 0,
            streaming: false,
            in_chunks: false,
            deaf: false,
            time_told: false,
        }
    }

    /// Returns whether all input that was read has been returned.
    pub(crate) fn is_empty(&self) -> bool {
        self.at == self.end
            && self
                .ahead
                .as_ref()
                .is_none_or(|ahead| ahead.queued.is_empty())
    }

    /// Returns whether the queue for the application is so long that reading should stop.
    pub(crate) fn is_full(&self, bytes_max: usize) -> bool {
        let (queued, queued_bytes) = self
            .ahead
            .as_ref()
            .map_or((0, 0), |ahead| (ahead.queued.len(), ahead.queued_bytes));
        let unfinished_bytes = self.message.as_ref().map_or(0, Incoming::len);
        queued_bytes + unfinished_bytes >= bytes_max || queued >= QUEUED_MAX
    }

    /// Returns the memory of unparsed input, an incomplete message and the queue, in bytes.
    pub(crate) fn capacity(&self) -> usize {
        let queued = self.ahead.as_ref().map_or(0, |ahead| {
            ahead.queued_capacity + ahead.queued.capacity() * size_of::<Chunk>()
        });
        let message = self.message.as_ref().map_or(0, Incoming::capacity);
        self.rest.capacity() + message + queued
    }

    pub(crate) fn take_close_reason(&mut self) -> Option<Box<str>> {
        self.ahead.as_mut()?.close_reason.take()
    }

    /// Returns how many messages were completed since the last call.
    pub(crate) fn take_message_count(&mut self) -> u64 {
        std::mem::take(&mut self.messages).into()
    }

    /// Returns the next message or chunk, or `None` if more input must be read first.
    ///
    /// # Errors
    /// The peer violated the protocol; the engine has failed the connection.
    pub(crate) fn next(
        &mut self,
        engine: &mut Engine<Side>,
        outbox: &mut Outbox,
        mode: Mode,
    ) -> Result<Option<Chunk>, ProtocolError> {
        while let Some(chunk) = self.next_chunk(engine, outbox, mode)? {
            let rest_of_stream = self.streaming;
            self.streaming = !chunk.ends;
            // The rest of a message whose reader was dropped is skipped.
            if mode == Mode::Chunks || !rest_of_stream {
                return Ok(Some(chunk));
            }
        }
        Ok(None)
    }

    /// Parses ahead of the application; returns whether there is a new message or chunk for it.
    ///
    /// # Errors
    /// The peer violated the protocol; the engine has failed the connection.
    pub(crate) fn queue_next(
        &mut self,
        engine: &mut Engine<Side>,
        outbox: &mut Outbox,
    ) -> Result<bool, ProtocolError> {
        let Some(chunk) = self.parse(engine, outbox, Mode::Messages)? else {
            return Ok(false);
        };
        let ahead = self.ahead.get_or_insert_with(Ahead::take);
        ahead.queued_bytes += chunk.message.len();
        ahead.queued_capacity += chunk.message.capacity();
        ahead.queued.push_back(chunk);
        Ok(true)
    }

    /// Discards the queue, because the application no longer receives.
    pub(crate) fn discard_queued(&mut self) {
        if let Some(ahead) = &mut self.ahead {
            ahead.queued.clear();
            (ahead.queued_bytes, ahead.queued_capacity) = (0, 0);
        }
    }

    /// Discards the incomplete message and, from now on, all messages that arrive; control frames
    /// are still processed.
    pub(crate) fn stop_listening(&mut self) {
        self.deaf = true;
        // Take it as a chunk, so that a partial code point is kept and can be completed.
        drop(self.message.as_mut().and_then(Incoming::take_chunk));
    }

    /// Records that time may have passed since input was last parsed.
    pub(crate) fn let_time_pass(&mut self) {
        self.time_told = false;
    }

    /// Takes everything that the application has not received, as frames from the peer; `None` if
    /// messages may be compressed.
    pub(crate) fn take_unread(&mut self, engine: &Engine<Side>) -> Option<Vec<u8>> {
        let begun = engine.unread()?;
        let role = engine.endpoint().0;
        let mut unread = Vec::new();
        let mut continues = self.streaming;
        if let Some(ahead) = &mut self.ahead {
            (ahead.queued_bytes, ahead.queued_capacity) = (0, 0);
            for chunk in ahead.queued.drain(..) {
                let kind = (!continues).then(|| chunk.message.kind());
                append_frame(
                    &mut unread,
                    role,
                    kind,
                    chunk.message.as_bytes(),
                    chunk.ends,
                );
                continues = !chunk.ends;
            }
        }
        if let Some(incoming) = self.message.take() {
            let (kind, bytes) = incoming.into_bytes();
            if !continues || !bytes.is_empty() {
                let kind = (!continues).then_some(kind);
                append_frame(&mut unread, role, kind, &bytes, false);
            }
        }
        unread.extend_from_slice(&begun);
        unread.extend_from_slice(&self.rest[self.at as usize..self.end as usize]);
        self.give_rest();
        Some(unread)
    }

    /// Discards input that no longer matters.
    pub(crate) fn discard_input(&mut self) {
        self.give_rest();
    }

    /// Reads once from `io` into the thread's buffer, and keeps the bytes that were read.
    pub(crate) fn poll_read(
        &mut self,
        io: Pin<&mut Transport>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        debug_assert!(
            self.at == self.end,
            "input must be parsed before more is read"
        );
        pool::with_read_buffer(|buffer| {
            let mut read = ReadBuf::new(buffer);
            ready!(io.poll_read(cx, &mut read))?;
            let bytes = read.filled().len();
            if bytes * 8 >= READ_BYTES {
                self.rest = std::mem::take(buffer);
            } else if bytes > 0 {
                self.rest = pool::take(bytes);
                self.rest.extend_from_slice(&buffer[..bytes]);
            }
            (self.at, self.end) = (0, bytes as u32);
            self.let_time_pass();
            Poll::Ready(Ok(bytes))
        })
    }

    fn next_chunk(
        &mut self,
        engine: &mut Engine<Side>,
        outbox: &mut Outbox,
        mode: Mode,
    ) -> Result<Option<Chunk>, ProtocolError> {
        if let Some(ahead) = &mut self.ahead {
            if let Some(chunk) = ahead.queued.pop_front() {
                ahead.queued_bytes -= chunk.message.len();
                ahead.queued_capacity -= chunk.message.capacity();
                return Ok(Some(chunk));
            }
            if ahead.close_reason.is_none()
                && let Some(ahead) = self.ahead.take()
            {
                Ahead::give(ahead);
            }
        }
        self.parse(engine, outbox, mode)
    }

    /// Parses input up to the end of the next message, or of the next chunk if `mode` asks for
    /// chunks.
    fn parse(
        &mut self,
        engine: &mut Engine<Side>,
        outbox: &mut Outbox,
        mode: Mode,
    ) -> Result<Option<Chunk>, ProtocolError> {
        let mode = if self.in_chunks || self.deaf {
            Mode::Chunks
        } else {
            mode
        };
        while let Some(chunk) = self.parse_chunk(engine, outbox, mode)? {
            self.in_chunks = !chunk.ends;
            if !self.deaf {
                return Ok(Some(chunk));
            }
        }
        Ok(None)
    }

    fn parse_chunk(
        &mut self,
        engine: &mut Engine<Side>,
        outbox: &mut Outbox,
        mode: Mode,
    ) -> Result<Option<Chunk>, ProtocolError> {
        let begun = self.take_begun(mode);
        if begun.is_some() || self.at == self.end {
            return Ok(begun);
        }
        // No frame may follow a Close frame, not even a Pong that would overtake queued data.
        let may_answer = engine.state() == State::Open;
        // Reading the clock costs as much as a short message, so do it once per read; the engine
        // keeps the latest time.
        let now = if std::mem::replace(&mut self.time_told, true) {
            Duration::ZERO
        } else {
            clock::now()
        };
        let input = &mut self.rest[self.at as usize..self.end as usize];
        let mut events = engine.handle_input(input, now);
        let mut chunk = Ok(None);
        while let Some(event) = events.next_raw() {
            match event {
                Ok(RawEvent::Data(data)) => {
                    chunk = take_data(&mut self.message, data, mode);
                    if !matches!(chunk, Ok(None)) {
                        break;
                    }
                }
                Ok(RawEvent::Close(frame)) => {
                    self.ahead.get_or_insert_default().close_reason = Some(frame.reason.into());
                }
                Ok(RawEvent::Ping(_)) if may_answer => outbox.answer_ping(&mut events),
                Ok(RawEvent::Ping(_)) => {}
                Ok(RawEvent::Pong(_)) => {}
                Err(error) => chunk = Err(error),
            }
        }
        self.at += events.consumed() as u32;
        if let Err(error) = &chunk {
            engine.fail(error);
        }
        if self.at == self.end || engine.is_input_over() {
            self.give_rest();
        }
        if matches!(&chunk, Ok(Some(chunk)) if chunk.ends) {
            self.messages += 1;
        }
        chunk
    }

    /// Returns the part of a message that was collected so far, if `mode` now asks for chunks.
    fn take_begun(&mut self, mode: Mode) -> Option<Chunk> {
        let begun = self.message.as_mut().filter(|_| mode != Mode::Messages)?;
        begun.take_chunk()
    }

    /// Returns the memory of used input to the pool.
    fn give_rest(&mut self) {
        pool::give_input(std::mem::take(&mut self.rest));
        (self.at, self.end) = (0, 0);
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

/// Adds `data` to the message; returns the message once it is complete, or a chunk if `mode` asks
/// for chunks.
fn take_data(
    message: &mut Option<Incoming>,
    data: Data<'_>,
    mode: Mode,
) -> Result<Option<Chunk>, ProtocolError> {
    let ends = data.ends;
    let incoming = message.get_or_insert_with(|| Incoming::new(&data, mode));
    match incoming {
        Incoming::Binary(bytes) => {
            pool::reserve(bytes, data.len());
            data.append_to(bytes);
        }
        Incoming::Text(text) => {
            if text.capacity() - text.len() < data.len() {
                let bytes = (text.len() + data.len()).max(2 * text.len());
                pool::give(text.move_to(pool::take(bytes)));
            }
            data.append_text_to(text)?;
        }
    }
    if ends {
        return Ok(message.take().map(|incoming| Chunk {
            message: incoming.finish(),
            ends,
        }));
    }
    Ok(if mode != Mode::Messages {
        incoming.take_chunk()
    } else {
        None
    })
}

impl Incoming {
    /// Starts a message with memory for the data that is about to be added. Memory for the rest of
    /// the frame, as announced in its header, comes from recycled buffers if possible; otherwise it
    /// is allocated only in proportion to what has arrived.
    fn new(data: &Data<'_>, mode: Mode) -> Self {
        let announced = match mode {
            Mode::Chunks | Mode::FirstChunk => 0,
            Mode::Messages => usize::try_from(data.frame_bytes_left).unwrap_or(usize::MAX),
        };
        let proportionate = data.len() + announced.min(data.len().max(ANNOUNCED_BYTES));
        let whole = data.len().saturating_add(announced);
        let memory = if whole > proportionate {
            pool::take_recycled(whole).unwrap_or_else(|| pool::take(proportionate))
        } else {
            pool::take(whole)
        };
        match data.kind {
            MessageKind::Binary => Self::Binary(memory),
            MessageKind::Text => Self::Text(TextBuf::from_recycled(memory)),
        }
    }

    fn into_bytes(self) -> (MessageKind, Vec<u8>) {
        match self {
            Self::Binary(bytes) => (MessageKind::Binary, bytes),
            Self::Text(text) => (MessageKind::Text, text.into_bytes()),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Binary(bytes) => bytes.len(),
            Self::Text(text) => text.len(),
        }
    }

    fn capacity(&self) -> usize {
        match self {
            Self::Binary(bytes) => bytes.capacity(),
            Self::Text(text) => text.capacity(),
        }
    }

    /// Takes what has been collected; text only up to the last complete code point.
    fn take_chunk(&mut self) -> Option<Chunk> {
        let message = match self {
            Self::Binary(bytes) => Message::from(std::mem::take(bytes)),
            Self::Text(text) => Message::from(text.take_finished(pool::take(0)).into_string()),
        };
        (!message.is_empty()).then_some(Chunk {
            message,
            ends: false,
        })
    }

    fn finish(self) -> Message {
        match self {
            Self::Binary(bytes) => bytes.into(),
            // The engine has validated the data to its end, so the text is complete.
            Self::Text(text) => text.finish().unwrap_or_default().into_string().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use linerate_testkit::Frame;

    use super::*;

    #[test]
    fn nothing_is_kept_of_a_message_that_nobody_listens_to_any_more() {
        let begun = Frame::new(0x1, "Grüße".as_bytes()).with_claimed_bytes(60_000);
        let mut begun = begun.to_role(Role::Server).to_bytes();
        begun.truncate(begun.len() - 3); // In the middle of the ß.
        let mut inbox = Inbox::new(&begun);
        let mut engine = Engine::new(Side(Role::Server), Arc::default(), Duration::ZERO);
        let mut outbox = Outbox::default();
        let chunk = inbox.next(&mut engine, &mut outbox, Mode::Messages);
        assert!(chunk.is_ok_and(|chunk| chunk.is_none()));
        let before = inbox.capacity();
        inbox.stop_listening();
        let after = inbox.capacity();
        assert!(before >= 1024 && after < 512, "{before} to {after} bytes");
    }

    #[test]
    fn f09_a_frame_that_has_begun_takes_no_memory_by_what_it_announces() {
        for opcode in [0x1, 0x2] {
            let begun = Frame::new(opcode, b"x").with_claimed_bytes(60_000);
            let mut inbox = Inbox::new(&begun.to_role(Role::Server).to_bytes());
            let mut engine = Engine::new(Side(Role::Server), Arc::default(), Duration::ZERO);
            let mut outbox = Outbox::default();
            let chunk = inbox.next(&mut engine, &mut outbox, Mode::Messages);
            assert!(chunk.is_ok_and(|chunk| chunk.is_none()));
            let capacity = match &inbox.message {
                Some(Incoming::Binary(bytes)) => bytes.capacity(),
                Some(Incoming::Text(text)) => text.capacity(),
                None => 0,
            };
            assert!((1..=2 * ANNOUNCED_BYTES).contains(&capacity), "{capacity}");
        }
    }
}
