//! From the input of a connection to the callbacks of its route's handler.

mod event;
pub(crate) mod pages;
pub(crate) mod routes;

use std::ops::Range;

use linerate_proto::{
    Role,
    engine::{Chunk, Closed, Message},
    handshake::{Acceptance, Refusal, Upgrade},
};

use self::event::{InputEvent, Streamed};
use crate::{
    connection::{Connection, partial::PartialMessage},
    context::Context,
    core::Core,
    handler::{Handler, Opened},
    memory::user_data::UserData,
    outbound::{destination::Destination, error::ConnectError},
    worker_context::WorkerContext,
};

/// Maximum number of Pings in one input that are answered individually; of further ones only the
/// newest is answered (RFC 6455 §5.5.3).
const PONGS_MAX: u32 = 64;

/// Maximum number of frames of one connection that are handled before others have their turn. One
/// read may contain 40,000 empty fragments, which take milliseconds; this many take about 50 µs.
const FRAMES_MAX: u32 = 512;

/// A handler with the data of its connections, independent of their type.
pub(crate) trait AnyRoute {
    fn accept<'u>(&mut self, upgrade: &'u Upgrade<'_>) -> Result<Acceptance<'u>, Refusal>;

    /// Starts a connection; returns the place of its data.
    fn open(&mut self, core: &mut Core, connection: &mut Connection, opened: Opened<'_>) -> u32;

    /// Handles `input`; returns how many bytes have been processed. These are all bytes unless the
    /// connection was stopped or others are to have their turn first.
    fn input(
        &mut self,
        data: u32,
        core: &mut Core,
        connection: &mut Connection,
        input: &mut [u8],
    ) -> usize;

    fn failed(
        &mut self,
        worker: &mut WorkerContext<'_>,
        destination: &Destination,
        error: ConnectError,
    );

    fn congested(&mut self, data: u32, core: &mut Core, connection: &mut Connection);

    fn drain(&mut self, data: u32, core: &mut Core, connection: &mut Connection);

    fn message_late(&mut self, data: u32, core: &mut Core, connection: &mut Connection);

    /// Ends a connection.
    fn close(&mut self, data: u32, core: &mut Core, connection: &mut Connection, closed: Closed);

    /// Frees the data of a connection that continues elsewhere.
    #[cfg(unix)]
    fn forget(&mut self, data: u32);
}

/// A handler with the data of its connections.
pub(crate) struct Route<H: Handler> {
    handler: H,
    data: UserData<H::Data>,
}

/// What a connection has used of its share of a turn.
#[derive(Default)]
struct TurnUsage {
    frames: u32,
    pongs: u32,
}

/// A handler with the data of the connection for which it is called.
struct BoundHandler<'h, H: Handler> {
    handler: &'h mut H,
    data: &'h mut H::Data,
}

impl<H: Handler> Route<H> {
    pub(crate) const fn new(handler: H) -> Self {
        Self {
            handler,
            data: UserData::new(),
        }
    }

    /// Returns the handler with the data at place `data`.
    fn bind(&mut self, data: u32) -> BoundHandler<'_, H> {
        BoundHandler {
            handler: &mut self.handler,
            data: self.data.at(data),
        }
    }
}

