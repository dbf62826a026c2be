//! The driver: learns from the kernel which sockets are ready (epoll).
//!
//! All that the rest of the crate knows of it is [`Driver`] and [`Ready`]. What is done with the
//! bytes of a read, and where output goes, does not depend on it.

use std::{
    io,
    os::fd::{BorrowedFd, OwnedFd},
    time::Duration,
};

use rustix::{
    event::{
        Timespec,
        epoll::{self, CreateFlags, Event, EventData, EventFlags},
    },
    io::Errno,
};

/// Events taken from the kernel at once.
const EVENTS: usize = 512;

/// What a connection waits for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Interest {
    /// Input.
    pub(crate) read: bool,
    /// Room for output.
    pub(crate) write: bool,
}

impl Interest {
    /// Input only.
    pub(crate) const READ: Self = Self {
        read: true,
        write: false,
    };

    /// Nothing; a connection that is lost is reported all the same.
    pub(crate) const NONE: Self = Self {
        read: false,
        write: false,
    };

    fn flags(self) -> EventFlags {
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN, self.read);
        flags.set(EventFlags::OUT, self.write);
        flags
    }
}

/// A socket that is ready.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    /// What the socket was added with.
    pub(crate) token: u64,
    /// There is input, or the end of it.
    pub(crate) read: bool,
    /// There is room for output.
    pub(crate) write: bool,
    /// The connection is lost.
    pub(crate) lost: bool,
}

/// An epoll instance, level-triggered.
pub(crate) struct Driver {
    epoll: OwnedFd,
    events: Vec<Event>,
}

impl Driver {
    pub(crate) fn new() -> io::Result<Self> {
        let nothing = Event {
            flags: EventFlags::empty(),
            data: EventData::new_u64(0),
        };
        Ok(Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            events: vec![nothing; EVENTS],
        })
    }

    /// Watches `socket` from now on, until it is closed.
    pub(crate) fn add(
        &self,
        socket: BorrowedFd<'_>,
        token: u64,
        interest: Interest,
    ) -> io::Result<()> {
        let data = EventData::new_u64(token);
        Ok(epoll::add(&self.epoll, socket, data, interest.flags())?)
    }

    /// Changes what `socket` waits for.
    pub(crate) fn modify(
        &self,
        socket: BorrowedFd<'_>,
        token: u64,
        interest: Interest,
    ) -> io::Result<()> {
        let data = EventData::new_u64(token);
        Ok(epoll::modify(&self.epoll, socket, data, interest.flags())?)
    }

    /// Waits until a socket is ready or `timeout` has passed; returns how many are.
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<usize> {
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: timeout.as_secs() as _,
            tv_nsec: timeout.subsec_nanos().into(),
        });
        match epoll::wait(&self.epoll, &mut self.events[..], timeout.as_ref()) {
            Ok(ready) => Ok(ready),
            Err(Errno::INTR) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns one of the sockets that the last wait found ready.
    #[inline]
    pub(crate) fn ready(&self, index: usize) -> Ready {
        let Event { flags, data } = self.events[index];
        Ready {
            token: data.u64(),
            read: flags.intersects(EventFlags::IN),
            write: flags.intersects(EventFlags::OUT),
            lost: flags.intersects(EventFlags::ERR | EventFlags::HUP),
        }
    }
}
