//! Feeds bytes to an engine, in pieces of any size, and records the results.

use core::time::Duration;

use linerate_proto::{
    Endpoint, Engine, Event, ProtocolError,
    engine::{Chunk, MessageKind},
};

use crate::Rng;

/// How bytes are cut into pieces.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Cuts {
    /// One piece.
    Whole,
    /// Two pieces, the first with this many bytes.
    At(usize),
    /// Pieces of this many bytes each; the last one may be shorter.
    Every(usize),
    /// Pieces of 1 to 16 bytes, sometimes of 0, chosen with this seed.
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

/// What an application saw, regardless of how the bytes were cut.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Seen {
    /// A Close frame.
    Close {
        /// The close code.
        code: Option<u16>,
        /// The close reason.
        reason: String,
    },
    /// The peer broke the rules. The pieces of an unfinished message are dropped.
    Error(ProtocolError),
    /// A whole message, reassembled if it came in pieces.
    Message {
        /// The kind of the message.
        kind: MessageKind,
        /// The content of the message.
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

/// The results of some input.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Record {
    /// The events that the application saw.
    pub seen: Vec<Seen>,
    /// The pieces of a message that is not complete.
    pub unfinished: Option<(MessageKind, Vec<u8>)>,
    /// The bytes that the engine wrote by itself, polled after each event.
    pub output: Vec<u8>,
}

impl Record {
    /// Adds an event.
    ///
    /// # Panics
    /// Panics if the pieces of a message are not in order: the first one begins it, the last one
    /// ends it, and all are of one kind.
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
            assert_eq!(self.unfinished, None, "message inside another message");
        }
        self.seen.push(seen);
    }

    fn add_chunk(&mut self, chunk: Chunk<'_>) -> Option<Seen> {
        assert_eq!(
            chunk.begins,
            self.unfinished.is_none(),
            "pieces out of order"
        );
        let (kind, mut bytes) = self.unfinished.take().unwrap_or((chunk.kind, Vec::new()));
        assert_eq!(kind, chunk.kind, "pieces of different kinds");
        bytes.extend_from_slice(chunk.bytes);
        if chunk.ends {
            return Some(Seen::Message { kind, bytes });
        }
        self.unfinished = Some((kind, bytes));
        None
    }
}

/// Feeds `wire`, cut into pieces, to a new `engine` and returns the results.
pub fn feed<E: Endpoint>(engine: &mut Engine<E>, wire: &[u8], cuts: Cuts) -> Record {
    feed_on(Record::default(), engine, wire, cuts)
}

/// Feeds `wire`, cut into pieces, to `engine`. Returns `record` with the results added.
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

/// Feeds one piece as one read at `now`, and polls for output after each event.
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
/// to the result of `start`: an engine and the record of its earlier input. Returns the record,
/// which is the same for all of them.
///
/// # Panics
/// Panics if any two records differ.
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
