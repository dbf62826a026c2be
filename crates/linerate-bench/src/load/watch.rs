//! Waits until any of many sockets is ready.

use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::Timespec;

use super::LoadError;
use super::error::system;

/// Largest number of ready sockets that one wait returns.
const READY_MAX: usize = 1024;

/// Watches sockets, edge-triggered. After a socket was returned, read until nothing is left and
/// write until there is no room.
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
    /// Watches `sockets`, which [`wait`](Self::wait) returns by their indices.
    pub(crate) fn new<'s, S: AsFd + 's>(
        sockets: impl IntoIterator<Item = &'s S>,
    ) -> Result<Self, LoadError> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)
            .map_err(system("cannot create an epoll instance"))?;
        let watch = Self {
            epoll,
            events: Vec::with_capacity(READY_MAX),
        };
        for (place, socket) in sockets.into_iter().enumerate() {
            watch.add(place, socket)?;
        }
        Ok(watch)
    }

    /// Watches a further socket, which [`wait`](Self::wait) returns by `place`.
    pub(crate) fn add(&self, place: usize, socket: impl AsFd) -> Result<(), LoadError> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
        let place = EventData::new_u64(place as u64);
        epoll::add(&self.epoll, socket, place, flags).map_err(system("cannot watch a socket"))
    }

    /// Waits until sockets are ready, for at most `time`, and returns their indices. Returns none
    /// if the time has elapsed.
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
