//! The state of one connection.

pub(crate) mod backlog;
pub(crate) mod charge;
pub(crate) mod endpoint;
pub(crate) mod held;
pub(crate) mod id;
pub(crate) mod memory;
pub(crate) mod partial;
#[cfg(unix)]
mod portable;

use std::time::Duration;

use linerate_proto::{Engine, Role, engine::State, handshake::RequestReader};

use self::{
    backlog::Backlog, charge::Charged, endpoint::RuntimeRole, held::HeldInput, id::Slot,
    memory::Memory, partial::PartialMessage,
};
use crate::{
    driver::{Watch, event::Interest},
    outbound::dialer::Attempt,
    platform::Socket,
    tls::Tls,
    wheel::Tick,
};

/// The state of a connection while it is open.
pub(crate) struct Connection {
    pub(crate) socket: Socket,
    pub(crate) slot: Slot,
    /// The TLS session, if the connection is encrypted.
    pub(crate) tls: Option<Box<Tls>>,
    pub(crate) stage: Stage,
    /// Meaningful once the stage is [`Stage::Open`].
    pub(crate) engine: Engine<RuntimeRole>,
    /// The message that is arriving in pieces, if there is one.
    pub(crate) partial: Option<Box<PartialMessage>>,
    /// Output that the kernel has not accepted yet.
    pub(crate) backlog: Backlog,
    /// Input that was read but must not be processed yet.
    pub(crate) held: HeldInput,
    /// The tick at which the wheel reports this connection; 0 if it is not in the wheel.
    pub(crate) alarm: Tick,
    pub(crate) watch: Watch,
    /// When the message that is arriving must be complete; 0 if none is arriving, or the time for
    /// messages is not limited.
    pub(crate) message_due: Tick,
    pub(crate) charged: Charged,
    /// True if the application has paused the input.
    pub(crate) paused: bool,
    /// True while the network connection is being established.
    pub(crate) connecting: bool,
    /// True if the backlog has reached its limit and has not been written since.
    pub(crate) congested: bool,
    /// True if the handler knows that the connection is congested.
    pub(crate) congestion_reported: bool,
    /// True if the backlog holds publications that have not been passed to the kernel yet.
    pub(crate) gathering: bool,
    /// True if the socket failed; nothing can be written or read.
    pub(crate) lost: bool,
    /// True if the stream from the peer has ended.
    pub(crate) ended: bool,
    /// True if the stream to the peer was ended.
    pub(crate) output_ended: bool,
}

// An idle connection should take at most 256 bytes. The wheel takes 8 bytes for each, the table of
// connections that other threads can reach takes 4, and the remainder covers the fixed memory of a
// worker, divided by 10,000 connections.
const _: () = assert!(size_of::<Connection>() <= 192);

/// The stage that a connection has reached.
pub(crate) enum Stage {
    /// We are opening the connection.
    Connecting(Box<Attempt>),
    /// The opening handshake with a client is in progress.
    Opening(Box<Opening>),
    /// The WebSocket is open or closing.
    Open {
        /// The index of the route.
        route: u16,
        /// Where the route keeps the connection's data.
        data: u32,
    },
    /// The request was refused, or was not for a WebSocket; the response is being sent until `due`.
    Refused {
        /// When the client's time to read the response is over.
        due: Tick,
    },
    /// Output is sent as it is, and input is ignored.
    Streaming {
        /// When the peer's time to read the end of the stream is over; 0 while the stream has not
        /// been ended.
        due: Tick,
    },
}

/// An opening handshake in progress.
pub(crate) struct Opening {
    pub(crate) reader: RequestReader,
    pub(crate) due: Duration,
}

impl Connection {
    /// Returns a connection on which nothing has been written or read.
    pub(crate) fn new(
        socket: Socket,
        slot: Slot,
        stage: Stage,
        engine: Engine<RuntimeRole>,
        watch: Watch,
    ) -> Self {
        Self {
            socket,
            slot,
            tls: None,
            stage,
            engine,
            partial: None,
            backlog: Backlog::default(),
            held: HeldInput::default(),
            alarm: 0,
            watch,
            message_due: 0,
            charged: Charged::default(),
            paused: false,
            connecting: false,
            congested: false,
            congestion_reported: false,
            gathering: false,
            lost: false,
            ended: false,
            output_ended: false,
        }
    }

    /// Returns whether input must not be processed.
    #[inline]
    pub(crate) const fn is_stopped(&self) -> bool {
        self.paused || self.congested || self.lost
    }

    /// Returns our role in the connection.
    pub(crate) fn role(&self) -> Role {
        self.engine.endpoint().0
    }

    /// Returns whether the WebSocket is open in both directions, or the stream has not been ended.
    pub(crate) fn is_open(&self) -> bool {
        match self.stage {
            Stage::Open { .. } => self.engine.state() == State::Open,
            Stage::Streaming { due } => due == 0,
            Stage::Connecting(_) | Stage::Opening(_) | Stage::Refused { .. } => false,
        }
    }

    /// Returns whether output is sent as it is, without frames.
    pub(crate) const fn is_stream(&self) -> bool {
        matches!(self.stage, Stage::Streaming { .. })
    }

    /// Returns whether the engine's deadlines apply. A peer whose input is not read cannot prove
    /// that it is alive, but it has to complete the closing handshake in time.
    pub(crate) fn engine_has_deadline(&self) -> bool {
        !self.is_stopped() || self.engine.is_output_over()
    }

    /// Returns whether the messages that we send may be compressed.
    #[inline]
    pub(crate) fn compresses(&self) -> bool {
        #[cfg(feature = "deflate")]
        return self.engine.compression().is_some();
        #[cfg(not(feature = "deflate"))]
        false
    }

    /// Returns whether the engine would try to compress this payload.
    #[inline]
    pub(crate) fn would_deflate(&self, payload: &[u8]) -> bool {
        #[cfg(feature = "deflate")]
        return self.engine.would_deflate(payload);
        #[cfg(not(feature = "deflate"))]
        {
            _ = payload;
            false
        }
    }

    /// Returns the events that the driver should wait for.
    pub(crate) fn wanted(&self) -> Interest {
        Interest {
            read: !self.is_stopped() && !self.ended && self.held.is_empty() && !self.connecting,
            write: !self.backlog.is_empty() || self.connecting,
        }
    }

    /// Returns the memory that unfinished messages and unprocessed input use, in bytes.
    pub(crate) fn input_bytes(&self) -> usize {
        let partial = self.partial.as_ref();
        self.held.capacity() + partial.map_or(0, |partial| partial.capacity())
    }

    /// Gives the memory of everything that waits back.
    pub(crate) fn free(&mut self, memory: &mut Memory) {
        let Memory {
            pool,
            queues,
            held,
            messages,
            used,
        } = memory;
        used.discharge(self);
        self.backlog.clear(pool, queues);
        self.held.clear(pool, held);
        if let Some(mut partial) = self.partial.take() {
            pool.give(partial.take());
            messages.give(partial);
        }
        if let Some(tls) = self.tls.take() {
            tls.give_memory(pool);
        }
    }
}
