//! The connection after the opening handshake, as a state machine (RFC 6455 §5–§7).
//!
//! [`Engine::handle_input`] takes the bytes of a read and yields [`Event`]s that borrow from them;
//! [`Engine::poll_transmit`] and the `send_*` methods append frames to the caller's buffer;
//! [`Engine::poll_timeout`] returns when to call [`Engine::handle_timeout`]. Times are `Duration`s
//! since a fixed moment that the caller chooses.

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
    close::ControlPayload,
    close_code::CloseCode,
    config::Config,
    frame::Header,
    opcode::Opcode,
    role::{Endpoint, MaskKey},
};
pub use closing::{Closed, State};
pub use event::{Chunk, Data, Event, Message, RawEvent, Taken};
pub use keepalive::Timeout;
pub use receive::Events;

pub use crate::opcode::MessageKind;

/// One end of an open WebSocket connection, without I/O.
#[derive(Debug)]
pub struct Engine<E> {
    endpoint: E,
    config: Arc<Config>,
    receiving: Receiving,
    /// The kind of the fragmented message that is being sent.
    sending: Option<MessageKind>,
    aside: Option<Box<Aside>>,
    /// The opcode of the queued answer, until [`Engine::poll_transmit`] appends it.
    answer_due: Option<Opcode>,
    input: Direction,
    output: Direction,
    /// The code of the peer's Close frame: 0 before it arrives, [`Closed::NO_STATUS`] if it has no
    /// code.
    peer_code: u16,
    keepalive: keepalive::Keepalive,
}

/// State that a connection needs only once it is pinged or if it compresses; stays allocated from
/// then on.
#[derive(Debug)]
struct Aside {
    /// The answer to the newest Ping, or our Close frame, after which no Ping is answered.
    answer: ControlPayload,
    #[cfg(feature = "deflate")]
    deflate: Option<Box<crate::deflate::Codec>>,
}

/// The state of one direction of the connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Direction {
    /// A Close frame was sent or received.
    Closed,
    /// The connection failed: input is ignored.
    Failed,
    /// Messages may be sent or received.
    Open,
}

/// The state of the frame and the message that are arriving.
#[derive(Debug, Default)]
struct Receiving {
    /// Always [`Arriving::Nothing`] once all input is ignored.
    frame: Arriving,
    message: Option<Unfinished>,
    utf8: Validator,
    /// The first bytes of a control payload that is not complete yet.
    control: Option<Box<ControlPayload>>,
    /// The reserved bits to which an extension gives a meaning, as in [`Header::rsv`].
    rsv_known: u8,
}

/// The part of a frame that is arriving.
#[derive(Debug, Default)]
enum Arriving {
    /// No frame has begun: the next byte is the first of one.
    #[default]
    Nothing,
    /// A header whose first `len` bytes have arrived.
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
    /// Bytes of the payload that have not arrived yet.
    left: u64,
    /// Bytes of the payload that have arrived, modulo 256: the offset for the masking key.
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
    /// True if any event of this message was returned to the caller.
    begun: bool,
    /// True if the message is compressed (RFC 7692 §6).
    compressed: bool,
}

impl Aside {
    /// Returns the value in `place`, creating it if there is none.
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

/// Nanoseconds since the moment that the caller chose as zero.
type Time = u64;

fn time(now: Duration) -> Time {
    now.as_nanos() as Time
}

impl<E: Endpoint> Engine<E> {
    /// Creates an engine for a connection whose opening handshake ended at `now`.
    ///
    /// Any number of engines can share one `Config` through clones of the `Arc`.
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

    /// Processes the bytes of a read and yields the events that they contain.
    ///
    /// The input is unmasked in place. Pass each byte only once: iterate until `None`, or keep the
    /// bytes after [`Events::consumed`] and pass them again before any new ones.
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

    /// Returns the time between the most recent answered keepalive Ping and its Pong.
    pub fn latency(&self) -> Option<Duration> {
        self.keepalive.latency()
    }

    /// Queues our Close frame and starts the timeout of the closing handshake.
    fn queue_close(&mut self, payload: ControlPayload, now: Time) {
        self.queue_answer(Opcode::Close, payload.as_slice());
        self.output = Direction::Closed;
        self.keepalive.handle_close(now);
    }

    /// Queues a control frame; replaces one that is still queued.
    fn queue_answer(&mut self, opcode: Opcode, payload: &[u8]) {
        Aside::of(&mut self.aside).answer.set(payload);
        self.answer_due = Some(opcode);
    }

    fn record_peer_close(&mut self, code: Option<CloseCode>) {
        self.input = Direction::Closed;
        self.peer_code = code.map_or(Closed::NO_STATUS, CloseCode::as_u16);
    }
}