impl<H: Handler> BoundHandler<'_, H> {
    /// Passes a message that arrived in pieces to the handler, now that it is complete.
    fn whole(
        &mut self,
        core: &mut Core,
        connection: &mut Connection,
        mut whole: Box<PartialMessage>,
        input: &[u8],
        last_in_input: bool,
    ) {
        let message = match &*whole {
            PartialMessage::Binary(bytes) => Some(Message::Binary(bytes)),
            PartialMessage::Text(text) => text.as_str().map(Message::Text),
            PartialMessage::Streamed(_) => None,
        };
        let mut tail = 0..0;
        if let Some(message) = message {
            let mut cx = Context::new(core, connection, input, whole.as_bytes(), last_in_input);
            self.handler.message(self.data, &mut cx, message);
            tail = cx.take_tail();
        }
        let bytes = whole.take();
        core.io.memory.messages.give(whole);
        send_tail(core, connection, input, bytes, tail);
    }

    /// Handles `input` in the given role, up to [`FRAMES_MAX`]; returns how many bytes have been
    /// processed.
    #[inline(always)]
    fn input(
        &mut self,
        role: Role,
        core: &mut Core,
        connection: &mut Connection,
        input: &mut [u8],
    ) -> usize {
        let (mut at, mut usage) = (0, TurnUsage::default());
        while at < input.len() && usage.frames < FRAMES_MAX && !connection.is_stopped() {
            usage.frames += 1;
            let taken = match connection.engine.take_message(role, input, at) {
                Some(Ok(taken)) => taken,
                Some(Err(_)) => return input.len(),
                None => {
                    at += self.event(core, connection, input, at, &mut usage);
                    continue;
                }
            };
            at = taken.end;
            let mut cx = Context::new(core, connection, taken.input, &[], at == taken.input.len());
            self.handler.message(self.data, &mut cx, taken.message);
        }
        at
    }

    #[inline(never)]
    fn client_input(
        &mut self,
        core: &mut Core,
        connection: &mut Connection,
        input: &mut [u8],
    ) -> usize {
        self.input(Role::Client, core, connection, input)
    }

    /// Passes a piece of a streamed message to the handler. In `input`, the piece ends at `end`.
    fn streamed(
        &mut self,
        core: &mut Core,
        connection: &mut Connection,
        streamed: Streamed,
        input: &[u8],
        end: usize,
    ) {
        let Streamed {
            kind,
            begins,
            ends,
            bytes,
            held,
        } = streamed;
        let chunk = Chunk {
            kind,
            begins,
            ends,
            bytes: if held.is_empty() {
                &input[end - bytes..end]
            } else {
                &held
            },
        };
        let mut cx = Context::new(core, connection, input, &held, end == input.len());
        self.handler.chunk(self.data, &mut cx, chunk);
        let tail = cx.take_tail();
        send_tail(core, connection, input, held, tail);
    }

    /// Handles whatever begins at `at` and is not a whole message; returns how many bytes it took.
    fn event(
        &mut self,
        core: &mut Core,
        connection: &mut Connection,
        input: &mut [u8],
        at: usize,
        usage: &mut TurnUsage,
    ) -> usize {
        let from = &mut input[at..];
        let (seen, bytes) = event::next(
            connection,
            from,
            H::STREAMED_BYTES_MIN,
            &mut core.io.memory,
            (&mut usage.frames, FRAMES_MAX),
            core.now,
        );
        let remaining = input.len() - at;
        match seen {
            InputEvent::Whole(whole) => {
                self.whole(core, connection, whole, input, bytes == remaining);
            }
            InputEvent::Streamed(streamed) => {
                let end = at + bytes;
                self.streamed(core, connection, streamed, input, end);
            }
            InputEvent::Ping(payload) => {
                if usage.pongs < PONGS_MAX {
                    usage.pongs += 1;
                    connection.engine.poll_transmit(&mut core.io.cork.bytes);
                }
                self.call(core, connection, input, |handler, data, cx| {
                    handler.ping(data, cx, payload.as_slice());
                });
            }
            InputEvent::Pong(payload) => self.call(core, connection, input, |handler, data, cx| {
                handler.pong(data, cx, payload.as_slice());
            }),
            InputEvent::Error(error) => {
                connection.engine.fail(&error);
                return remaining;
            }
            InputEvent::Incomplete => {}
            InputEvent::Nothing => return remaining,
        }
        bytes
    }

    /// Calls one of the handler's functions for events other than messages.
    fn call(
        &mut self,
        core: &mut Core,
        connection: &mut Connection,
        input: &[u8],
        callback: impl FnOnce(&mut H, &mut H::Data, &mut Context<'_>),
    ) {
        let mut cx = Context::new(core, connection, input, &[], false);
        callback(self.handler, self.data, &mut cx);
    }
}

/// Writes `tail`, the part of `memory` that a callback sent last, and gives the memory to the pool.
fn send_tail(
    core: &mut Core,
    connection: &mut Connection,
    input: &[u8],
    mut memory: Vec<u8>,
    tail: Range<usize>,
) {
    if tail.is_empty() {
        core.io.memory.pool.give(memory);
    } else if tail.start == 0 {
        memory.truncate(tail.end);
        core.io.flush_owned(connection, input, memory);
    } else {
        core.io.flush(connection, input, &memory[tail]);
        core.io.memory.pool.give(memory);
    }
}

impl<H: Handler> AnyRoute for Route<H> {
    fn accept<'u>(&mut self, upgrade: &'u Upgrade<'_>) -> Result<Acceptance<'u>, Refusal> {
        self.handler.accept(upgrade)
    }

    fn open(&mut self, core: &mut Core, connection: &mut Connection, opened: Opened<'_>) -> u32 {
        let mut cx = Context::new(core, connection, &[], &[], false);
        let data = self.handler.open(&mut cx, opened);
        self.data.insert(data)
    }

    fn input(
        &mut self,
        data: u32,
        core: &mut Core,
        connection: &mut Connection,
        input: &mut [u8],
    ) -> usize {
        // This passes the time to the engine. `take_message`, used below, does not.
        _ = connection.engine.handle_input(&mut [], core.now);
        // The loop is compiled once for each role, so that a server's loop does not check the role.
        match connection.role() {
            Role::Client => self.bind(data).client_input(core, connection, input),
            Role::Server => self.bind(data).input(Role::Server, core, connection, input),
        }
    }

    fn failed(
        &mut self,
        worker: &mut WorkerContext<'_>,
        destination: &Destination,
        error: ConnectError,
    ) {
        self.handler.failed(worker, destination, error);
    }

    fn congested(&mut self, data: u32, core: &mut Core, connection: &mut Connection) {
        self.bind(data)
            .call(core, connection, &[], |handler, data, cx| {
                handler.congested(data, cx)
            });
    }

    fn drain(&mut self, data: u32, core: &mut Core, connection: &mut Connection) {
        self.bind(data)
            .call(core, connection, &[], |handler, data, cx| {
                handler.drain(data, cx)
            });
    }

    fn message_late(&mut self, data: u32, core: &mut Core, connection: &mut Connection) {
        self.bind(data)
            .call(core, connection, &[], |handler, data, cx| {
                handler.message_late(data, cx)
            });
    }

    fn close(&mut self, data: u32, core: &mut Core, connection: &mut Connection, closed: Closed) {
        let Some(data) = self.data.remove(data) else {
            return;
        };
        let mut cx = Context::new(core, connection, &[], &[], false);
        self.handler.close(data, &mut cx, closed);
    }

    #[cfg(unix)]
    fn forget(&mut self, data: u32) {
        self.data.remove(data);
    }
}
