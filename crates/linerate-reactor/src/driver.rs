//! The driver: the interface between a worker and the kernel for its sockets.
//!
//! This module contains everything that the rest of the crate knows about it. A driver watches
//! sockets as [`Interest`] says and reports [`Event`]s. How input is processed and what is sent do
//! not depend on the driver.

mod epoll;
pub(crate) mod event;
mod io_uring;
pub(crate) mod kind;
pub(crate) mod socket;

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Duration,
};

use self::{
    epoll::Epoll,
    event::{Event, InFlight, Interest, Outlet, Source},
    io_uring::IoUring,
    kind::DriverKind,
};

/// The driver's state of a socket, stored with the socket.
#[derive(Debug)]
pub(crate) struct Watch {
    source: Source,
    interest: Interest,
    /// The state that the io_uring driver needs.
    state: io_uring::State,
}

impl Watch {
    /// Records that the operation that waits for input has ended, as reported by an [`Event`].
    pub(crate) fn input_is_over(&mut self) {
        self.state.input_is_over();
    }

    /// Returns whether input arrives as `EventKind::Input`; the socket must then not be read
    /// directly.
    pub(crate) fn is_receiving(&self) -> bool {
        self.state.is_receiving()
    }

    /// Records how many bytes arrived at once, and whether they continue a message.
    #[inline]
    pub(crate) const fn learn(&mut self, bytes: usize, continues: bool) {
        self.state.learn(bytes, continues);
    }

    /// Returns whether output may be queued. If false, there certainly is none.
    #[inline]
    pub(crate) const fn may_be_sending(&self) -> bool {
        self.state.may_be_sending()
    }
}

/// The driver of a worker.
pub(crate) enum Driver {
    Epoll(Epoll),
    IoUring(Box<IoUring>),
}

impl Driver {
    /// Creates a driver.
    pub(crate) fn new(kind: DriverKind) -> io::Result<Self> {
        Ok(match kind {
            DriverKind::Epoll => Self::Epoll(Epoll::new()?),
            DriverKind::IoUring => Self::IoUring(Box::new(IoUring::new()?)),
        })
    }

    /// Starts to watch `socket`, until it is [closed](Self::close).
    pub(crate) fn add(
        &mut self,
        source: Source,
        socket: BorrowedFd<'_>,
        token: u64,
        interest: Interest,
    ) -> io::Result<Watch> {
        let mut watch = Watch {
            source,
            interest,
            state: io_uring::State::default(),
        };
        match self {
            Self::Epoll(epoll) => epoll.add(socket, token, interest)?,
            Self::IoUring(uring) => {
                uring.update(source, socket, token, &mut watch.state, interest)?
            }
        }
        Ok(watch)
    }

    /// Changes what `socket` waits for, unless `interest` is the same as before.
    #[inline]
    pub(crate) fn update(
        &mut self,
        socket: BorrowedFd<'_>,
        token: u64,
        watch: &mut Watch,
        interest: Interest,
    ) -> io::Result<()> {
        match self {
            Self::Epoll(_) if watch.interest == interest => Ok(()),
            Self::Epoll(epoll) => {
                watch.interest = interest;
                epoll.modify(socket, token, interest)
            }
            Self::IoUring(uring) => {
                uring.update(watch.source, socket, token, &mut watch.state, interest)
            }
        }
    }

    /// Closes a socket that was added, after all queued output.
    pub(crate) fn close(&mut self, socket: OwnedFd, token: u64, watch: &Watch) {
        match self {
            // Other workers and the program that opened the listener may still have descriptors.
            Self::Epoll(epoll) if watch.source == Source::Listener => {
                epoll.delete(socket.as_fd());
            }
            // epoll stops watching a socket when its last descriptor is closed.
            Self::Epoll(_) => drop(socket),
            Self::IoUring(uring) => uring.close(watch.source, socket, token, &watch.state),
        }
    }

    /// Sends queued output and waits until there are events or `timeout` has passed.
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Epoll(epoll) => epoll.wait(timeout),
            Self::IoUring(uring) => uring.wait(timeout),
        }
    }

    /// Returns the next event that the last wait has found.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Event> {
        match self {
            Self::Epoll(epoll) => epoll.next(),
            Self::IoUring(uring) => uring.next(),
        }
    }

    /// Returns where the next `bytes` bytes of output go.
    #[inline]
    pub(crate) fn outlet(
        &mut self,
        socket: BorrowedFd<'_>,
        token: u64,
        watch: &mut Watch,
        bytes: usize,
    ) -> Outlet<'_> {
        match self {
            Self::Epoll(_) => Outlet::Socket,
            Self::IoUring(uring) => uring.outlet(socket, token, &mut watch.state, bytes),
        }
    }

    /// Sends queued output without waiting for the end of the turn.
    pub(crate) fn send_queued(&mut self) {
        match self {
            Self::Epoll(_) => {}
            Self::IoUring(uring) => uring.send_queued(),
        }
    }

    /// Takes back the memory of output that was withdrawn.
    pub(crate) fn give_back(&mut self, memory: Vec<u8>) {
        if let Self::IoUring(uring) = self {
            uring.give_back(memory);
        }
    }

    /// Removes and returns the queued output, if there is any. Fails if the kernel is already
    /// sending it.
    pub(crate) fn withdraw(
        &mut self,
        token: u64,
        watch: &mut Watch,
    ) -> Result<Option<Vec<u8>>, InFlight> {
        match self {
            Self::Epoll(_) => Ok(None),
            Self::IoUring(uring) => uring.withdraw(token, &mut watch.state),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_available_kind_has_a_driver() {
        for kind in DriverKind::ALL {
            if kind.check().is_ok() {
                Driver::new(kind).unwrap();
            }
        }
    }

    #[test]
    fn a_closed_listener_is_not_watched_even_if_others_have_a_descriptor() {
        for kind in DriverKind::ALL {
            if kind.check().is_err() {
                continue;
            }
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            listener.set_nonblocking(true).unwrap();
            let shared = OwnedFd::from(listener.try_clone().unwrap());
            let mut driver = Driver::new(kind).unwrap();
            let watch = driver.add(Source::Listener, shared.as_fd(), 1, Interest::READ);
            driver.close(shared, 1, &watch.unwrap());
            // Completions of the operation that io_uring has cancelled.
            driver.wait(Some(Duration::ZERO)).unwrap();
            while driver.next().is_some() {}
            let _waiting = std::net::TcpStream::connect(address).unwrap();
            driver.wait(Some(Duration::from_millis(20))).unwrap();
            assert!(driver.next().is_none(), "{kind}");
        }
    }
}
