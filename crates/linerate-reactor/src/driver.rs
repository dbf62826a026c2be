//! The driver: the interface between a worker and the kernel for its sockets.
//!
//! This module contains everything that the rest of the crate knows about it. A driver watches
//! sockets as [`Interest`] says and reports [`Event`]s. How input is processed and what is sent do
//! not depend on the driver.

#[cfg(target_os = "linux")]
mod epoll;
pub(crate) mod event;
#[cfg_attr(not(target_os = "linux"), path = "driver/io_uring/absent.rs")]
mod io_uring;
pub(crate) mod kind;
mod portable;
pub(crate) mod socket;
pub(crate) mod waker;

#[cfg(target_os = "linux")]
use std::os::fd::AsFd;
#[cfg(unix)]
use std::os::fd::{AsRawFd, RawFd};
use std::{io, time::Duration};

#[cfg(target_os = "linux")]
use self::{epoll::Epoll, io_uring::IoUring};
use self::{
    event::{Event, InFlight, Interest, Outlet, Source},
    kind::DriverKind,
    portable::Portable,
    waker::Waker,
};
use crate::platform::Socket;

/// The driver's state of a socket, stored with the socket.
#[derive(Debug)]
pub(crate) struct Watch {
    source: Source,
    /// True if other processes may have descriptors of the socket.
    #[cfg(unix)]
    is_shared: bool,
    /// What a driver that reports readiness waits for; `None` after an event that has ended this.
    interest: Option<Interest>,
    /// The state that the io_uring driver needs.
    state: io_uring::State,
}

impl Watch {
    /// Records that other processes may have descriptors of the socket.
    #[cfg(unix)]
    pub(crate) const fn share(&mut self) {
        self.is_shared = true;
    }

    /// Returns whether the kernel may still watch the socket after our descriptor is closed. It
    /// stops when the last descriptor is closed, but other workers and the program that opened a
    /// listener may have more of them, and so may the process that exported a connection.
    #[cfg(unix)]
    fn outlives_close(&self) -> bool {
        self.is_shared || self.source == Source::Listener
    }

    /// Records that the operation that waits for input has ended, as reported by an [`Event`].
    pub(crate) fn input_is_over(&mut self) {
        self.interest = None;
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

/// The methods of [`Driver`] that each driver implements. The defaults are for drivers that only
/// report which sockets are ready, so that no output is ever queued.
trait Drive {
    fn add(
        &mut self,
        socket: &Socket,
        token: u64,
        watch: &mut Watch,
        interest: Interest,
    ) -> io::Result<()>;

    fn update(
        &mut self,
        socket: &Socket,
        token: u64,
        watch: &mut Watch,
        interest: Interest,
    ) -> io::Result<()>;

    fn close(&mut self, socket: Socket, token: u64, watch: &Watch);

    /// A ring cannot give up a socket, because it may be reading from it.
    #[cfg(unix)]
    fn release(&mut self, _socket: &Socket) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn add_waker(&mut self, token: u64) -> io::Result<Waker>;

    fn renew_waker(&mut self, _waker: &Waker, _token: u64) {}

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()>;

    fn next(&mut self) -> Option<Event>;

    fn has_found_all(&self) -> bool {
        true
    }

    #[inline]
    fn outlet(
        &mut self,
        _socket: &Socket,
        _token: u64,
        _: &mut Watch,
        _bytes: usize,
    ) -> Outlet<'_> {
        Outlet::Socket
    }

    fn send_queued(&mut self) {}

    fn give_back(&mut self, _memory: Vec<u8>) {}

    fn withdraw(&mut self, _token: u64, _: &mut Watch) -> Result<Option<Vec<u8>>, InFlight> {
        Ok(None)
    }
}

/// The driver of a worker.
pub(crate) enum Driver {
    #[cfg(target_os = "linux")]
    Epoll(Epoll),
    #[cfg(target_os = "linux")]
    IoUring(Box<IoUring>),
    Portable(Portable),
}

/// Calls a method of the driver that is in use.
macro_rules! call {
    ($driver:expr, $method:ident $arguments:tt) => {
        match $driver {
            #[cfg(target_os = "linux")]
            Driver::Epoll(epoll) => epoll.$method $arguments,
            #[cfg(target_os = "linux")]
            Driver::IoUring(uring) => uring.$method $arguments,
            Driver::Portable(portable) => portable.$method $arguments,
        }
    };
}

impl Driver {
    /// Creates a driver.
    pub(crate) fn new(kind: DriverKind) -> io::Result<Self> {
        Ok(match kind {
            #[cfg(target_os = "linux")]
            DriverKind::Epoll => Self::Epoll(Epoll::new()?),
            #[cfg(target_os = "linux")]
            DriverKind::IoUring => Self::IoUring(Box::new(IoUring::new()?)),
            #[cfg(not(target_os = "linux"))]
            DriverKind::Epoll | DriverKind::IoUring => return Err(kind.needs("Linux")),
            DriverKind::Portable => Self::Portable(Portable::new()?),
        })
    }

