//! Where the conductor and one thread of the load meet.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use nix::time::ClockId;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::load::LoadError;
use crate::load::error::system;

/// What is being done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub(super) enum Phase {
    /// Connections are being opened.
    Opening,
    /// The load that does not count.
    WarmUp,
    /// The load that counts.
    Measured,
    /// Figures are taken; answers that are due for long are waited for.
    Ending,
    /// The load failed; nothing matters any more.
    Abandoned,
}

impl Phase {
    const ALL: [Self; 5] = [
        Self::Opening,
        Self::WarmUp,
        Self::Measured,
        Self::Ending,
        Self::Abandoned,
    ];
}

/// The thread writes here after each wait, and the conductor reads twice: each station has cache
/// lines of its own, two of which are fetched together.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Station {
    /// Bytes of answers that came, and connections that are over.
    verified: AtomicU64,
    connections: AtomicU64,
    /// Bytes that came, as they came.
    received: AtomicU64,
    /// Whether the thread is so late with an open loop that there is no point in going on.
    is_behind: AtomicBool,
    phase: AtomicU8,
    thread: AtomicI32,
    signal: OwnedFd,
}

impl Station {
    /// # Errors
    ///
    /// No signal can be had.
    pub(super) fn new() -> Result<Self, LoadError> {
        Ok(Self {
            verified: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            received: AtomicU64::new(0),
            is_behind: AtomicBool::new(false),
            phase: AtomicU8::new(Phase::Opening as u8),
            thread: AtomicI32::new(0),
            signal: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)
                .map_err(system("no eventfd can be had"))?,
        })
    }

    /// Makes the calling thread the one whose CPU time counts.
    pub(super) fn enter(&self) {
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        self.thread.store(thread, Ordering::Release);
    }

    /// Tells the conductor what was done.
    pub(super) fn report(&self, verified: u64, connections: u64, received: u64) {
        self.verified.store(verified, Ordering::Relaxed);
        self.connections.store(connections, Ordering::Relaxed);
        self.received.store(received, Ordering::Relaxed);
    }

    /// Tells the conductor that the schedule cannot be kept.
    pub(super) fn report_behind(&self) {
        self.is_behind.store(true, Ordering::Relaxed);
    }

    /// Returns what becomes readable, edge-triggered, when the thread has to look around.
    pub(super) fn signal(&self) -> BorrowedFd<'_> {
        self.signal.as_fd()
    }

    pub(super) fn phase(&self) -> Phase {
        Phase::ALL[usize::from(self.phase.load(Ordering::Acquire))]
    }

    /// Tells the thread what phase it is.
    pub(super) fn tell(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Release);
        self.wake();
    }

    /// Has the thread look around.
    pub(super) fn wake(&self) {
        // The counter is never read, and would be full after more ticks than there will be.
        let _ = rustix::io::write(&self.signal, &1_u64.to_ne_bytes());
    }

    pub(super) fn verified(&self) -> u64 {
        self.verified.load(Ordering::Relaxed)
    }

    pub(super) fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    pub(super) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    pub(super) fn is_behind(&self) -> bool {
        self.is_behind.load(Ordering::Relaxed)
    }

    /// Returns the CPU time of the thread, which has to be running.
    ///
    /// # Errors
    ///
    /// It is not.
    pub(super) fn cpu(&self) -> Result<Duration, LoadError> {
        // The kernel's number for the CPU clock of a thread of ours (CPUCLOCK_PERTHREAD and
        // CPUCLOCK_SCHED), which is precise to the moment, unlike what /proc tells.
        let clock = !self.thread.load(Ordering::Acquire) << 3 | 6;
        let time = ClockId::from_raw(clock)
            .now()
            .map_err(system("the load's CPU time cannot be read"))?;
        Ok(time.into())
    }
}
