//! What a worker and its driver tell each other about sockets.

use std::io;

#[cfg(target_os = "linux")]
use linerate_uring::Input;

use crate::platform::Socket;

/// The bytes that arrive with an event, which only io_uring provides.
#[cfg(not(target_os = "linux"))]
type Input = Vec<u8>;

/// The largest token; a ring uses the bits above it.
pub(crate) const TOKEN_MAX: u64 = (1 << 61) - 1;

/// The kinds of sockets that a driver watches.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Source {
    Listener,
    Socket,
}

/// The readiness that a socket waits for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Interest {
    /// True to wait for input.
    pub(crate) read: bool,
    /// True to wait until output can be written.
    pub(crate) write: bool,
}

impl Interest {
    /// Waits for input only.
    pub(crate) const READ: Self = Self {
        read: true,
        write: false,
    };

    /// Waits only until output can be written.
    pub(crate) const WRITE: Self = Self {
        read: false,
        write: true,
    };

    /// Waits for nothing; a lost connection is still reported.
    pub(crate) const NONE: Self = Self {
        read: false,
        write: false,
    };
}

/// Something that happened to a socket.
#[derive(Debug)]
pub(crate) struct Event {
    /// The token with which the socket was added.
    pub(crate) token: u64,
    pub(crate) kind: EventKind,
    /// True if the operation that waits for the socket must be started again: call
    /// [`Watch::input_is_over`](super::Watch::input_is_over), then
    /// [`Driver::update`](super::Driver::update).
    pub(crate) is_over: bool,
}

/// What can happen to a socket.
#[derive(Debug)]
#[cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "only io_uring reports more than readiness")
)]
pub(crate) enum EventKind {
    /// A connection was accepted.
    Connection(Socket),
    /// The stream from the peer has ended.
    End,
    /// The driver failed and cannot continue.
    Failed(io::Error),
    /// Input was read.
    Input(Input),
    /// The connection is lost.
    Lost,
    /// Nothing that needs attention.
    Nothing,
    /// The socket is ready.
    Ready {
        /// True if there is input, the end of input, or a connection to accept.
        read: bool,
        /// True if output can be written.
        write: bool,
        /// True if the connection is lost.
        lost: bool,
    },
    /// The process is out of file descriptors or memory, so that no connection can be accepted.
    /// Retrying at once would only spin.
    Shortage,
    /// Queued output of which the kernel accepted only the given number of bytes.
    Unsent(Vec<u8>, usize),
}

/// Where output goes while the backlog is empty.
#[cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "only io_uring queues output")
)]
pub(crate) enum Outlet<'a> {
    /// To the backlog, after the queued output. If possible, the queued output must then be
    /// [withdrawn](super::Driver::withdraw) and written together with the backlog.
    Backlog,
    /// To this buffer, which is sent at the end of the turn.
    Queue(&'a mut Vec<u8>),
    /// To the socket, immediately.
    Socket,
}

/// The kernel is sending the output; an event will report the result.
#[derive(Debug)]
#[cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "only io_uring sends later")
)]
pub(crate) struct InFlight;
