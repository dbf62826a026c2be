//! Waking the driver at its connection's deadlines.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use super::{Link, registry::Slot, tick::Tick};
use crate::{
    clock,
    runtime::{RuntimeHandle, Timer},
};

/// The timer that wakes a driver at a deadline: either its own, or the one that all connections of
/// a server share, which costs almost no memory per connection.
pub(crate) enum Alarm {
    Own(Pin<Box<Timer>>),
    Shared(Slot),
}

impl Alarm {
    /// Creates an alarm with its own timer.
    pub(crate) fn own(runtime: &RuntimeHandle) -> Self {
        Self::Own(Box::pin(runtime.timer(clock::instant(Duration::ZERO))))
    }

    /// Registers a connection of a server after its opening handshake.
    pub(crate) fn enter(&self, link: &Arc<Link>) {
        if let Self::Shared(slot) = self {
            slot.enter(link);
        }
    }

    /// Waits until the server of the connection, if it has one, shuts down.
    pub(crate) fn shutdown(&self) -> impl Future<Output = ()> {
        // The future must not borrow the timer, which may not be `Sync`.
        let slot = match self {
            Self::Own(_) => None,
            Self::Shared(slot) => Some(slot),
        };
        async move {
            match slot {
                Some(slot) => slot.shutdown().await,
                None => std::future::pending().await,
            }
        }
    }

    /// Ensures that the driver is woken at `due` or earlier. `set` is the tick for which the shared
    /// timer is set, if any. Ready if the deadline may have passed.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        due: Duration,
        set: &mut Option<Tick>,
    ) -> Poll<()> {
        match self {
            Self::Own(timer) => {
                let due = clock::instant(due);
                if timer.deadline() > due || timer.is_elapsed() {
                    timer.as_mut().reset(due);
                }
                timer.as_mut().poll(cx)
            }
            Self::Shared(slot) => {
                let tick = Tick::at_or_after(due);
                if set.is_none_or(|set| set > tick) {
                    *set = Some(slot.set_alarm(tick));
                }
                Poll::Pending
            }
        }
    }
}
