//! Bytes into an engine, in pieces of any size, and a record of what came of them.

use core::time::Duration;

use linerate_proto::{
    Endpoint, Engine, Event, ProtocolError,
    engine::{Chunk, MessageKind},
};

use crate::Rng;

/// In which pieces bytes are handed in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Cuts {
    /// All at once.
    Whole,
    /// Two pieces, of which the first has so many bytes.
    At(usize),
    /// Pieces of so many bytes each, the last one maybe shorter.
    Every(usize),
    /// Pieces of 1 to 16 bytes and sometimes of 0, drawn with this seed.
    Random(u64),
}

impl Cuts {
    /// Calls `take` with each piece of `wire` in turn.
    pub fn for_each_piece(self, wire: &[u8], mut take: impl FnMut(&[u8])) {
        match self {
            Self::Whole => take(wire),
            Self::At(at) => {
                take(&wire[..at]);
                take(&wire[at..]);
            }
            Self::Every(bytes) => wire.chunks(bytes).for_each(take),
            Self::Random(seed) => {
                let mut rng = Rng::new(seed);
                let mut rest = wire;
                while !rest.is_empty() {
                    let (piece, behind) = rest.split_at(rng.below(17).min(rest.len()));
                    take(piece);
                    rest = behind;
                }
            }
        }
    }
}

/// What an application saw, without the accident of how the bytes arrived.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Seen {
    /// A Close frame.
    Close {
        /// Its code.
        code: Option<u16>,
        /// Its reason.
        reason: String,
    },
    /// The peer broke the rules. Pieces lent of an unfinished message are forgotten.
    Error(ProtocolError),
    /// A whole message, put together if it came in pieces.
    Message {
        /// Its kind.
        kind: MessageKind,
        /// Its content.
        bytes: Vec<u8>,
    },
    /// A Ping with its payload.
    Ping(Vec<u8>),
    /// A Pong with its payload.
    Pong(Vec<u8>),
}

impl Seen {
    /// Returns a text message.
    pub fn text(text: &str) -> Self {
        Self::Message {
            kind: MessageKind::Text,
            bytes: text.into(),
        }
    }

    /// Returns a binary message.
    pub fn binary(bytes: &[u8]) -> Self {
        Self::Message {
            kind: MessageKind::Binary,
            bytes: bytes.to_vec(),
        }
    }

    /// Returns a Close frame.
    pub fn close(code: Option<u16>, reason: &str) -> Self {
        Self::Close {
            code,
            reason: reason.to_owned(),
        }
    }
}

/// What came of some input.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Record {
    /// What the application saw.
    pub seen: Vec<Seen>,
    /// The pieces of a message that has not ended.
    pub unfinished: Option<(MessageKind, Vec<u8>)>,
    /// What the engine wrote by itself, polled after each event.
    pub output: Vec<u8>,
}

impl Record {
    /// Adds an event.
    ///
    /// # Panics
    /// If the pieces of a message are not in order: the first one begins it, the last one ends it,
    /// and all are of one kind.
    pub fn add(&mut self, event: Result<Event<'_>, ProtocolError>) {
        let seen = match event {
            Ok(Event::Chunk(chunk)) => match self.add_chunk(chunk) {
                Some(message) => message,
                None => return,
            },
            Ok(Event::Text(text)) => Seen::text(text),
            Ok(Event::Binary(bytes)) => Seen::binary(bytes),
            Ok(Event::Ping(payload)) => Seen::Ping(payload.to_vec()),
            Ok(Event::Pong(payload)) => Seen::Pong(payload.to_vec()),
            Ok(Event::Close(frame)) => {
                Seen::close(frame.code.map(|code| code.as_u16()), frame.reason)
            }
            Err(error) => {
                self.unfinished = None;
                Seen::Error(error)
            }
        };
        if matches!(seen, Seen::Message { .. }) {
            assert_eq!(self.unfinished, None, "a message inside another one");
        }
        self.seen.push(seen);
    }

    fn add_chunk(&mut self, chunk: Chunk<'_>) -> Option<Seen> {
        assert_eq!(chunk.begins, self.unfinished.is_none(), "pieces in order");
        let (kind, mut bytes) = self.unfinished.take().unwrap_or((chunk.kind, Vec::new()));
        assert_eq!(kind, chunk.kind, "pieces of one kind");
        bytes.extend_from_slice(chunk.bytes);
        if chunk.ends {
            return Some(Seen::Message { kind, bytes });
        }
        self.unfinished = Some((kind, bytes));
        None
    }
}

/// Hands `wire` to a new `engine` cut into pieces and returns what came of it.
pub fn feed<E: Endpoint>(engine: &mut Engine<E>, wire: &[u8], cuts: Cuts) -> Record {
    feed_on(Record::default(), engine, wire, cuts)
}

/// Hands `wire` to `engine` cut into pieces, and returns `record` with what came of it.
pub fn feed_on<E: Endpoint>(
    mut record: Record,
    engine: &mut Engine<E>,
    wire: &[u8],
    cuts: Cuts,
) -> Record {
    cuts.for_each_piece(wire, |piece| {
        feed_piece(engine, piece, Duration::ZERO, &mut record);
    });
    record
}

/// Hands in one piece as one read at `now`, and polls for output after each event.
pub(crate) fn feed_piece<E: Endpoint>(
    engine: &mut Engine<E>,
    piece: &[u8],
    now: Duration,
    record: &mut Record,
) {
    let mut input = piece.to_vec();
    let mut rest = &mut input[..];
    loop {
        let mut events = engine.handle_input(rest, now);
        let Some(event) = events.next() else { break };
        record.add(event);
        let consumed = events.consumed();
        rest = &mut rest[consumed..];
        engine.poll_transmit(&mut record.output);
    }
}

/// Feeds `wire` whole, byte by byte, split in two at every position and in random pieces, each time
/// to what `start` gives: an engine and the record of what it read before. Returns the record that
/// all of them end with.
///
/// # Panics
/// If any two differ.
pub fn assert_cuts_do_not_matter<E: Endpoint>(
    start: impl Fn() -> (Engine<E>, Record),
    wire: &[u8],
) -> Record {
    let read = |cuts| {
        let (mut engine, record) = start();
        feed_on(record, &mut engine, wire, cuts)
    };
    let whole = read(Cuts::Whole);
    let cuts = (0..=wire.len())
        .map(Cuts::At)
        .chain([1, 2, 3, 5, 7].map(Cuts::Every))
        .chain((0..4).map(Cuts::Random));
    for cuts in cuts {
        assert_eq!(read(cuts), whole, "{cuts:?} of {wire:02x?}");
    }
    whole
}
