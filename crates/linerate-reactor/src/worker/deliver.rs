//! The delivery of publications to subscribers.

mod subscriber;

use std::{io::IoSlice, sync::Arc, time::Duration};

use self::subscriber::takes;
use super::{Core, Worker, linger::Linger};
use crate::{
    Overflow, TopicOptions,
    connection::backlog::SLICES_MAX,
    topics::burst::{Burst, Publications},
};

/// Publications are delivered before the end of a turn once they use this many bytes.
const BURST_BYTES_MAX: usize = 256 << 10;

/// Publications are delivered before the end of a turn once it has lasted this long.
const TURN_MAX: Duration = Duration::from_millis(1);

/// The number of stretches of publications from which the work of a delivery is estimated.
const SAMPLE: usize = 8;

/// The capacity that the list of bursts keeps.
const ARRIVED_KEPT_MAX: usize = 1_024;

/// Publications from other threads, and the state of the next delivery.
#[derive(Debug, Default)]
pub(super) struct Delivery {
    /// Bursts from other threads.
    arrived: Vec<Arc<Burst>>,
    /// The memory that these bursts use, in bytes.
    arrived_bytes: usize,
    /// Present while the delivery waits for more publications.
    linger: Option<Linger>,
    /// The subscribers of the topic that is being delivered; empty between deliveries.
    subscribers: Vec<u32>,
    /// The subscribers that have something to be written; empty between deliveries.
    gathering: Vec<u32>,
}

impl Delivery {
    /// Adds bursts from other threads.
    pub(super) fn add(&mut self, bursts: &mut Vec<Arc<Burst>>) {
        self.arrived_bytes += bursts.iter().map(|burst| burst.bytes()).sum::<usize>();
        self.arrived.append(bursts);
    }

    /// Returns whether the worker should check for events without waiting.
    pub(super) const fn lingers(&self) -> bool {
        self.linger.is_some()
    }
}

impl Worker {
    /// Delivers publications at the end of a turn, unless it is likely to pay to wait for more.
    pub(super) fn deliver_if_due(&mut self) {
        if !self.has_publications() {
            return;
        }
        let (now, bytes) = (self.started.elapsed(), self.publication_bytes());
        if self.delivery.linger.is_none() {
            self.delivery.linger = Linger::new(now, bytes, self.writes());
        }
        let linger = self.delivery.linger.as_mut();
        if !linger.is_some_and(|linger| linger.goes_on(now, bytes)) {
            self.deliver();
        }
    }

    /// Delivers publications in the middle of a turn if they are many or the turn has lasted long.
    #[inline]
    pub(super) fn deliver_if_urgent(&mut self) {
        if self.has_publications()
            && (self.publication_bytes() > BURST_BYTES_MAX
                || self.started.elapsed() - self.core.now > TURN_MAX)
        {
            self.deliver();
            self.core.driver.send_queued();
        }
    }

    /// Delivers all pending publications: those of this worker's connections to the other workers,
    /// and all of them to this worker's subscribers.
    pub(super) fn deliver(&mut self) {
        self.delivery.linger = None;
        // Handlers that are told of lost connections may publish during the delivery.
        while self.has_publications() {
            let mut bursts = std::mem::take(&mut self.delivery.arrived);
            self.delivery.arrived_bytes = 0;
            let own = self.share();
            bursts.extend(own.clone());
            self.deliver_here(&bursts);
            bursts.clear();
            bursts.shrink_to(ARRIVED_KEPT_MAX);
            self.delivery.arrived = bursts;
            if let Some(own) = own {
                self.core.delivered.give(own);
            }
        }
    }

    /// Freezes the publications of this worker's connections and leaves them for the other workers.
    fn share(&mut self) -> Option<Arc<Burst>> {
        let core = &mut self.core;
        if core.burst.is_empty() {
            return None;
        }
        let burst = core.delivered.freeze(&mut core.burst);
        let here = usize::from(core.number);
        let others = core.shared.mailboxes.iter().enumerate();
        let others = others.filter(|(number, _)| *number != here);
        core.shared
            .publish(others.map(|(_, mailbox)| mailbox), &burst);
        Some(burst)
    }

    #[inline]
    fn has_publications(&self) -> bool {
        !self.core.burst.is_empty() || !self.delivery.arrived.is_empty()
    }

    fn publication_bytes(&self) -> usize {
        self.core.burst.bytes() + self.delivery.arrived_bytes
    }

