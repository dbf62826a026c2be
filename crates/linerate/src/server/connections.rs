//! The open connections of a server: how many there are, their common timer, and their end at
//! shutdown.

use std::{
    num::NonZeroU32,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use linerate_proto::CloseCode;
use tokio::sync::Notify;

use crate::{
    clock,
    link::{Link, Tick},
};

/// Ticks that the timer can look ahead, 51 s; a later deadline is looked at once before.
const TICKS: usize = 512;

/// The connections of one server.
#[derive(Clone)]
pub(super) struct Connections {
    shared: Arc<Shared>,
    connections_max: usize,
}

struct Shared {
    open: Mutex<Open>,
    all_gone: Notify,
    /// The server shuts down.
    shutdown: Notify,
}

struct Open {
    /// Taken slots, whether the opening handshake is done or not.
    slots: usize,
    /// The connections by slot; dangling where the opening handshake is not done.
    links: Vec<Weak<Link>>,
    vacant: Vec<u32>,
    /// The slots to look at, at each of the next ticks; some may have been given to others since.
    wheel: Vec<Vec<u32>>,
    /// The tick up to which the wheel has turned.
    turned: Tick,
    closing: bool,
}

/// The place of one connection; given back on drop.
pub(crate) struct Slot {
    shared: Arc<Shared>,
    /// One more than the index of the slot.
    number: NonZeroU32,
}

impl Connections {
    pub(super) fn new(connections_max: usize) -> Self {
        let open = Open {
            slots: 0,
            links: Vec::new(),
            vacant: Vec::new(),
            wheel: vec![Vec::new(); TICKS],
            turned: Tick::at_or_before(clock::now()),
            closing: false,
        };
        let shared = Arc::new(Shared {
            open: Mutex::new(open),
            all_gone: Notify::new(),
            shutdown: Notify::new(),
        });
        // A task of its own, so that deadlines are kept for as long as there are connections, also
        // if the server's future is dropped before them.
        tokio::spawn(keep_deadlines(Arc::downgrade(&shared)));
        Self {
            shared,
            connections_max,
        }
    }

    /// Takes a slot, if one is free.
    pub(super) fn take_slot(&self) -> Option<Slot> {
        let mut open = self.shared.lock();
        if open.slots >= self.connections_max {
            return None;
        }
        open.slots += 1;
        let index = open.vacant.pop().unwrap_or_else(|| {
            open.links.push(Weak::new());
            open.links.len() as u32 - 1
        });
        let number = NonZeroU32::MIN.saturating_add(index);
        Some(Slot {
            shared: self.shared.clone(),
            number,
        })
    }

    /// Waits until the server shuts down.
    #[cfg(any(feature = "http2", feature = "http3"))]
    pub(super) async fn shutdown(&self) {
        let mut notified = std::pin::pin!(self.shared.shutdown.notified());
        notified.as_mut().enable();
        if !self.shared.lock().closing {
            notified.await;
        }
    }

    /// Closes all connections and waits until they are gone, at most `timeout`.
    pub(super) async fn close_all(&self, timeout: Duration) {
        let links: Vec<_> = {
            let mut open = self.shared.lock();
            open.closing = true;
            open.links.iter().filter_map(Weak::upgrade).collect()
        };
        self.shared.shutdown.notify_waiters();
        for link in links {
            close(&link);
        }
        let all_gone = async {
            loop {
                let notified = self.shared.all_gone.notified();
                if self.shared.lock().slots == 0 {
                    return;
                }
                notified.await;
            }
        };
        if tokio::time::timeout(timeout, all_gone).await.is_err() {
            let connections = self.shared.lock().slots;
            tracing::warn!(connections, "connections are still open at shutdown");
        }
    }
}

impl Open {
    /// Turns the wheel up to now; returns the connections to wake and the ticks they were set for.
    fn turn_wheel(&mut self) -> Vec<(Tick, Weak<Link>)> {
        let now = Tick::at_or_before(clock::now());
        let mut due = Vec::new();
        while self.turned < now {
            self.turned = Tick::new(self.turned.intervals() + 1);
            let tick = self.turned;
            let slots = std::mem::take(&mut self.wheel[tick.intervals() as usize % TICKS]);
            due.extend(
                slots
                    .iter()
                    .map(|slot| (tick, self.links[*slot as usize].clone())),
            );
        }
        due
    }
}

impl Slot {
    const fn index(&self) -> u32 {
        self.number.get() - 1
    }

    /// Enters the connection whose opening handshake is done.
    pub(super) fn enter(&self, link: &Arc<Link>) {
        let closing = {
            let mut open = self.shared.lock();
            open.links[self.index() as usize] = Arc::downgrade(link);
            open.closing
        };
        if closing {
            close(link);
        }
    }

    /// Sets the alarm for `tick`, or for the last one that can be set; returns which.
    pub(crate) fn set_alarm(&self, tick: Tick) -> Tick {
        let mut open = self.shared.lock();
        let turned = open.turned.intervals();
        let interval = tick
            .intervals()
            .clamp(turned + 1, turned + TICKS as u32 - 1);
        open.wheel[interval as usize % TICKS].push(self.index());
        Tick::new(interval)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut open = self.shared.lock();
        open.links[self.index() as usize] = Weak::new();
        open.vacant.push(self.index());
        open.slots -= 1;
        if open.slots == 0 {
            self.shared.all_gone.notify_waiters();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes connections at their deadlines until the server and all its connections are gone.
async fn keep_deadlines(shared: Weak<Shared>) {
    let mut interval = tokio::time::interval(Tick::INTERVAL);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        let Some(shared) = shared.upgrade() else {
            return;
        };
        // Not in the head of the loop, which would hold the lock while it takes those of the
        // connections; they set alarms while they hold theirs.
        let due = shared.lock().turn_wheel();
        for (tick, link) in due {
            if let Some(link) = link.upgrade() {
                link.ring(tick);
            }
        }
    }
}

fn close(link: &Link) {
    // Closing can't fail with a short reason.
    _ = link.start_close(CloseCode::GOING_AWAY, "server shuts down");
}
