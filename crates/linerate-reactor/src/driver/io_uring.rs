//! The driver on io_uring: the kernel accepts, receives and sends for a whole turn in one call.
//!
//! Input comes in the ring's buffers. Small outputs are collected and handed over when the worker
//! waits next; they are complete before that call waits, so that what fell short is known before
//! anything else is. Room for output and the loss of connections that are not read from are told
//! by an epoll instance, which the ring polls: io_uring's own polls end at once, whatever is asked,
//! when the peer has ended its stream.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Duration,
};

use linerate_uring::{Completion, Ring, SendKey, Sending, Setup};
use rustix::io::Errno;

use super::{Event, Interest, Outlet, Source, Watch, What, epoll::Epoll};
use crate::socket::{self, Accepted};

/// What the ring reports for the epoll instance; nothing else has this token.
const EPOLL: u64 = linerate_uring::TOKEN_MAX - 2;

/// Larger outputs are written at once: to copy them would cost more than the call that is saved.
const QUEUED_BYTES_MAX: usize = 8 << 10;

/// Outputs that wait for the end of the turn; what they say should still be in the cache then.
const QUEUED_MAX: usize = 256;

/// What this driver keeps of a socket.
#[derive(Debug, Default)]
pub(super) struct State {
    input: Input,
    polled: Polled,
    /// The last output that was queued; it may be over.
    sending: Option<SendKey>,
}

/// The operation that takes what arrives.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Input {
    #[default]
    Idle,
    Started,
    /// Started and cancelled; the last completion is still to come.
    Cancelled,
}

/// What the epoll instance waits for.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Polled {
    /// Nothing; it does not know the socket.
    #[default]
    Nothing,
    /// The loss of the connection.
    Loss,
    /// Room for output, or the loss.
    Room,
}

impl State {
    /// Learns that the operation that takes what arrives is over.
    pub(super) fn input_is_over(&mut self) {
        self.input = Input::Idle;
    }

    pub(super) const fn may_be_sending(&self) -> bool {
        self.sending.is_some()
    }
}

/// A ring, and an epoll instance for what it can't tell.
pub(crate) struct IoUring {
    ring: Ring,
    epoll: Epoll,
    /// Whether the ring polls the epoll instance.
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
        socket: BorrowedFd<'_>,
        token: u64,
        watch: &mut Watch,
        interest: Interest,
    ) -> io::Result<()> {
        let state = &mut watch.state;
        match (interest.read, state.input) {
            (true, Input::Idle) => {
                state.input = Input::Started;
                match watch.source {
                    Source::Listener => self.ring.accept(socket, token),
                    Source::Socket => self.ring.receive(socket, token),
                    Source::Wake => self.ring.poll(socket, token),
                }
            }
            (false, Input::Started) => {
                state.input = Input::Cancelled;
                self.cancel(watch.source, token);
            }
            _ => {}
        }
        let polled = match (interest.read, interest.write) {
            (_, true) => Polled::Room,
            (true, false) if watch.state.polled == Polled::Nothing => Polled::Nothing,
            (_, false) => Polled::Loss,
        };
        if polled != watch.state.polled && watch.source == Source::Socket {
            self.poll(socket, token, watch.state.polled, polled)?;
            watch.state.polled = polled;
        }
        Ok(())
    }

    pub(super) fn close(&mut self, socket: OwnedFd, token: u64, watch: &Watch) {
        if watch.state.input == Input::Started {
            self.cancel(watch.source, token);
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
            if let Some(event) = self.next_polled() {
                return Some(event);
            }
            let event = match self.ring.next_completion()? {
                Completion::Received {
                    token,
                    received,
                    more,
                } => Event {
                    token,
                    what: received_as(received),
                    is_over: !more,
                },
                Completion::Polled { token: EPOLL } => {
                    self.polls = false;
                    match self.epoll.wait(Some(Duration::ZERO)) {
                        Ok(()) => continue,
                        Err(error) => Event {
                            token: EPOLL,
                            what: What::Failed(error),
                            is_over: true,
                        },
                    }
                }
                other => event_of(other)?,
            };
            return Some(event);
        }
    }

    /// Returns where `bytes` bytes of output go now.
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
        // If that fails, waiting does too, and says why.
        if self.ring.queued_sends() >= QUEUED_MAX && self.ring.submit().is_err() {
            return Outlet::Socket;
        }
        let memory = self.ring.memory();
        let key = self.ring.send(socket, token, memory);
        state.sending = Some(key);
        self.queue(key, token)
    }

    pub(super) fn send_queued(&mut self) {
        // If that fails, waiting does too, and says why.
        _ = self.ring.submit();
    }

    /// Takes back what is queued. Fails if it is too late for that.
    pub(super) fn withdraw(
        &mut self,
        token: u64,
        state: &mut State,
    ) -> Result<Option<Vec<u8>>, super::InFlight> {
        let Some(key) = state.sending else {
            return Ok(None);
        };
        if self.ring.sending(key, token) == Sending::Unsure {
            return Err(super::InFlight);
        }
        state.sending = None;
        Ok(self.ring.withdraw(key, token))
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
            // Nobody ever stops listening to these.
            Source::Wake => {}
        }
    }

    fn poll(
        &self,
        socket: BorrowedFd<'_>,
        token: u64,
        before: Polled,
        polled: Polled,
    ) -> io::Result<()> {
        let interest = Interest {
            read: false,
            write: polled == Polled::Room,
        };
        if before == Polled::Nothing {
            self.epoll.add(socket, token, interest)
        } else {
            self.epoll.modify(socket, token, interest)
        }
    }

    /// Returns what the epoll instance has reported. That there is input is the ring's to say.
    #[inline]
    fn next_polled(&mut self) -> Option<Event> {
        let mut event = self.epoll.next()?;
        if let What::Ready { read, .. } = &mut event.what {
            *read = false;
        }
        Some(event)
    }
}

/// Returns what the rest of the crate hears of an operation that is not a receive.
fn event_of(completion: Completion) -> Option<Event> {
    Some(match completion {
        Completion::Accepted {
            token,
            accepted,
            more,
        } => Event {
            token,
            what: match socket::accepted(accepted.map_err(errno)) {
                Ok(Accepted::Connection(socket)) => What::Connection(socket),
                Ok(Accepted::Nothing) => What::Nothing,
                Ok(Accepted::Shortage) => What::Shortage,
                Err(error) => What::Failed(error),
            },
            is_over: !more,
        },
        Completion::Polled { token } => Event {
            token,
            what: What::Ready {
                read: true,
                write: false,
                lost: false,
            },
            is_over: true,
        },
        Completion::Unsent { token, sent, bytes } => Event {
            token,
            what: match sent.map_err(errno) {
                Ok(sent) => What::Unsent(bytes, sent),
                Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS | Errno::NOMEM) => {
                    What::Unsent(bytes, 0)
                }
                Err(_) => What::Lost,
            },
            is_over: false,
        },
        _ => return None,
    })
}

#[inline]
fn received_as(received: io::Result<Option<linerate_uring::Input>>) -> What {
    match received {
        Ok(Some(input)) => What::Input(input),
        Ok(None) => What::End,
        Err(error) => match errno(error) {
            // Buffers are free again once what they hold has been looked at.
            Errno::NOBUFS | Errno::CANCELED | Errno::AGAIN | Errno::INTR | Errno::NOMEM => {
                What::Nothing
            }
            _ => What::Lost,
        },
    }
}

fn errno(error: io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}