    /// Returns the minimum number of writes for a delivery, estimated from the first publications.
    fn writes(&self) -> usize {
        let arrived = self.delivery.arrived.iter().map(Arc::as_ref);
        let bursts = arrived.chain([&self.core.burst]);
        let subscribers = bursts
            .flat_map(Burst::iter)
            .take(SAMPLE)
            .map(|publications| self.core.topics.audience(publications.topic).1.len());
        subscribers.max().unwrap_or(0)
    }

    /// Delivers to the subscribers of this worker, with one write for each of them.
    pub(super) fn deliver_here(&mut self, bursts: &[Arc<Burst>]) {
        let mut stretches = stretches(bursts);
        let Some((_, first)) = stretches.next() else {
            return;
        };
        let mut count = 1;
        let alike = stretches.all(|(_, other)| {
            count += 1;
            other.topic == first.topic
        });
        if alike && count <= SLICES_MAX {
            self.deliver_topic(first.topic, bursts);
        } else {
            self.deliver_topics(bursts);
        }
    }

    /// Delivers publications that all go to one topic: writes the frames to each subscriber without
    /// a copy.
    fn deliver_topic(&mut self, topic: &str, bursts: &[Arc<Burst>]) {
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let (mut count, mut publications) = (0, 0);
        for (place, (burst, stretch)) in slices.iter_mut().zip(stretches(bursts)) {
            *place = IoSlice::new(burst.slice(stretch.frames));
            count += 1;
            publications += stretch.count;
        }
        let (TopicOptions { overflow, .. }, audience) = self.core.topics.audience(topic);
        let mut keys = std::mem::take(&mut self.delivery.subscribers);
        keys.extend(audience);
        for key in keys.drain(..) {
            let Some(connection) = self.connections.get_mut(key as usize) else {
                continue;
            };
            let is_done = if !connection.is_open() {
                true
            } else if takes(connection, overflow) {
                let slices = &slices[..count];
                self.core.write_shared(connection, overflow, bursts, slices)
            } else {
                self.core.refuse(connection, overflow, publications)
            };
            if !is_done {
                self.settle(key as usize);
            }
        }
        self.delivery.subscribers = keys;
    }

    /// Collects what each subscriber receives from several topics, and writes it. The backlog of a
    /// connection may therefore exceed its limit by one burst.
    fn deliver_topics(&mut self, bursts: &[Arc<Burst>]) {
        let mut keys = std::mem::take(&mut self.delivery.subscribers);
        for (burst, publications) in stretches(bursts) {
            let (options, audience) = self.core.topics.audience(publications.topic);
            keys.extend(audience);
            for key in keys.drain(..) {
                self.gather_publications(key, options.overflow, burst, &publications);
            }
        }
        self.delivery.subscribers = keys;
        let mut keys = std::mem::take(&mut self.delivery.gathering);
        let stall_due = self.core.stall_due();
        for key in keys.drain(..) {
            let Some(connection) = self.connections.get_mut(key as usize) else {
                continue;
            };
            if std::mem::take(&mut connection.gathering) {
                connection.stall_due = stall_due;
                let Core { driver, pool, .. } = &mut self.core;
                connection.write_backlog(driver, pool, stall_due);
                self.core.limit_backlog(connection);
            }
            self.settle(key as usize);
        }
        self.delivery.gathering = keys;
    }

    /// Adds publications to what will be written to a subscriber.
    fn gather_publications(
        &mut self,
        key: u32,
        overflow: Overflow,
        burst: &Arc<Burst>,
        publications: &Publications<'_>,
    ) {
        let Some(connection) = self.connections.get_mut(key as usize) else {
            return;
        };
        if !connection.is_open() {
            return;
        }
        if !takes(connection, overflow) {
            if !self.core.refuse(connection, overflow, publications.count) {
                self.delivery.gathering.push(key);
            }
            return;
        }
        let waits_already = !connection.backlog.is_empty();
        let frames = publications.frames.clone();
        self.core.append_shared(connection, overflow, burst, frames);
        if !waits_already {
            connection.gathering = true;
            self.delivery.gathering.push(key);
        } else if !connection.gathering {
            self.core.limit_backlog(connection);
        }
    }
}

/// Returns the publications of all bursts, each with its burst.
fn stretches(bursts: &[Arc<Burst>]) -> impl Iterator<Item = (&Arc<Burst>, Publications<'_>)> {
    bursts
        .iter()
        .flat_map(|burst| burst.iter().map(move |publications| (burst, publications)))
}
