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

use super::{
    Drive, Watch,
    event::{Event, EventKind, Interest},
    waker::{self, Waker},
};
use crate::platform::Socket;

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

    /// Starts to watch a socket or another descriptor.
    pub(super) fn watch(
        &self,
        descriptor: &OwnedFd,
        token: u64,
        interest: Interest,
    ) -> io::Result<()> {
        let data = EventData::new_u64(token);
        Ok(epoll::add(&self.epoll, descriptor, data, flags(interest))?)
    }

    pub(super) fn modify(
        &self,
        socket: &OwnedFd,
        token: u64,
        interest: Interest,
    ) -> io::Result<()> {
        let data = EventData::new_u64(token);
        Ok(epoll::modify(&self.epoll, socket, data, flags(interest))?)
    }
}

impl Drive for Epoll {
    fn add(
        &mut self,
        socket: &Socket,
        token: u64,
        _: &mut Watch,
        interest: Interest,
    ) -> io::Result<()> {
        self.watch(socket, token, interest)
    }

    #[inline]
    fn update(
        &mut self,
        socket: &Socket,
        token: u64,
        watch: &mut Watch,
        interest: Interest,
    ) -> io::Result<()> {
        if watch.interest == Some(interest) {
            return Ok(());
        }
        watch.interest = Some(interest);
        self.modify(socket, token, interest)
    }

    fn close(&mut self, socket: Socket, _token: u64, watch: &Watch) {
        if watch.outlives_close() {
            // This cannot fail: the socket was added.
            _ = self.release(&socket);
        }
    }

    fn release(&mut self, socket: &Socket) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, socket)?)
    }

    fn add_waker(&mut self, token: u64) -> io::Result<Waker> {
        let counter = waker::event_fd()?;
        self.watch(&counter, token, Interest::READ)?;
        Ok(Waker::EventFd(counter))
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
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

    fn has_found_all(&self) -> bool {
        self.ready < EVENTS && self.next == self.ready
    }

    #[inline]
    fn next(&mut self) -> Option<Event> {
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
