//! The io_uring driver: the kernel accepts, receives and sends for a whole turn in one call.
//!
//! Input arrives in the buffers of the ring. Small outputs are collected and submitted when the
//! worker waits next. They complete before that call starts to wait, so that a short send is
//! reported before any other event.
//!
//! An epoll instance, which the ring polls, reports when output can be written, when connections
//! that are not read are lost, and when input is ready on sockets that receive a lot at once. The
//! poll operation of io_uring cannot be used for this: once the peer has ended its stream, it
//! completes immediately, whatever it was asked to wait for.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Duration,
};

use linerate_uring::{Completion, Ring, SendKey, Sending, Setup};
use rustix::io::Errno;

use super::{
    epoll::Epoll,
    event::{Event, EventKind, InFlight, Interest, Outlet, Source},
};
use crate::driver::socket::{self, Accepted};

/// The token that the ring reports for the epoll instance; nothing else uses it.
const EPOLL: u64 = linerate_uring::TOKEN_MAX - 2;

/// Larger outputs are written at once, because copying them would cost more than the system call
/// that is saved.
const QUEUED_BYTES_MAX: usize = 2 << 10;

/// Maximum number of outputs that wait for the end of the turn; their bytes should then still be in
/// the cache.
const QUEUED_MAX: usize = 256;

/// Inputs of this size or more are bulk, and so are inputs that continue a message. Bulk input is
/// better read when it is the connection's turn: by then more has arrived, and it is read into
/// memory that is in the cache.
const BULK_BYTES_MIN: usize = 2 << 10;

/// The way of reading a connection changes after this many consecutive inputs of the other kind.
const CHANGE_AFTER: u8 = 3;

/// The state that this driver keeps for a socket.
#[derive(Debug, Default)]
pub(super) struct State {
    input: Input,
    /// What the epoll instance waits for, if the socket was added to it.
    polled: Option<Interest>,
    /// True if input is read when the epoll instance reports it.
    is_bulk: bool,
    /// The number of consecutive inputs that differ from what `is_bulk` predicts.
    unlike: u8,
    /// The last output that was queued; it may have completed.
    sending: Option<SendKey>,
}

/// The operation that receives input.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Input {
    #[default]
    Idle,
    Started,
    /// Started and cancelled; the last completion has not arrived yet.
    Cancelled,
}

impl State {
    /// Records that the operation that receives input has ended.
    pub(super) fn input_is_over(&mut self) {
        self.input = Input::Idle;
    }

    /// Returns whether an operation receives input, so that the socket must not be read directly.
    pub(super) fn is_receiving(&self) -> bool {
        self.input != Input::Idle
    }

    /// Records how many bytes arrived at once, and whether they continue a message.
    #[inline]
    pub(super) const fn learn(&mut self, bytes: usize, continues: bool) {
        if (continues || bytes >= BULK_BYTES_MIN) == self.is_bulk {
            self.unlike = 0;
            return;
        }
        self.unlike += 1;
        if self.unlike >= CHANGE_AFTER {
            self.is_bulk = !self.is_bulk;
            self.unlike = 0;
        }
    }

    pub(super) const fn may_be_sending(&self) -> bool {
        self.sending.is_some()
    }

    /// Returns what the epoll instance should wait for, or `None` if it need not know the socket.
    fn to_be_polled(&self, interest: Interest) -> Option<Interest> {
        let polled = Interest {
            read: interest.read && self.input == Input::Idle,
            write: interest.write,
        };
        // The ring reports a lost connection while it receives.
        let tells_nothing_new = interest.read && polled == Interest::NONE;
        (self.polled.is_some() || !tells_nothing_new).then_some(polled)
    }
}

/// A ring, and an epoll instance for the events that the ring cannot report.
pub(crate) struct IoUring {
    ring: Ring,
    epoll: Epoll,
    /// True while the ring polls the epoll instance.
    polls: bool,
}

