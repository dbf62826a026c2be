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

use std::{io, os::fd::AsFd, time::Duration};

use linerate_uring::{Completion, Input, Ring, SendKey, Sending, Setup};
use rustix::io::Errno;

use super::{
    Drive, Watch,
    epoll::Epoll,
    event::{Event, EventKind, InFlight, Interest, Outlet, Source, TOKEN_MAX},
    socket::{self, Accepted, errno},
    waker::{self, Waker},
};
use crate::platform::Socket;

/// The token that the ring reports for the epoll instance; nothing else uses it.
const EPOLL: u64 = TOKEN_MAX - 2;

const _: () = assert!(TOKEN_MAX <= linerate_uring::TOKEN_MAX);

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
    receiving: Receiving,
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
enum Receiving {
    #[default]
    Idle,
    Started,
    /// Started and cancelled; the last completion has not arrived yet.
    Cancelled,
}

impl State {
    /// Records that the operation that receives input has ended.
    pub(super) fn input_is_over(&mut self) {
        self.receiving = Receiving::Idle;
    }

    /// Returns whether an operation receives input, so that the socket must not be read directly.
    pub(super) fn is_receiving(&self) -> bool {
        self.receiving != Receiving::Idle
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
            read: interest.read && self.receiving == Receiving::Idle,
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
        }
    }

    fn poll(
        &self,
        socket: &Socket,
        token: u64,
        before: Option<Interest>,
        polled: Option<Interest>,
    ) -> io::Result<()> {
        match (before, polled) {
            (None, Some(interest)) => self.epoll.watch(socket, token, interest),
            (_, Some(interest)) => self.epoll.modify(socket, token, interest),
            (_, None) => Ok(()),
        }
    }
}

impl Drive for IoUring {
    fn add(
        &mut self,
        socket: &Socket,
        token: u64,
        watch: &mut Watch,
        interest: Interest,
    ) -> io::Result<()> {
        self.update(socket, token, watch, interest)
    }

    fn update(
        &mut self,
        socket: &Socket,
        token: u64,
        watch: &mut Watch,
        interest: Interest,
    ) -> io::Result<()> {
        let Watch { source, state, .. } = watch;
        match (interest.read && !state.is_bulk, state.receiving) {
            (true, Receiving::Idle) => {
                state.receiving = Receiving::Started;
                match source {
                    Source::Listener => self.ring.accept(socket.as_fd(), token),
                    Source::Socket => self.ring.receive(socket.as_fd(), token),
                }
            }
            (false, Receiving::Started) => {
                state.receiving = Receiving::Cancelled;
                self.cancel(*source, token);
            }
            _ => {}
        }
        let polled = state.to_be_polled(interest);
        if polled != state.polled && *source == Source::Socket {
            self.poll(socket, token, state.polled, polled)?;
            state.polled = polled;
        }
        Ok(())
    }

    fn close(&mut self, socket: Socket, token: u64, watch: &Watch) {
        if watch.state.receiving == Receiving::Started {
            self.cancel(watch.source, token);
        }
        self.ring.close(socket);
    }

    fn add_waker(&mut self, token: u64) -> io::Result<Waker> {
        let waker = Waker::EventFd(waker::event_fd()?);
        self.renew_waker(&waker, token);
        Ok(waker)
    }

    fn renew_waker(&mut self, waker: &Waker, token: u64) {
        if let Waker::EventFd(counter) = waker {
            self.ring.poll(counter.as_fd(), token);
        }
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        if !self.polls {
            self.ring.poll(self.epoll.as_fd(), EPOLL);
            self.polls = true;
        }
        self.ring.submit_and_wait(timeout)
    }

    #[inline]
    fn next(&mut self) -> Option<Event> {
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

    fn outlet(
        &mut self,
        socket: &Socket,
        token: u64,
        watch: &mut Watch,
        bytes: usize,
    ) -> Outlet<'_> {
        let state = &mut watch.state;
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
        let key = self.ring.send(socket.as_fd(), token, memory);
        state.sending = Some(key);
        self.queue(key, token)
    }

    fn send_queued(&mut self) {
        // If this fails, the next wait fails as well and reports why.
        _ = self.ring.submit();
    }

    fn give_back(&mut self, memory: Vec<u8>) {
        self.ring.give_back(memory);
    }

    fn withdraw(&mut self, token: u64, watch: &mut Watch) -> Result<Option<Vec<u8>>, InFlight> {
        let state = &mut watch.state;
        let Some(key) = state.sending else {
            return Ok(None);
        };
        if self.ring.sending(key, token) == Sending::Unsure {
            return Err(InFlight);
        }
        state.sending = None;
        Ok(self.ring.withdraw(key, token))
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
fn received_as(received: io::Result<Option<Input>>) -> EventKind {
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
