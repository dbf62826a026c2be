//! The driver: the kernel's side of a worker's sockets.
//!
//! All that the rest of the crate knows of it is here: it waits for sockets as [`Interest`] says and
//! reports [`Event`]s. What is done with input, and what is sent, does not depend on it.

mod epoll;
mod io_uring;
pub(crate) mod socket;

use std::{
    fmt, io,
    os::fd::{BorrowedFd, OwnedFd},
    str::FromStr,
    time::Duration,
};

use linerate_uring::{Input, Ring, Setup};

use self::{epoll::Epoll, io_uring::IoUring};

/// How the reactor talks to the kernel.
///
/// ```
/// use linerate_reactor::DriverKind;
///
/// let kind: DriverKind = "epoll".parse()?;
/// assert_eq!(kind.to_string(), "epoll");
/// # Ok::<(), linerate_reactor::UnknownDriver>(())
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum DriverKind {
    /// The one that is the best for most: epoll. With one message in flight io_uring takes 4 to 7 %
    /// less of a core, but with many in flight up to 5 % more.
    #[default]
    Auto,
    /// epoll: tells which sockets are ready, and each read and write is a system call. On every
    /// Linux.
    Epoll,
    /// io_uring: one system call takes all that has arrived and sends all small outputs. On Linux
    /// 6.1 and later, where it is not forbidden.
    IoUring,
}

impl DriverKind {
    /// All kinds, in the order in which they are told.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Epoll, Self::IoUring];

    /// Returns the name, as it is displayed and parsed.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Epoll => "epoll",
            Self::IoUring => "io-uring",
        }
    }

    /// Returns the driver that is used if this one is asked for: itself, or what
    /// [`Auto`](Self::Auto) comes to on this machine.
    ///
    /// # Errors
    /// It can't be had; says what is missing.
    pub fn resolve(self) -> io::Result<Self> {
        match self {
            Self::Auto | Self::Epoll => Ok(Self::Epoll),
            Self::IoUring => {
                Ring::new(&Setup::default())?;
                Ok(Self::IoUring)
            }
        }
    }
}

impl fmt::Display for DriverKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for DriverKind {
    type Err = UnknownDriver;

    fn from_str(name: &str) -> Result<Self, UnknownDriver> {
        let mut all = Self::ALL.into_iter();
        all.find(|kind| kind.as_str() == name).ok_or(UnknownDriver)
    }
}

/// No driver has this name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UnknownDriver;

impl fmt::Display for UnknownDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no such driver; there are")?;
        for (number, kind) in DriverKind::ALL.into_iter().enumerate() {
            write!(f, "{}{kind}", if number == 0 { " " } else { ", " })?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownDriver {}

/// What a socket waits for.
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

    /// Room for output only.
    pub(crate) const WRITE: Self = Self {
        read: false,
        write: true,
    };

    /// Nothing; a connection that is lost is reported all the same.
    pub(crate) const NONE: Self = Self {
        read: false,
        write: false,
    };
}

/// Tokens are at most this.
pub(crate) const TOKEN_MAX: u64 = linerate_uring::TOKEN_MAX;

/// What a driver waits for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Source {
    Listener,
    Socket,
    /// An eventfd, always waited for.
    Wake,
}

/// What the driver keeps of a socket, next to it.
#[derive(Debug)]
pub(crate) struct Watch {
    source: Source,
    interest: Interest,
    /// What the driver on io_uring keeps.
    state: io_uring::State,
}

impl Watch {
    /// Learns from an [`Event`] that what waits for it is over.
    pub(crate) fn input_is_over(&mut self) {
        self.state.input_is_over();
    }

    /// Returns whether input comes by [`What::Input`], so that it must not be read otherwise.
    pub(crate) fn is_receiving(&self) -> bool {
        self.state.is_receiving()
    }

    /// Learns how many bytes arrived at once, and whether they go on with a message.
    #[inline]
    pub(crate) const fn learn(&mut self, bytes: usize, goes_on: bool) {
        self.state.learn(bytes, goes_on);
    }

    /// Returns whether output may be queued; if not, there certainly is none.
    #[inline]
    pub(crate) const fn may_be_sending(&self) -> bool {
        self.state.may_be_sending()
    }
}

