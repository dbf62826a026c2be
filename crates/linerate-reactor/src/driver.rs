//! The driver: the kernel's side of a worker's sockets.
//!
//! All that the rest of the crate knows of it is here: it waits for sockets as [`Interest`] says and
//! reports [`Event`]s. What is done with input, and what is sent, does not depend on it.

mod epoll;

use std::{
    fmt, io,
    os::fd::{BorrowedFd, OwnedFd},
    str::FromStr,
    time::Duration,
};

use self::epoll::Epoll;

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
    /// The best one that is to be had.
    #[default]
    Auto,
    /// epoll: tells which sockets are ready, and each read and write is a system call. On every
    /// Linux.
    Epoll,
}

impl DriverKind {
    /// All kinds, in the order in which they are told.
    pub const ALL: [Self; 2] = [Self::Auto, Self::Epoll];

    /// Returns the name, as it is displayed and parsed.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Epoll => "epoll",
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

    /// Nothing; a connection that is lost is reported all the same.
    pub(crate) const NONE: Self = Self {
        read: false,
        write: false,
    };
}

/// What the driver keeps of a socket, next to it.
#[derive(Debug)]
pub(crate) struct Watch {
    interest: Interest,
}

/// What has happened to a socket.
#[derive(Debug)]
pub(crate) struct Event {
    /// What the socket was added with.
    pub(crate) token: u64,
    pub(crate) what: What,
}

/// What can happen to a socket.
#[derive(Debug)]
pub(crate) enum What {
    /// There is something to be done with it.
    Ready {
        /// There is input, or the end of it, or a connection to accept.
        read: bool,
        /// There is room for output.
        write: bool,
        /// The connection is lost.
        lost: bool,
    },
}

/// The driver of a worker.
pub(crate) enum Driver {
    Epoll(Epoll),
}

impl Driver {
    /// Makes a driver of a kind that was [resolved](DriverKind::resolve).
    pub(crate) fn new(kind: DriverKind) -> io::Result<Self> {
        match kind {
            DriverKind::Auto | DriverKind::Epoll => Ok(Self::Epoll(Epoll::new()?)),
        }
    }

    /// Waits for `socket` from now on, until it is [closed](Self::close).
    pub(crate) fn add(
        &mut self,
        socket: BorrowedFd<'_>,
        token: u64,
        interest: Interest,
    ) -> io::Result<Watch> {
        match self {
            Self::Epoll(epoll) => epoll.add(socket, token, interest)?,
        }
        Ok(Watch { interest })
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
        if watch.interest == interest {
            return Ok(());
        }
        watch.interest = interest;
        match self {
            Self::Epoll(epoll) => epoll.modify(socket, token, interest),
        }
    }

    /// Closes a socket that was added.
    pub(crate) fn close(&mut self, socket: OwnedFd) {
        match self {
            // The end of its last descriptor is the end of waiting for it.
            Self::Epoll(_) => drop(socket),
        }
    }

    /// Waits until there are events or `timeout` has passed.
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Epoll(epoll) => epoll.wait(timeout),
        }
    }

    /// Returns the next of the events that the last wait has found.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Event> {
        match self {
            Self::Epoll(epoll) => epoll.next(),
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
        assert_eq!(error.to_string(), "no such driver; there are auto, epoll");
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
