//! The epoll driver: the kernel reports which sockets are ready.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Duration,
};

use rustix::{
    event::{
        Timespec,
        epoll::{self, CreateFlags, EventData, EventFlags},
    },
    io::Errno,
};

use super::event::{Event, EventKind, Interest};

/// Maximum number of events taken from the kernel at once.
const EVENTS: usize = 512;

/// A level-triggered epoll instance.
pub(crate) struct Epoll {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
    /// The number of events, and the index of the next one.
    ready: usize,
    next: usize,
}

impl Epoll {
    pub(super) fn new() -> io::Result<Self> {
        let nothing = epoll::Event {
            flags: EventFlags::empty(),
            data: EventData::new_u64(0),
        };
        Ok(Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            events: vec![nothing; EVENTS],
            ready: 0,
            next: 0,
        })
    }

    pub(super) fn add(
        &self,
        socket: BorrowedFd<'_>,
        token: u64,
        interest: Interest,
    ) -> io::Result<()> {
        let data = EventData::new_u64(token);
        Ok(epoll::add(&self.epoll, socket, data, flags(interest))?)
    }

    pub(super) fn modify(
        &self,
        socket: BorrowedFd<'_>,
        token: u64,
        interest: Interest,
    ) -> io::Result<()> {
        let data = EventData::new_u64(token);
        Ok(epoll::modify(&self.epoll, socket, data, flags(interest))?)
    }

    pub(super) fn delete(&self, socket: BorrowedFd<'_>) {
        // This cannot fail: the socket was added.
        _ = epoll::delete(&self.epoll, socket);
    }

    pub(super) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: timeout.as_secs() as _,
            tv_nsec: timeout.subsec_nanos().into(),
        });
        self.next = 0;
        self.ready = match epoll::wait(&self.epoll, &mut self.events[..], timeout.as_ref()) {
            Ok(ready) => ready,
            Err(Errno::INTR) => 0,
            Err(error) => return Err(error.into()),
        };
        Ok(())
    }

    #[inline]
    pub(super) fn next(&mut self) -> Option<Event> {
        let epoll::Event { flags, data } = *self.events[..self.ready].get(self.next)?;
        self.next += 1;
        Some(Event {
            token: data.u64(),
            kind: EventKind::Ready {
                // Reading reports why the connection was lost.
                read: flags.intersects(EventFlags::IN | EventFlags::ERR | EventFlags::HUP),
                write: flags.intersects(EventFlags::OUT),
                lost: flags.intersects(EventFlags::ERR | EventFlags::HUP),
            },
            is_over: false,
        })
    }
}

impl AsFd for Epoll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

fn flags(interest: Interest) -> EventFlags {
    let mut flags = EventFlags::empty();
    flags.set(EventFlags::IN, interest.read);
    flags.set(EventFlags::OUT, interest.write);
    flags
}