/// What has happened to a socket.
#[derive(Debug)]
pub(crate) struct Event {
    /// What the socket was added with.
    pub(crate) token: u64,
    pub(crate) what: What,
    /// What waits for the socket has to be started again: [`Watch::input_is_over`], then
    /// [`Driver::update`].
    pub(crate) is_over: bool,
}

/// What can happen to a socket.
#[derive(Debug)]
pub(crate) enum What {
    /// A connection was accepted.
    Connection(OwnedFd),
    /// The stream from the peer has ended.
    End,
    /// Nothing works any more.
    Failed(io::Error),
    /// Input was read.
    Input(Input),
    /// The connection is lost.
    Lost,
    /// Nothing that matters.
    Nothing,
    /// There is something to be done with it.
    Ready {
        /// There is input, or the end of it, or a connection to accept.
        read: bool,
        /// There is room for output.
        write: bool,
        /// The connection is lost.
        lost: bool,
    },
    /// Nothing is accepted for lack of files or memory; to try again at once would only spin.
    Shortage,
    /// Output that was queued, of which the kernel has taken so many bytes only.
    Unsent(Vec<u8>, usize),
}

/// Where output goes, if nothing waits in the backlog.
pub(crate) enum Outlet<'a> {
    /// Into the backlog, behind what is queued; that has to be [withdrawn](Driver::withdraw) then, if
    /// possible, and written with it.
    Backlog,
    /// Here, to be added to; it is sent at the end of the turn.
    Queue(&'a mut Vec<u8>),
    /// To the socket, at once.
    Socket,
}

/// The kernel is sending; what became of it will be told.
#[derive(Debug)]
pub(crate) struct InFlight;

/// The driver of a worker.
pub(crate) enum Driver {
    Epoll(Epoll),
    IoUring(Box<IoUring>),
}

impl Driver {
    /// Makes a driver of a kind that was [resolved](DriverKind::resolve).
    pub(crate) fn new(kind: DriverKind) -> io::Result<Self> {
        Ok(match kind {
            DriverKind::Auto | DriverKind::Epoll => Self::Epoll(Epoll::new()?),
            DriverKind::IoUring => Self::IoUring(Box::new(IoUring::new()?)),
        })
    }

    /// Waits for `socket` from now on, until it is [closed](Self::close).
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
            Self::IoUring(uring) => uring.update(socket, token, &mut watch, interest)?,
        }
        Ok(watch)
    }

    /// Changes what `socket` waits for, if that is not what it waits for already.
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
            Self::IoUring(uring) => uring.update(socket, token, watch, interest),
        }
    }

    /// Closes a socket that was added, behind all output that is queued.
    pub(crate) fn close(&mut self, socket: OwnedFd, token: u64, watch: &Watch) {
        match self {
            // The end of its last descriptor is the end of waiting for it.
            Self::Epoll(_) => drop(socket),
            Self::IoUring(uring) => uring.close(socket, token, watch),
        }
    }

    /// Sends what is queued, and waits until there are events or `timeout` has passed.
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Epoll(epoll) => epoll.wait(timeout),
            Self::IoUring(uring) => uring.wait(timeout),
        }
    }

    /// Returns the next of the events that the last wait has found.
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

    /// Sends what is queued without waiting for the end of the turn.
    pub(crate) fn send_queued(&mut self) {
        match self {
            Self::Epoll(_) => {}
            Self::IoUring(uring) => uring.send_queued(),
        }
    }

    /// Takes the memory of output that was withdrawn.
    pub(crate) fn give_back(&mut self, memory: Vec<u8>) {
        if let Self::IoUring(uring) = self {
            uring.give_back(memory);
        }
    }

    /// Takes back the output that is queued, if there is some. It fails if the kernel has it.
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
    fn kinds_are_parsed_from_their_names_and_others_refused() {
        for kind in DriverKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        let error = "kqueue".parse::<DriverKind>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "no such driver; there are auto, epoll, io-uring"
        );
    }

    #[test]
    fn every_kind_that_can_be_had_resolves_to_a_driver() {
        for kind in DriverKind::ALL {
            if let Ok(resolved) = kind.resolve() {
                assert_ne!(resolved, DriverKind::Auto);
                assert_eq!(resolved.resolve().unwrap(), resolved);
                Driver::new(resolved).unwrap();
            }
        }
    }
}
