//! Waiting for the first of many sockets.

use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::Timespec;

use super::LoadError;
use super::error::system;

/// Sockets that are told of at a time.
const READY_MAX: usize = 1024;

/// Watches sockets, edge-triggered: whoever is told of one reads until nothing is left, and writes
/// until there is no room.
pub(crate) struct Watch {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

impl Watch {
    /// Watches `sockets`, which are told of by their places.
    ///
    /// # Errors
    ///
    /// The kernel can't watch more.
    pub(crate) fn new<'s, S: AsFd + 's>(
        sockets: impl IntoIterator<Item = &'s S>,
    ) -> Result<Self, LoadError> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(system("epoll can't be had"))?;
        for (place, socket) in sockets.into_iter().enumerate() {
            let flags = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
            epoll::add(&epoll, socket, EventData::new_u64(place as u64), flags)
                .map_err(system("a socket can't be watched"))?;
        }
        Ok(Self {
            epoll,
            events: Vec::with_capacity(READY_MAX),
        })
    }

    /// Waits until sockets are ready, for `time` at most, and returns their places; none when the
    /// time is over.
    ///
    /// # Errors
    ///
    /// The kernel can't wait.
    pub(crate) fn wait(
        &mut self,
        time: Duration,
    ) -> Result<impl Iterator<Item = usize> + '_, LoadError> {
        let deadline = Instant::now() + time;
        self.events.clear();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).ok();
            match epoll::wait(
                &self.epoll,
                spare_capacity(&mut self.events),
                timeout.as_ref(),
            ) {
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(system("epoll failed")(errno)),
            }
        }
        Ok(self.events.iter().map(|event| event.data.u64() as usize))
    }
}
