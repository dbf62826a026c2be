//! The state that the conductor shares with one thread of the load.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use nix::time::ClockId;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

use super::LoadTotals;
use crate::load::LoadError;
use crate::load::error::system;

/// The phase of a load.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub(super) enum Phase {
    /// Connections are being opened.
    Opening,
    /// The load runs but does not count.
    WarmUp,
    /// The load runs and counts.
    Measured,
    /// Figures are collected. Answers that have been due for long are still awaited.
    Ending,
    /// The load has failed, and threads stop at once.
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

/// The state that the conductor shares with one thread. The thread writes here after each wait, and
/// the conductor reads twice. Each station is aligned to 128 bytes, so that it shares no cache
/// lines with another, because processors fetch cache lines in pairs.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Station {
    /// Bytes of answers that have arrived, and number of connections that have ended.
    verified: AtomicU64,
    connections: AtomicU64,
    /// Bytes that have arrived, counted as they were received.
    received: AtomicU64,
    /// True if the thread is so late with an open loop that it is pointless to continue.
    is_behind: AtomicBool,
    phase: AtomicU8,
    thread: AtomicI32,
    signal: OwnedFd,
}

impl Station {
    /// Creates a station in the phase [`Phase::Opening`].
    pub(super) fn new() -> Result<Self, LoadError> {
        Ok(Self {
            verified: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            received: AtomicU64::new(0),
            is_behind: AtomicBool::new(false),
            phase: AtomicU8::new(Phase::Opening as u8),
            thread: AtomicI32::new(0),
            signal: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)
                .map_err(system("cannot create an eventfd"))?,
        })
    }

    /// Makes the calling thread the one whose CPU time [`cpu`](Self::cpu) returns.
    pub(super) fn enter(&self) {
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        self.thread.store(thread, Ordering::Release);
    }

    /// Reports to the conductor what the thread has done.
    pub(super) fn report(&self, verified: u64, connections: u64, received: u64) {
        self.verified.store(verified, Ordering::Relaxed);
        self.connections.store(connections, Ordering::Relaxed);
        self.received.store(received, Ordering::Relaxed);
    }

    /// Reports to the conductor that the schedule cannot be kept.
    pub(super) fn report_behind(&self) {
        self.is_behind.store(true, Ordering::Relaxed);
    }

    /// Returns a descriptor that becomes readable (edge-triggered) when the thread has to check its
    /// state.
    pub(super) fn signal(&self) -> BorrowedFd<'_> {
        self.signal.as_fd()
    }

    pub(super) fn phase(&self) -> Phase {
        Phase::ALL[usize::from(self.phase.load(Ordering::Acquire))]
    }

    /// Announces a phase to the thread.
    pub(super) fn tell(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Release);
        self.wake();
    }

    /// Wakes the thread so that it checks its state.
    pub(super) fn wake(&self) {
        // The counter is never read. It would take more ticks than there will ever be to fill it.
        let _ = rustix::io::write(&self.signal, &1_u64.to_ne_bytes());
    }

    /// Returns what the thread has done so far. The thread must be running.
    pub(super) fn totals(&self) -> Result<LoadTotals, LoadError> {
        Ok(LoadTotals {
            verified_bytes: self.verified.load(Ordering::Relaxed),
            connections: self.connections.load(Ordering::Relaxed),
            received_bytes: self.received.load(Ordering::Relaxed),
            cpu: self.cpu()?,
        })
    }

    pub(super) fn is_behind(&self) -> bool {
        self.is_behind.load(Ordering::Relaxed)
    }

    /// Returns the CPU time of the thread, which must be running.
    fn cpu(&self) -> Result<Duration, LoadError> {
        // The kernel's id of the CPU clock of a thread (CPUCLOCK_PERTHREAD and CPUCLOCK_SCHED).
        // Unlike the figures in /proc, this clock is precise at any moment.
        let clock = !self.thread.load(Ordering::Acquire) << 3 | 6;
        let time = ClockId::from_raw(clock)
            .now()
            .map_err(system("cannot read the CPU time of the load"))?;
        Ok(time.into())
    }
}