impl IoUring {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            ring: Ring::new(&Setup::default())?,
            epoll: Epoll::new()?,
            polls: false,
        })
    }

    pub(super) fn update(
        &mut self,
        source: Source,
        socket: BorrowedFd<'_>,
        token: u64,
        state: &mut State,
        interest: Interest,
    ) -> io::Result<()> {
        match (interest.read && !state.is_bulk, state.input) {
            (true, Input::Idle) => {
                state.input = Input::Started;
                match source {
                    Source::Listener => self.ring.accept(socket, token),
                    Source::Socket => self.ring.receive(socket, token),
                    Source::Wake => self.ring.poll(socket, token),
                }
            }
            (false, Input::Started) => {
                state.input = Input::Cancelled;
                self.cancel(source, token);
            }
            _ => {}
        }
        let polled = state.to_be_polled(interest);
        if polled != state.polled && source == Source::Socket {
            self.poll(socket, token, state.polled, polled)?;
            state.polled = polled;
        }
        Ok(())
    }

    pub(super) fn close(&mut self, source: Source, socket: OwnedFd, token: u64, state: &State) {
        if state.input == Input::Started {
            self.cancel(source, token);
        }
        self.ring.close(socket);
    }

    pub(super) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        if !self.polls {
            self.ring.poll(self.epoll.as_fd(), EPOLL);
            self.polls = true;
        }
        self.ring.submit_and_wait(timeout)
    }

    #[inline]
    pub(super) fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.epoll.next() {
                return Some(event);
            }
            let event = match self.ring.next_completion()? {
                Completion::Received {
                    token,
                    received,
                    more,
                } => Event {
                    token,
                    kind: received_as(received),
                    is_over: !more,
                },
                Completion::Polled { token: EPOLL } => {
                    self.polls = false;
                    match self.epoll.wait(Some(Duration::ZERO)) {
                        Ok(()) => continue,
                        Err(error) => Event {
                            token: EPOLL,
                            kind: EventKind::Failed(error),
                            is_over: true,
                        },
                    }
                }
                other => event_of(other)?,
            };
            return Some(event);
        }
    }

    /// Returns where the next `bytes` bytes of output go.
    pub(super) fn outlet(
        &mut self,
        socket: BorrowedFd<'_>,
        token: u64,
        state: &mut State,
        bytes: usize,
    ) -> Outlet<'_> {
        if let Some(key) = state.sending {
            match self.ring.sending(key, token) {
                Sending::Over => {}
                Sending::Queued if self.queued_bytes(key, token) + bytes <= QUEUED_BYTES_MAX => {
                    return self.queue(key, token);
                }
                Sending::Queued | Sending::Unsure => return Outlet::Backlog,
            }
            state.sending = None;
        }
        if bytes > QUEUED_BYTES_MAX {
            return Outlet::Socket;
        }
        // If this fails, the next wait fails as well and reports why.
        if self.ring.queued_sends() >= QUEUED_MAX && self.ring.submit().is_err() {
            return Outlet::Socket;
        }
        let memory = self.ring.memory();
        let key = self.ring.send(socket, token, memory);
        state.sending = Some(key);
        self.queue(key, token)
    }

    pub(super) fn send_queued(&mut self) {
        // If this fails, the next wait fails as well and reports why.
        _ = self.ring.submit();
    }

    /// Removes and returns the queued output. Fails if the kernel may already be sending it.
    pub(super) fn withdraw(
        &mut self,
        token: u64,
        state: &mut State,
    ) -> Result<Option<Vec<u8>>, InFlight> {
        let Some(key) = state.sending else {
            return Ok(None);
        };
        if self.ring.sending(key, token) == Sending::Unsure {
            return Err(InFlight);
        }
        state.sending = None;
        Ok(self.ring.withdraw(key, token))
    }

    pub(super) fn give_back(&mut self, memory: Vec<u8>) {
        self.ring.give_back(memory);
    }

    fn queue(&mut self, key: SendKey, token: u64) -> Outlet<'_> {
        match self.ring.queued_send(key, token) {
            Some(memory) => Outlet::Queue(memory),
            None => Outlet::Backlog,
        }
    }

    fn queued_bytes(&mut self, key: SendKey, token: u64) -> usize {
        let queued = self.ring.queued_send(key, token);
        queued.map_or(0, |bytes| bytes.len())
    }

    fn cancel(&mut self, source: Source, token: u64) {
        match source {
            Source::Listener => self.ring.cancel_accept(token),
            Source::Socket => self.ring.cancel_receive(token),
            // These are always watched.
            Source::Wake => {}
        }
    }

    fn poll(
        &self,
        socket: BorrowedFd<'_>,
        token: u64,
        before: Option<Interest>,
        polled: Option<Interest>,
    ) -> io::Result<()> {
        match (before, polled) {
            (None, Some(interest)) => self.epoll.add(socket, token, interest),
            (_, Some(interest)) => self.epoll.modify(socket, token, interest),
            (_, None) => Ok(()),
        }
    }
}

/// Returns the event for an operation that is not a receive.
fn event_of(completion: Completion) -> Option<Event> {
    Some(match completion {
        Completion::Accepted {
            token,
            accepted,
            more,
        } => Event {
            token,
            kind: match socket::accepted(accepted.map_err(errno)) {
                Ok(Accepted::Connection(socket)) => EventKind::Connection(socket),
                Ok(Accepted::Nothing) => EventKind::Nothing,
                Ok(Accepted::Shortage) => EventKind::Shortage,
                Err(error) => EventKind::Failed(error),
            },
            is_over: !more,
        },
        Completion::Polled { token } => Event {
            token,
            kind: EventKind::Ready {
                read: true,
                write: false,
                lost: false,
            },
            is_over: true,
        },
        Completion::Unsent { token, sent, bytes } => Event {
            token,
            kind: match sent.map_err(errno) {
                Ok(sent) => EventKind::Unsent(bytes, sent),
                Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS | Errno::NOMEM) => {
                    EventKind::Unsent(bytes, 0)
                }
                Err(_) => EventKind::Lost,
            },
            is_over: false,
        },
        _ => return None,
    })
}

#[inline]
fn received_as(received: io::Result<Option<linerate_uring::Input>>) -> EventKind {
    match received {
        Ok(Some(input)) => EventKind::Input(input),
        Ok(None) => EventKind::End,
        Err(error) => match errno(error) {
            // Buffers become free again once their content has been processed.
            Errno::NOBUFS | Errno::CANCELED | Errno::AGAIN | Errno::INTR | Errno::NOMEM => {
                EventKind::Nothing
            }
            _ => EventKind::Lost,
        },
    }
}

fn errno(error: io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}