    /// Starts to watch `socket`, until it is [closed](Self::close).
    pub(crate) fn add(
        &mut self,
        source: Source,
        socket: &Socket,
        token: u64,
        interest: Interest,
    ) -> io::Result<Watch> {
        let mut watch = Watch {
            source,
            #[cfg(unix)]
            is_shared: false,
            interest: Some(interest),
            state: Default::default(),
        };
        call!(self, add(socket, token, &mut watch, interest))?;
        Ok(watch)
    }

    /// Changes what `socket` waits for, unless `interest` is the same as before.
    #[inline]
    pub(crate) fn update(
        &mut self,
        socket: &Socket,
        token: u64,
        watch: &mut Watch,
        interest: Interest,
    ) -> io::Result<()> {
        call!(self, update(socket, token, watch, interest))
    }

    /// Closes a socket that was added, after all queued output.
    pub(crate) fn close(&mut self, socket: Socket, token: u64, watch: &Watch) {
        call!(self, close(socket, token, watch));
    }

    /// Stops watching a socket that was added, and leaves it open.
    ///
    /// # Errors
    /// If the driver is io_uring.
    #[cfg(unix)]
    pub(crate) fn release(&mut self, socket: &Socket) -> io::Result<()> {
        call!(self, release(socket))
    }

    /// Returns what other threads use to wake the worker, which is reported as an event with
    /// `token`. To be called once.
    pub(crate) fn add_waker(&mut self, token: u64) -> io::Result<Waker> {
        call!(self, add_waker(token))
    }

    /// Watches the waker again, after an event with [`Event::is_over`].
    pub(crate) fn renew_waker(&mut self, waker: &Waker, token: u64) {
        call!(self, renew_waker(waker, token));
    }

    /// Sends queued output and waits until there are events or `timeout` has passed.
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        call!(self, wait(timeout))
    }

