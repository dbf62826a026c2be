//! Waking the driver at its connection's deadlines.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::Sleep;

use super::{Link, registry::Slot, tick::Tick};
use crate::clock;

/// The timer that wakes a driver at a deadline: either its own, or the one that all connections of
/// a server share, which costs almost no memory per connection.
pub(crate) enum Alarm {
    Own(Pin<Box<Sleep>>),
    Shared(Slot),
}

impl Alarm {
    /// Creates an alarm with its own timer.
    pub(crate) fn own() -> Self {
        Self::Own(Box::pin(tokio::time::sleep_until(clock::instant(
            Duration::ZERO,
        ))))
    }

    /// Registers a connection of a server after its opening handshake.
    pub(crate) fn enter(&self, link: &Arc<Link>) {
        if let Self::Shared(slot) = self {
            slot.enter(link);
        }
    }

    /// Waits until the server of the connection, if it has one, shuts down.
    pub(crate) async fn shutdown(&self) {
        match self {
            Self::Own(_) => std::future::pending().await,
            Self::Shared(slot) => slot.shutdown().await,
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
            Self::Own(sleep) => {
                let due = clock::instant(due);
                if sleep.deadline() > due || sleep.is_elapsed() {
                    sleep.as_mut().reset(due);
                }
                sleep.as_mut().poll(cx)
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
