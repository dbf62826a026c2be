//! What has arrived: input that is not parsed yet, a message that is not whole yet, and messages
//! that the application has not taken yet.

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

use super::{Side, Transport, outbox::Outbox};
use crate::{
    clock,
    message::Message,
    pool::{self, READ_BYTES},
};

/// A message, or a piece of one.
pub(crate) struct Piece {
    pub(crate) message: Message,
    /// Whether this is the last piece.
    pub(crate) ends: bool,
}

/// What the receiver asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Mode {
    /// Further pieces of the current message, as they arrive.
    Chunks,
    /// The first piece of the next message.
    FirstChunk,
    /// Whole messages.
    Messages,
}

/// Messages that may wait for the application, whatever their size.
const QUEUED_MAX: usize = 1_024;

/// For so much of what a frame announces there is memory as soon as a byte of it has arrived. It is no
/// more than what a connection costs anyway: whoever only begins frames gains nothing by it.
const ANNOUNCED_BYTES: usize = 2 << 10;

/// The queue of input, from the socket to the application.
pub(crate) struct Inbox {
    /// Holds input that was read; `rest[at..end]` is still to be parsed.
    rest: Vec<u8>,
    at: u32,
    end: u32,
    message: Option<Incoming>,
    ahead: Option<Box<Ahead>>,
    /// Messages that have become whole since they were last asked for.
    messages: u32,
    /// Whether a piece that is not the last of its message was handed out, and the last was not.
    streaming: bool,
    /// Whether the message that is arriving is parsed in pieces, because its first was handed out.
    in_pieces: bool,
    /// Whether nobody is to get what still arrives.
    deaf: bool,
    /// Whether the engine knows what time it is, near enough.
    time_told: bool,
}

/// What was parsed while nobody received.
#[derive(Default)]
struct Ahead {
    queued: VecDeque<Piece>,
    queued_bytes: usize,
    /// The memory of what is queued.
    queued_capacity: usize,
    close_reason: Option<Box<str>>,
}

#[allow(
    clippy::vec_box,
    reason = "they are recycled with the boxes that inboxes hold"
)]
type Spare = Vec<Box<Ahead>>;

thread_local! {
    /// Recycled queues; an idle connection has none.
    static SPARE: RefCell<Spare> = const { RefCell::new(Vec::new()) };
}

/// How many queues a thread keeps, of which none has room for more messages than
/// [`SPARE_MESSAGES_MAX`].
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