    /// Returns the next event that the last wait has found.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Event> {
        call!(self, next())
    }

    /// Returns where the next `bytes` bytes of output go.
    #[inline]
    pub(crate) fn outlet(
        &mut self,
        socket: &Socket,
        token: u64,
        watch: &mut Watch,
        bytes: usize,
    ) -> Outlet<'_> {
        call!(self, outlet(socket, token, watch, bytes))
    }

    /// Returns the descriptor that is readable while there are events. A ring has none: its
    /// descriptor does not become readable in all cases.
    #[cfg(unix)]
    pub(crate) fn descriptor(&self) -> Option<RawFd> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Epoll(epoll) => Some(epoll.as_fd().as_raw_fd()),
            #[cfg(target_os = "linux")]
            Self::IoUring(_) => None,
            Self::Portable(portable) => Some(portable.as_raw_fd()),
        }
    }

    /// Returns whether there was nothing ready beyond what the last wait has found and
    /// [`next`](Self::next) has returned.
    pub(crate) fn has_found_all(&self) -> bool {
        call!(self, has_found_all())
    }

    /// Sends queued output without waiting for the end of the turn.
    pub(crate) fn send_queued(&mut self) {
        call!(self, send_queued());
    }

    /// Takes back the memory of output that was withdrawn.
    pub(crate) fn give_back(&mut self, memory: Vec<u8>) {
        call!(self, give_back(memory));
    }

    /// Removes and returns the queued output, if there is any. Fails if the kernel is already
    /// sending it.
    pub(crate) fn withdraw(
        &mut self,
        token: u64,
        watch: &mut Watch,
    ) -> Result<Option<Vec<u8>>, InFlight> {
        call!(self, withdraw(token, watch))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::{TcpListener, TcpStream},
    };

    use super::*;
    use crate::driver::event::EventKind;

    /// Returns a driver of each kind that this machine has.
    fn drivers() -> impl Iterator<Item = (DriverKind, Driver)> {
        let kinds = DriverKind::ALL.into_iter();
        let available = kinds.filter(|kind| kind.check().is_ok());
        available.map(|kind| (kind, Driver::new(kind).unwrap()))
    }

    #[test]
    fn a_closed_listener_is_not_watched_even_if_others_have_a_descriptor() {
        for (kind, mut driver) in drivers() {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            listener.set_nonblocking(true).unwrap();
            let shared = Socket::from(listener.try_clone().unwrap());
            let watch = driver.add(Source::Listener, &shared, 1, Interest::READ);
            driver.close(shared, 1, &watch.unwrap());
            // Completions of the operation that io_uring has cancelled.
            driver.wait(Some(Duration::ZERO)).unwrap();
            while driver.next().is_some() {}
            let _waiting = TcpStream::connect(address).unwrap();
            driver.wait(Some(Duration::from_millis(20))).unwrap();
            assert!(driver.next().is_none(), "{kind}");
        }
    }

    #[test]
    fn a_waker_wakes_the_driver_each_time() {
        for (kind, mut driver) in drivers() {
            let waker = driver.add_waker(7).unwrap();
            for _ in 0..3 {
                waker.wake().unwrap();
                driver.wait(Some(linerate_testkit::PATIENCE)).unwrap();
                let event = driver.next().unwrap();
                assert_eq!(event.token, 7, "{kind}");
                waker.reset();
                if event.is_over {
                    driver.renew_waker(&waker, 7);
                }
                driver.wait(Some(Duration::ZERO)).unwrap();
                assert!(driver.next().is_none(), "{kind}");
            }
        }
    }

    /// Drivers that report readiness do so until all input has been read. One that waits for
    /// nothing does not spin, and still learns that the connection is lost.
    #[test]
    fn input_is_reported_until_it_is_read_and_a_loss_always() {
        for (kind, mut driver) in drivers() {
            if kind == DriverKind::IoUring {
                continue;
            }
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let mut stream = listener.accept().unwrap().0;
            let socket = Socket::from(stream.try_clone().unwrap());
            let added = driver.add(Source::Socket, &socket, 7, Interest::READ);
            let mut watch = added.unwrap();
            peer.write_all(b"Spam").unwrap();
            let mut next = |driver: &mut Driver, interest: Interest, timeout| {
                driver.update(&socket, 7, &mut watch, interest).unwrap();
                driver.wait(Some(timeout)).unwrap();
                let event = driver.next()?;
                if event.is_over {
                    watch.input_is_over();
                }
                Some(event.kind)
            };
            let patience = linerate_testkit::PATIENCE;
            for _ in 0..2 {
                let ready = next(&mut driver, Interest::READ, patience);
                let is_readable = matches!(ready, Some(EventKind::Ready { read: true, .. }));
                assert!(is_readable, "{kind}: {ready:?}");
                stream.read_exact(&mut [0; 2]).unwrap();
            }
            let quiet = next(&mut driver, Interest::READ, Duration::ZERO);
            assert!(quiet.is_none(), "{kind}: {quiet:?}");
            let ready = next(&mut driver, Interest::WRITE, patience);
            let is_writable = matches!(ready, Some(EventKind::Ready { write: true, .. }));
            assert!(is_writable, "{kind}: {ready:?}");
            // A driver may report once more what it has waited for before.
            peer.write_all(b"Spam").unwrap();
            next(&mut driver, Interest::NONE, Duration::ZERO);
            let quiet = next(&mut driver, Interest::NONE, Duration::ZERO);
            assert!(quiet.is_none(), "{kind}: {quiet:?}");
            socket2::SockRef::from(&peer)
                .set_linger(Some(Duration::ZERO))
                .unwrap();
            drop(peer);
            let lost = next(&mut driver, Interest::NONE, patience);
            let is_lost = matches!(lost, Some(EventKind::Ready { lost: true, .. }));
            assert!(is_lost, "{kind}: {lost:?}");
        }
    }
}
