//! One connection: what is kept of it.

pub(crate) mod backlog;
pub(crate) mod gather;
pub(crate) mod output;
pub(crate) mod remainder;
pub(crate) mod side;

use std::{
    io::IoSlice,
    os::fd::{AsFd, OwnedFd},
    time::Duration,
};

use linerate_proto::{Engine, Role, engine::State, handshake::RequestReader};

use crate::{
    ConnectionId,
    connection::{
        backlog::{Backlog, SLICES_MAX},
        gather::Gather,
        remainder::Remainder,
        side::Side,
    },
    driver::{Driver, InFlight, Interest, Outlet, Watch, socket},
    memory::pool::Pool,
    outbound::Attempt,
    tls::Tls,
    worker::wheel::Tick,
};

/// What is kept of a connection for as long as it is open.
pub(crate) struct Connection {
    pub(crate) socket: OwnedFd,
    pub(crate) id: ConnectionId,
    /// What encrypts it.
    pub(crate) tls: Option<Box<Tls>>,
    pub(crate) stage: Stage,
    /// Meaningful once the stage is [`Stage::Open`].
    pub(crate) engine: Engine<Side>,
    /// The message that is arriving in pieces.
    pub(crate) gather: Option<Box<Gather>>,
    /// Output that the kernel did not take yet.
    pub(crate) backlog: Backlog,
    /// Input that was read and must not be looked at yet.
    pub(crate) held: Remainder,
    /// When the backlog is given up, if there is one; each byte that the peer takes moves it.
    pub(crate) stall_due: Tick,
    /// The tick for which the wheel has this connection; 0 if it has not.
    pub(crate) alarm: Tick,
    pub(crate) watch: Watch,
    /// The application has stopped the input.
    pub(crate) paused: bool,
    /// The network has not connected it yet.
    pub(crate) connecting: bool,
    /// The backlog was at its limit and has not been written since.
    pub(crate) congested: bool,
    /// The handler knows that the connection is congested.
    pub(crate) congestion_told: bool,
    /// The backlog holds publications that nobody has tried to write yet.
    pub(crate) gathering: bool,
    /// The socket failed; nothing can be written or read.
    pub(crate) lost: bool,
    /// The stream from the peer ended.
    pub(crate) ended: bool,
    /// The stream to the peer was ended.
    pub(crate) output_ended: bool,
}

// Idle connections are to take at most 256 bytes each. The wheel takes another 8, and the rest is for
// what a worker has once, when it has 10,000 of them.
const _: () = assert!(size_of::<Connection>() <= 192);

/// How far a connection has come.
pub(crate) enum Stage {
    /// We open it.
    Connecting(Box<Attempt>),
    /// The opening handshake with a client goes on.
    Opening(Box<Opening>),
    /// The WebSocket is open, or closing.
    Open {
        /// The index of the route.
        route: u16,
        /// Where the route keeps the connection's data.
        data: u32,
    },
    /// The opening handshake was refused; the answer is on its way until this time.
    Refused {
        /// When the client has had its time to read the answer.
        due: Tick,
    },
}

/// An opening handshake.
pub(crate) struct Opening {
    pub(crate) reader: RequestReader,
    pub(crate) due: Duration,
}

impl Connection {
    /// Returns a connection of which nothing has been written or read.
    pub(crate) fn new(
        socket: OwnedFd,
        id: ConnectionId,
        stage: Stage,
        engine: Engine<Side>,
        watch: Watch,
    ) -> Self {
        Self {
            socket,
            id,
            tls: None,
            stage,
            engine,
            gather: None,
            backlog: Backlog::default(),
            held: Remainder::default(),
            stall_due: 0,
            alarm: 0,
            watch,
            paused: false,
            connecting: false,
            congested: false,
            congestion_told: false,
            gathering: false,
            lost: false,
            ended: false,
            output_ended: false,
        }
    }

    /// Returns whether input must not be looked at.
    #[inline]
    pub(crate) const fn is_stopped(&self) -> bool {
        self.paused || self.congested || self.lost
    }

    /// Returns which side we are.
    pub(crate) fn role(&self) -> Role {
        self.engine.endpoint().0
    }

    /// Returns whether the WebSocket is open in both directions.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Open { .. }) && self.engine.state() == State::Open
    }

    /// Returns whether messages of ours may be compressed.
    #[inline]
    pub(crate) fn deflates(&self) -> bool {
        #[cfg(feature = "deflate")]
        return self.engine.deflates().is_some();
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

    /// Returns what the driver should wait for.
    pub(crate) fn wanted(&self) -> Interest {
        Interest {
            read: !self.is_stopped() && !self.ended && self.held.is_empty() && !self.connecting,
            write: !self.backlog.is_empty() || self.connecting,
        }
    }

    /// Returns where `bytes` bytes of output go, as the backlog is empty.
    #[inline]
    pub(crate) fn outlet<'d>(&mut self, driver: &'d mut Driver, bytes: usize) -> Outlet<'d> {
        let token = self.id.token();
        driver.outlet(self.socket.as_fd(), token, &mut self.watch, bytes)
    }

    /// Writes as much of the backlog as the kernel takes, and before it what is queued.
    pub(crate) fn write_backlog(&mut self, driver: &mut Driver, pool: &mut Pool, stall_due: Tick) {
        match driver.withdraw(self.id.token(), &mut self.watch) {
            Ok(Some(bytes)) => {
                if self.backlog.is_empty() {
                    self.stall_due = stall_due;
                }
                self.backlog.prepend(bytes, 0, pool);
            }
            Ok(None) => {}
            // What the kernel has goes first.
            Err(InFlight) => return,
        }
        while !self.backlog.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let count = self.backlog.slices(&mut slices);
            let slices = &slices[..count];
            let written = match slices {
                [only] => socket::write(&self.socket, only),
                all => socket::write_slices(&self.socket, all),
            };
            let Ok(bytes) = written else {
                self.lost = true;
                return;
            };
            let all = bytes == slices.iter().map(|slice| slice.len()).sum();
            if bytes > 0 {
                self.stall_due = stall_due;
                self.backlog.skip(bytes, pool);
            }
            if !all {
                return;
            }
        }
    }
}