/// A message of which not all has arrived.
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
            in_pieces: false,
            deaf: false,
            time_told: false,
        }
    }

    /// Returns whether all input that was read has been handed out.
    pub(crate) fn is_empty(&self) -> bool {
        self.at == self.end
            && self
                .ahead
                .as_ref()
                .is_none_or(|ahead| ahead.queued.is_empty())
    }

    /// Returns whether so much waits for the application that reading should stop.
    pub(crate) fn is_full(&self, bytes_max: usize) -> bool {
        let (queued, queued_bytes) = self
            .ahead
            .as_ref()
            .map_or((0, 0), |ahead| (ahead.queued.len(), ahead.queued_bytes));
        let unfinished_bytes = self.message.as_ref().map_or(0, Incoming::len);
        queued_bytes + unfinished_bytes >= bytes_max || queued >= QUEUED_MAX
    }

    /// Returns the memory of input, of a message that is not whole, and of those that wait.
    pub(crate) fn capacity(&self) -> usize {
        let queued = self.ahead.as_ref().map_or(0, |ahead| {
            ahead.queued_capacity + ahead.queued.capacity() * size_of::<Piece>()
        });
        let message = self.message.as_ref().map_or(0, Incoming::capacity);
        self.rest.capacity() + message + queued
    }

    pub(crate) fn take_close_reason(&mut self) -> Option<Box<str>> {
        self.ahead.as_mut()?.close_reason.take()
    }

    /// Returns how many messages have become whole since the last call.
    pub(crate) fn take_message_count(&mut self) -> u64 {
        std::mem::take(&mut self.messages).into()
    }

    /// Returns the next message or piece; `None` means: read more.
    ///
    /// # Errors
    /// The peer broke the rules; the engine has failed the connection.
    pub(crate) fn next(
        &mut self,
        engine: &mut Engine<Side>,
        outbox: &mut Outbox,
        mode: Mode,
    ) -> Result<Option<Piece>, ProtocolError> {
        while let Some(piece) = self.next_piece(engine, outbox, mode)? {
            let rest_of_stream = self.streaming;
            self.streaming = !piece.ends;
            // The rest of a message whose reader was dropped is passed over.
            if mode == Mode::Chunks || !rest_of_stream {
                return Ok(Some(piece));
            }
        }
        Ok(None)
    }

    /// Parses ahead of the application; returns whether there is a new message or piece for it.
    ///
    /// # Errors
    /// The peer broke the rules; the engine has failed the connection.
    pub(crate) fn queue_next(
        &mut self,
        engine: &mut Engine<Side>,
        outbox: &mut Outbox,
    ) -> Result<bool, ProtocolError> {
        let Some(piece) = self.parse(engine, outbox, Mode::Messages)? else {
            return Ok(false);
        };
        let ahead = self.ahead.get_or_insert_with(Ahead::take);
        ahead.queued_bytes += piece.message.len();
        ahead.queued_capacity += piece.message.capacity();
        ahead.queued.push_back(piece);
        Ok(true)
    }

    /// Forgets what waits for the application, because there is nobody to take it.
    pub(crate) fn discard_queued(&mut self) {
        if let Some(ahead) = &mut self.ahead {
            ahead.queued.clear();
            (ahead.queued_bytes, ahead.queued_capacity) = (0, 0);
        }
    }

    /// Forgets from now on all messages that arrive, and what has arrived of one that has not ended; control
    /// frames still count.
    pub(crate) fn stop_listening(&mut self) {
        self.deaf = true;
        // Taken as a piece, so that a code point that has begun can still end.
        drop(self.message.as_mut().and_then(Incoming::take_chunk));
    }

    /// Takes note that time may have passed since input was last parsed.
    pub(crate) fn let_time_pass(&mut self) {
        self.time_told = false;
    }

    /// Takes out all that the application has not received, as frames from the peer; `None` if the engine
    /// can't tell.
    pub(crate) fn take_unread(&mut self, engine: &Engine<Side>) -> Option<Vec<u8>> {
        let begun = engine.unread()?;
        let role = engine.endpoint().0;
        let mut unread = Vec::new();
        let mut continues = self.streaming;
        if let Some(ahead) = &mut self.ahead {
            (ahead.queued_bytes, ahead.queued_capacity) = (0, 0);
            for piece in ahead.queued.drain(..) {
                let kind = (!continues).then(|| piece.message.kind());
                append_frame(
                    &mut unread,
                    role,
                    kind,
                    piece.message.as_bytes(),
                    piece.ends,
                );
                continues = !piece.ends;
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

    /// Forgets input that means nothing any more.
    pub(crate) fn discard_input(&mut self) {
        self.give_rest();
    }

    /// Reads once from `io` into the thread's buffer and keeps what was read.
    pub(crate) fn poll_read(
        &mut self,
        io: Pin<&mut Transport>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        debug_assert!(self.at == self.end, "input is parsed before more is read");
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

    fn next_piece(
        &mut self,
        engine: &mut Engine<Side>,
        outbox: &mut Outbox,
        mode: Mode,
    ) -> Result<Option<Piece>, ProtocolError> {
        if let Some(ahead) = &mut self.ahead {
            if let Some(piece) = ahead.queued.pop_front() {
                ahead.queued_bytes -= piece.message.len();
                ahead.queued_capacity -= piece.message.capacity();
                return Ok(Some(piece));
            }
            if ahead.close_reason.is_none()
                && let Some(ahead) = self.ahead.take()
            {
                Ahead::give(ahead);
            }
        }
        self.parse(engine, outbox, mode)
    }

    /// Parses input up to the end of the next message or, if asked for, piece.
    fn parse(
        &mut self,
        engine: &mut Engine<Side>,
        outbox: &mut Outbox,
        mode: Mode,
    ) -> Result<Option<Piece>, ProtocolError> {
        let mode = if self.in_pieces || self.deaf {
            Mode::Chunks
        } else {
            mode
        };
        while let Some(piece) = self.parse_piece(engine, outbox, mode)? {
            self.in_pieces = !piece.ends;
            if !self.deaf {
                return Ok(Some(piece));
            }
        }
        Ok(None)
    }

    fn parse_piece(
        &mut self,
        engine: &mut Engine<Side>,
        outbox: &mut Outbox,
        mode: Mode,
    ) -> Result<Option<Piece>, ProtocolError> {
        let begun = self.take_begun(mode);
        if begun.is_some() || self.at == self.end {
            return Ok(begun);
        }
        // Nothing may follow a Close frame, not even a Pong that would overtake queued data.
        let may_answer = engine.state() == State::Open;
        // To ask the clock costs as much as a short message; the engine keeps the latest time.
        let now = if std::mem::replace(&mut self.time_told, true) {
            Duration::ZERO
        } else {
            clock::now()
        };
        let input = &mut self.rest[self.at as usize..self.end as usize];
        let mut events = engine.handle_input(input, now);
        let mut piece = Ok(None);
        while let Some(event) = events.next_raw() {
            match event {
                Ok(RawEvent::Data(data)) => {
                    piece = take_data(&mut self.message, data, mode);
                    if !matches!(piece, Ok(None)) {
                        break;
                    }
                }
                Ok(RawEvent::Close(frame)) => {
                    self.ahead.get_or_insert_default().close_reason = Some(frame.reason.into());
                }
                Ok(RawEvent::Ping(_)) if may_answer => outbox.answer_ping(&mut events),
                Ok(RawEvent::Ping(_)) => {}
                Ok(RawEvent::Pong(_)) => {}
                Err(error) => piece = Err(error),
            }
        }
        self.at += events.consumed() as u32;
        if let Err(error) = &piece {
            engine.fail(error);
        }
        if self.at == self.end || engine.is_input_over() {
            self.give_rest();
        }
        if matches!(&piece, Ok(Some(piece)) if piece.ends) {
            self.messages += 1;
        }
        piece
    }

    /// Returns the piece that had been gathered for a whole message, if pieces are asked for now.
    fn take_begun(&mut self, mode: Mode) -> Option<Piece> {
        let begun = self.message.as_mut().filter(|_| mode != Mode::Messages)?;
        begun.take_chunk()
    }

    /// Gives the memory of used-up input back.
    fn give_rest(&mut self) {
        pool::give_input(std::mem::take(&mut self.rest));
        (self.at, self.end) = (0, 0);
    }
}

/// Appends a frame as the peer of `role` may have sent it; without a kind it goes on with a message.
fn append_frame(
    wire: &mut Vec<u8>,
    role: Role,
    kind: Option<MessageKind>,
    payload: &[u8],
    fin: bool,
) {
    let opcode = kind.map_or(Opcode::Continuation, MessageKind::opcode);
    // A key of zeros leaves the payload as it is.
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

/// Adds `data` to the message; returns the message once it is whole, or a piece if asked for.
fn take_data(
    message: &mut Option<Incoming>,
    data: Data<'_>,
    mode: Mode,
) -> Result<Option<Piece>, ProtocolError> {
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
        return Ok(message.take().map(|incoming| Piece {
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
    /// Starts a message with memory for what is about to be added. For what the rest of the frame is
    /// announced to be there is memory if it can be recycled, else as far as that is not out of
    /// proportion to what has arrived.
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

    /// Takes out what has been gathered, up to the last whole code point of text.
    fn take_chunk(&mut self) -> Option<Piece> {
        let message = match self {
            Self::Binary(bytes) => Message::from(std::mem::take(bytes)),
            Self::Text(text) => Message::from(text.take_finished(pool::take(0)).into_string()),
        };
        (!message.is_empty()).then_some(Piece {
            message,
            ends: false,
        })
    }

    fn finish(self) -> Message {
        match self {
            Self::Binary(bytes) => bytes.into(),
            // The engine's data was validated to its end, so that the text is finished.
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
        let piece = inbox.next(&mut engine, &mut outbox, Mode::Messages);
        assert!(piece.is_ok_and(|piece| piece.is_none()));
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
            let piece = inbox.next(&mut engine, &mut outbox, Mode::Messages);
            assert!(piece.is_ok_and(|piece| piece.is_none()));
            let capacity = match &inbox.message {
                Some(Incoming::Binary(bytes)) => bytes.capacity(),
                Some(Incoming::Text(text)) => text.capacity(),
                None => 0,
            };
            assert!((1..=2 * ANNOUNCED_BYTES).contains(&capacity), "{capacity}");
        }
    }
}
