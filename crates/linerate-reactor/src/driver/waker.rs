//! Waking a worker that waits in its driver.

use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;

#[cfg(target_os = "linux")]
use rustix::event::{EventfdFlags, eventfd};

/// Wakes a worker; any thread can use it.
#[derive(Debug)]
pub(crate) enum Waker {
    /// An eventfd, which the driver watches like a socket.
    #[cfg(target_os = "linux")]
    EventFd(OwnedFd),
    /// The waker of the portable driver.
    Portable(mio::Waker),
}

impl Waker {
    /// Wakes the worker.
    ///
    /// # Errors
    /// If the system is out of memory.
    pub(crate) fn wake(&self) -> io::Result<()> {
        match self {
            #[cfg(target_os = "linux")]
            Self::EventFd(counter) => {
                // This fails only if the counter is at its maximum, and then the worker wakes up
                // anyway.
                _ = rustix::io::write(counter, &1_u64.to_ne_bytes());
                Ok(())
            }
            Self::Portable(waker) => waker.wake(),
        }
    }

    /// Ends the worker's wake-up, so that the next one is reported again.
    pub(crate) fn reset(&self) {
        match self {
            // An error means that there was nothing to read.
            #[cfg(target_os = "linux")]
            Self::EventFd(counter) => _ = rustix::io::read(counter, &mut [0; 8]),
            // The event has ended the wake-up.
            Self::Portable(_) => {}
        }
    }
}

/// Creates a counter for [`Waker::EventFd`].
#[cfg(target_os = "linux")]
pub(super) fn event_fd() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}
