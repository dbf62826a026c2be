//! The kinds of drivers.

use std::{fmt, io, str::FromStr};

#[cfg(target_os = "linux")]
use linerate_uring::{Ring, Setup};

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
    /// epoll reports which sockets are ready, and each read and write is a system call. Available
    /// on every Linux, where it is the default and the best choice for most uses.
    #[cfg_attr(target_os = "linux", default)]
    Epoll,
    /// With io_uring, one system call receives everything that has arrived and sends all small
    /// outputs. Available on Linux 6.1 and later, unless it is disabled. With one message in
    /// flight, it takes 4 to 7 % less CPU time than epoll, but with many in flight up to 5 % more.
    IoUring,
    /// The system's interface for readiness, through the library mio: kqueue on macOS, AFD on
    /// Windows, epoll on Linux. Available in 64-bit programs, and the default except on Linux. It
    /// takes one more system call than epoll for each read.
    #[cfg_attr(not(target_os = "linux"), default)]
    Portable,
}

impl DriverKind {
    /// All kinds, in the order in which error messages list them.
    pub const ALL: [Self; 3] = [Self::Epoll, Self::IoUring, Self::Portable];

    /// Returns the name that is displayed and parsed.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Epoll => "epoll",
            Self::IoUring => "io-uring",
            Self::Portable => "portable",
        }
    }

    /// Checks whether this machine has the driver.
    ///
    /// # Errors
    /// If the driver is not available; the error says what is missing.
    pub fn check(self) -> io::Result<()> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Epoll => Ok(()),
            #[cfg(target_os = "linux")]
            Self::IoUring => Ok(Ring::new(&Setup::default()).map(drop)?),
            #[cfg(not(target_os = "linux"))]
            Self::Epoll | Self::IoUring => Err(self.needs("Linux")),
            // A token must fit into a pointer.
            Self::Portable if usize::BITS < u64::BITS => Err(self.needs("a 64-bit system")),
            Self::Portable => Ok(()),
        }
    }

    /// Returns the error for a system on which the driver is not available.
    pub(super) fn needs(self, what: &str) -> io::Error {
        let text = format!("the {self} driver needs {what}");
        io::Error::new(io::ErrorKind::Unsupported, text)
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

/// The error returned when no driver has the given name.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("unknown driver; expected one of {}", DriverKind::ALL.map(DriverKind::as_str).join(", "))]
#[non_exhaustive]
pub struct UnknownDriver;

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
            "unknown driver; expected one of epoll, io-uring, portable"
        );
    }
}
