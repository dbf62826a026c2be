//! The connections of a server: how many are open, the timer that they share, and closing them at
//! shutdown.

use std::{
    num::NonZeroU32,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use linerate_proto::CloseCode;
use tokio::{sync::Notify, time::Instant};

use super::{Link, tick::Tick};
use crate::{clock, runtime::RuntimeHandle};

/// How many ticks the timer can look ahead: 51 s. A later deadline wakes its connection early,
/// which then sets the alarm again.
const TICKS: usize = 512;

/// The connections of one server.
#[derive(Clone)]
pub(crate) struct Connections {
    registry: Arc<Registry>,
    connections_max: usize,
    runtime: RuntimeHandle,
}

/// What the handles of a server and the slots of its connections share.
struct Registry {
    open: Mutex<Open>,
    all_gone: Notify,
    /// Notified when the server shuts down.
    shutdown: Notify,
}

struct Open {
    /// The number of slots in use, including connections in the opening handshake.
    slots: usize,
    /// The connections by slot; empty until the opening handshake is complete.
    links: Vec<Weak<Link>>,
    vacant: Vec<u32>,
    /// The slots to wake at each of the next ticks; some may belong to other connections by then.
    wheel: Vec<Vec<u32>>,
    /// The last tick that has been processed.
    turned: Tick,
    closing: bool,
}

/// The slot of one connection; released on drop.
pub(crate) struct Slot {
    registry: Arc<Registry>,
    /// The index of the slot plus one.
    number: NonZeroU32,
}

impl Connections {
    pub(crate) fn new(connections_max: usize, runtime: &RuntimeHandle) -> Self {
        let open = Open {
            slots: 0,
            links: Vec::new(),
            vacant: Vec::new(),
            wheel: vec![Vec::new(); TICKS],
            turned: Tick::at_or_before(clock::now()),
            closing: false,
        };
        let registry = Arc::new(Registry {
            open: Mutex::new(open),
            all_gone: Notify::new(),
            shutdown: Notify::new(),
        });
        // This runs in its own task, so that deadlines apply as long as there are connections, even
        // if the server's future is dropped before them.
        runtime.spawn(keep_deadlines(Arc::downgrade(&registry), runtime.clone()));
        Self {
            registry,
            connections_max,
            runtime: runtime.clone(),
        }
    }

    /// Takes a slot if one is free.
    pub(crate) fn take_slot(&self) -> Option<Slot> {
        let mut open = self.registry.lock();
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
            registry: self.registry.clone(),
            number,
        })
    }

    /// Waits until the server shuts down.
    #[cfg(any(feature = "http2", feature = "http3"))]
    pub(crate) async fn shutdown(&self) {
        self.registry.shutdown().await;
    }

    /// Returns the number of slots in use.
    #[cfg(feature = "axum")]
    pub(crate) fn len(&self) -> usize {
        self.registry.lock().slots
    }

    /// Returns whether all connections are being closed.
    #[cfg(feature = "axum")]
    pub(crate) fn is_closing(&self) -> bool {
        self.registry.lock().closing
    }

    /// Closes all connections and waits at most `timeout` until they are gone; returns how many are
    /// left.
    pub(crate) async fn close_all(&self, timeout: Duration) -> usize {
        let links: Vec<_> = {
            let mut open = self.registry.lock();
            open.closing = true;
            open.links.iter().filter_map(Weak::upgrade).collect()
        };
        self.registry.shutdown.notify_waiters();
        for link in links {
            close(&link);
        }
        let all_gone = async {
            loop {
                let notified = self.registry.all_gone.notified();
                if self.registry.lock().slots == 0 {
                    return;
                }
                notified.await;
            }
        };
        if self.runtime.timeout(timeout, all_gone).await.is_ok() {
            return 0;
        }
        let connections = self.registry.lock().slots;
        tracing::warn!(connections, "connections are still open at shutdown");
        connections
    }
}

impl Open {
    /// Processes all ticks up to now; returns the connections to wake and the ticks for which their
    /// alarms were set.
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

    /// Waits until the server shuts down.
    pub(super) async fn shutdown(&self) {
        self.registry.shutdown().await;
    }

    /// Registers the connection after its opening handshake.
    pub(crate) fn enter(&self, link: &Arc<Link>) {
        let closing = {
            let mut open = self.registry.lock();
            open.links[self.index() as usize] = Arc::downgrade(link);
            open.closing
        };
        if closing {
            close(link);
        }
    }

    /// Sets the alarm for `tick`, or for the last tick that the timer can hold; returns the tick
    /// that was set.
    pub(super) fn set_alarm(&self, tick: Tick) -> Tick {
        let mut open = self.registry.lock();
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
        let mut open = self.registry.lock();
        open.links[self.index() as usize] = Weak::new();
        open.vacant.push(self.index());
        open.slots -= 1;
        if open.slots == 0 {
            self.registry.all_gone.notify_waiters();
        }
    }
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn shutdown(&self) {
        let mut notified = pin!(self.shutdown.notified());
        notified.as_mut().enable();
        if !self.lock().closing {
            notified.await;
        }
    }
}

/// Wakes connections at their deadlines until the server and all its connections are gone.
async fn keep_deadlines(registry: Weak<Registry>, runtime: RuntimeHandle) {
    let mut timer = pin!(runtime.timer(Instant::now()));
    loop {
        timer.as_mut().await;
        let Some(registry) = registry.upgrade() else {
            return;
        };
        // This is not in the loop header, which would hold the lock while locking the connections;
        // connections set alarms while they hold their own locks.
        let due = registry.lock().turn_wheel();
        for (tick, link) in due {
            if let Some(link) = link.upgrade() {
                link.ring(tick);
            }
        }
        // A late tick delays those after it, because each processes all ticks that have passed.
        let next = timer.deadline() + Tick::INTERVAL;
        timer.as_mut().reset(next.max(Instant::now()));
    }
}

fn close(link: &Link) {
    // Closing with a short reason cannot fail.
    _ = link.start_close(CloseCode::GOING_AWAY, "server shutting down");
}
