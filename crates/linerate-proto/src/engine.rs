//! The connection after the opening handshake, as a state machine (RFC 6455 §5–§7).
//!
//! [`Engine::handle_input`] takes what a read gave and lends [`Event`]s; [`Engine::poll_transmit`]
//! and the `send_*` methods append frames to a buffer of the caller; [`Engine::poll_timeout`] says
//! when to call [`Engine::handle_timeout`]. Time is a `Duration` since any fixed moment that the
//! caller chose.

mod closing;
#[cfg(feature = "deflate")]
mod deflated;
mod event;
mod framing;
mod keepalive;
mod receive;
mod send;
mod unread;

use alloc::{boxed::Box, sync::Arc};
use core::time::Duration;

use linerate_simd::utf8::Validator;

use crate::{
    close::{CloseCode, ControlPayload},
    config::Config,
    frame::{Header, MaskKey, Opcode},
    role::Endpoint,
};

pub use closing::{Closed, State};
pub use event::{Chunk, Data, Event, Message, RawEvent, Taken};
pub use keepalive::Timeout;
pub use receive::Events;

/// The kind of a message (RFC 6455 §5.6).
///
/// Complete: all other opcodes are those of control frames or reserved.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum MessageKind {
    /// Arbitrary bytes.
    Binary,
    /// UTF-8 text.
    Text,
}

impl MessageKind {
    /// Returns the opcode of the first frame of such a message.
    #[inline]
    pub const fn opcode(self) -> Opcode {
        match self {
            Self::Binary => Opcode::Binary,
            Self::Text => Opcode::Text,
        }
    }
}

/// One end of an open WebSocket connection, without its I/O.
#[derive(Debug)]
pub struct Engine<E> {
    endpoint: E,
    config: Arc<Config>,
    receiving: Receiving,
    /// The kind of the fragmented message that is being sent.
    sending: Option<MessageKind>,
    aside: Option<Box<Aside>>,
    /// The opcode of the answer, until it is handed out.
    answer_due: Option<Opcode>,
    input: Direction,
    output: Direction,
    /// The code of the peer's Close frame: 0 before, [`Closed::NO_STATUS`] if it had none.
    peer_code: u16,
    keepalive: keepalive::Keepalive,
}

/// What a connection that nobody has pinged, and that does not compress, does without; kept allocated
/// once there was any.
#[derive(Debug)]
struct Aside {
    /// The answer to the newest Ping, or our Close frame, after which no Ping is answered.
    answer: ControlPayload,
    #[cfg(feature = "deflate")]
    deflate: Option<Box<crate::deflate::Codec>>,
}

/// How far one direction of the connection has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Direction {
    /// A Close frame has passed.
    Closed,
    /// The connection failed: input is ignored.
    Failed,
    /// Messages may pass.
    Open,
}

/// What is known of the frame and the message that are arriving.
#[derive(Debug, Default)]
struct Receiving {
    /// Nothing once input means nothing any more.
    frame: Arriving,
    message: Option<Unfinished>,
    utf8: Validator,
    /// The first bytes of a control payload that is not whole yet.
    control: Option<Box<ControlPayload>>,
    /// The reserved bits that have a meaning, as in [`Header::rsv`].
    rsv_known: u8,
}

/// The part of a frame that is arriving.
#[derive(Debug, Default)]
enum Arriving {
    /// None: the next byte begins a frame.
    #[default]
    Nothing,
    /// A header, of which these first bytes have come.
    Header {
        bytes: [u8; Header::BYTES_MAX],
        len: u8,
    },
    /// The payload.
    Payload(Frame),
}

/// A frame whose payload is arriving.
#[derive(Clone, Copy, Debug)]
struct Frame {
    /// Bytes of the payload that are still to come.
    left: u64,
    /// Bytes of the payload that have arrived, for the masking key; wraps.
    phase: u8,
    mask: Option<MaskKey>,
    opcode: Opcode,
    fin: bool,
}

/// A message whose frames are arriving.
#[derive(Clone, Copy, Debug)]
struct Unfinished {
    kind: MessageKind,
    /// The sum of the payload lengths of the frames so far.
    bytes: u64,
    fragments: u32,
    /// Whether any event of this message was lent.
    begun: bool,
    /// Whether it is compressed (RFC 7692 §6).
    compressed: bool,
}

impl Aside {
    /// Returns what is in `place`, which is made if there is nothing.
    fn of(place: &mut Option<Box<Self>>) -> &mut Self {
        place.get_or_insert_with(|| {
            Box::new(Self {
                answer: ControlPayload::new(),
                #[cfg(feature = "deflate")]
                deflate: None,
            })
        })
    }
}

/// Nanoseconds since the caller's fixed moment.
type Time = u64;

fn time(now: Duration) -> Time {
    now.as_nanos() as Time
}

impl<E: Endpoint> Engine<E> {
    /// Creates an engine for a connection whose opening handshake ended at `now`.
    ///
    /// An `Arc` of one configuration may serve any number of engines.
    pub fn new(endpoint: E, config: Arc<Config>, now: Duration) -> Self {
        Self {
            endpoint,
            config,
            receiving: Receiving::default(),
            sending: None,
            aside: None,
            answer_due: None,
            input: Direction::Open,
            output: Direction::Open,
            peer_code: 0,
            keepalive: keepalive::Keepalive::new(time(now)),
        }
    }

    /// Takes what a read gave, at most once each byte, and lends what it means.
    ///
    /// The input is unmasked in place. Iterate until `None`, or else keep the bytes behind
    /// [`Events::consumed`] and hand them in again before any others.
    #[inline]
    pub fn handle_input<'e, 'i>(
        &'e mut self,
        input: &'i mut [u8],
        now: Duration,
    ) -> Events<'e, 'i, E> {
        let in_frame = !matches!(self.receiving.frame, Arriving::Nothing);
        self.keepalive
            .handle_input(input.len(), in_frame, time(now));
        Events::new(self, input)
    }

    /// Returns the settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the endpoint: the role and the source of masking keys.
    pub const fn endpoint(&self) -> &E {
        &self.endpoint
    }

    /// Returns the time from the newest answered keepalive Ping to its Pong.
    pub fn latency(&self) -> Option<Duration> {
        self.keepalive.latency()
    }

    /// Queues our Close frame and starts the budget of the closing handshake.
    fn queue_close(&mut self, payload: ControlPayload, now: Time) {
        self.queue_answer(Opcode::Close, payload.as_slice());
        self.output = Direction::Closed;
        self.keepalive.handle_close(now);
    }

    /// Queues a control frame in the place of one that is still queued.
    fn queue_answer(&mut self, opcode: Opcode, payload: &[u8]) {
        Aside::of(&mut self.aside).answer.set(payload);
        self.answer_due = Some(opcode);
    }

    fn record_peer_close(&mut self, code: Option<CloseCode>) {
        self.input = Direction::Closed;
        self.peer_code = code.map_or(Closed::NO_STATUS, CloseCode::as_u16);
    }
}
