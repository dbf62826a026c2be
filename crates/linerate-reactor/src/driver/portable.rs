//! The portable driver: the library mio reports which sockets are ready, on every system.
//!
//! mio reports a change of readiness once. After each event, a socket is registered again if the
//! connection still waits for something; mio then checks its readiness, so that input that was not
//! read is reported again.

#[cfg_attr(windows, path = "portable/windows.rs")]
#[cfg_attr(unix, path = "portable/unix.rs")]
mod registry;

#[cfg(unix)]
use std::os::fd::{AsRawFd, RawFd};
use std::{collections::VecDeque, io, time::Duration};

use mio::{Events, Poll, Token};

use self::registry::Registry;
use super::{
    Drive, Watch,
    event::{Event, EventKind, Interest},
    waker::Waker,
};
use crate::platform::Socket;

/// Maximum number of events taken from the kernel at once.
const EVENTS: usize = 512;

/// An instance of the kernel's interface for readiness.
pub(crate) struct Portable {
    poll: Poll,
    registry: Registry,
    events: Events,
    ready: VecDeque<Event>,
    /// The number of events that the last wait has taken from the kernel.
    found: usize,
}

impl Portable {
    pub(super) fn new() -> io::Result<Self> {
        let poll = Poll::new()?;
        Ok(Self {
            registry: Registry::new(poll.registry())?,
            poll,
            events: Events::with_capacity(EVENTS),
            ready: VecDeque::with_capacity(EVENTS),
            found: 0,
        })
    }
}

impl Drive for Portable {
    fn add(
        &mut self,
        socket: &Socket,
        token: u64,
        watch: &mut Watch,
        interest: Interest,
    ) -> io::Result<()> {
        let interest = readiness(interest);
        self.registry
            .add(watch.source, socket, mio_token(token)?, interest)
    }

    fn update(
        &mut self,
        socket: &Socket,
        token: u64,
        watch: &mut Watch,
        interest: Interest,
    ) -> io::Result<()> {
        // A socket that waits for nothing stays as it is registered, for two reasons: mio then
        // still reports a lost connection, and it does not report anything else twice.
        if interest == Interest::NONE || watch.interest == Some(interest) {
            return Ok(());
        }
        watch.interest = Some(interest);
        let interest = readiness(interest);
        self.registry.modify(socket, mio_token(token)?, interest)
    }

    fn close(&mut self, socket: Socket, token: u64, watch: &Watch) {
        if let Ok(token) = mio_token(token) {
            self.registry.close(watch, socket, token);
        }
    }

    #[cfg(unix)]
    fn release(&mut self, socket: &Socket) -> io::Result<()> {
        self.registry.release(socket)
    }

    fn add_waker(&mut self, token: u64) -> io::Result<Waker> {
        let waker = mio::Waker::new(self.poll.registry(), mio_token(token)?)?;
        Ok(Waker::Portable(waker))
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        // What was not taken is not reported again.
        let timeout = match self.ready.is_empty() {
            true => timeout,
            false => Some(Duration::ZERO),
        };
        self.found = 0;
        match self.poll.poll(&mut self.events, timeout) {
            Ok(()) => {
                let before = self.ready.len();
                self.ready.extend(self.events.iter().map(event_of));
                self.found = self.ready.len() - before;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn has_found_all(&self) -> bool {
        self.found < EVENTS && self.ready.is_empty()
    }

    #[inline]
    fn next(&mut self) -> Option<Event> {
        self.ready.pop_front()
    }
}

#[cfg(unix)]
impl AsRawFd for Portable {
    fn as_raw_fd(&self) -> RawFd {
        self.poll.as_raw_fd()
    }
}

/// Returns the token for mio. This fails only on 32-bit systems, which do not have this driver.
fn mio_token(token: u64) -> io::Result<Token> {
    let unsupported = |_| io::ErrorKind::Unsupported.into();
    usize::try_from(token).map(Token).map_err(unsupported)
}

/// Returns what to register for. mio cannot wait for nothing at all.
fn readiness(interest: Interest) -> mio::Interest {
    match (interest.read, interest.write) {
        (_, false) => mio::Interest::READABLE,
        (false, true) => mio::Interest::WRITABLE,
        (true, true) => mio::Interest::READABLE | mio::Interest::WRITABLE,
    }
}

fn event_of(event: &mio::event::Event) -> Event {
    let lost = event.is_error() || event.is_write_closed();
    Event {
        token: event.token().0 as u64,
        kind: EventKind::Ready {
            // Reading reports why the connection was lost.
            read: event.is_readable() || event.is_read_closed() || lost,
            write: event.is_writable(),
            lost,
        },
        is_over: true,
    }
}
