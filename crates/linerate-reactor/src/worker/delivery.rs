//! The delivery of publications to subscribers.

mod linger;
mod subscriber;

use std::{io::IoSlice, sync::Arc, time::Duration};

use self::{linger::Linger, subscriber::takes};
use super::service::Service;
use crate::{
    connection::backlog::SLICES_MAX,
    core::Core,
    topics::{
        burst::{Burst, Delivered, Publications, publications},
        options::{Overflow, TopicOptions},
    },
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
    /// Bursts that may still be referenced.
    delivered: Delivered,
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

    /// Delivers publications at the end of a turn, unless it is likely to pay to wait for more.
    pub(super) fn run_if_due(&mut self, service: &mut Service) {
        let core = &service.parts.core;
        if !self.has_publications(core) {
            return;
        }
        let (now, bytes) = (core.elapsed(), self.bytes(core));
        if self.linger.is_none() {
            self.linger = Linger::new(now, bytes, self.writes(core));
        }
        let linger = self.linger.as_mut();
        if !linger.is_some_and(|linger| linger.continues(now, bytes)) {
            self.run(service);
        }
    }

    /// Delivers publications in the middle of a turn if they are many or the turn has lasted long.
    #[inline]
    pub(super) fn run_if_urgent(&mut self, service: &mut Service) {
        let core = &service.parts.core;
        if self.has_publications(core)
            && (self.bytes(core) > BURST_BYTES_MAX || core.elapsed() - core.now > TURN_MAX)
        {
            self.run(service);
            service.parts.core.io.driver.send_queued();
        }
    }

    /// Delivers all pending publications: those of this worker's connections to the other workers,
    /// and all of them to this worker's subscribers.
    pub(super) fn run(&mut self, service: &mut Service) {
        self.linger = None;
        // Handlers that are told of lost connections may publish during the delivery.
        while self.has_publications(&service.parts.core) {
            let mut bursts = std::mem::take(&mut self.arrived);
            self.arrived_bytes = 0;
            let own = self.share(&mut service.parts.core);
            bursts.extend(own.clone());
            self.deliver(service, &bursts);
            bursts.clear();
            bursts.shrink_to(ARRIVED_KEPT_MAX);
            self.arrived = bursts;
            if let Some(own) = own {
                self.delivered.give(own);
            }
        }
    }

    /// Returns whether the worker should check for events without waiting.
    pub(super) const fn lingers(&self) -> bool {
        self.linger.is_some()
    }

    /// Freezes the publications of this worker's connections and leaves them for the other workers.
    fn share(&mut self, core: &mut Core) -> Option<Arc<Burst>> {
        if core.burst.is_empty() {
            return None;
        }
        let burst = self.delivered.freeze(&mut core.burst);
        let here = usize::from(core.number);
        let others = core.reactor.mailboxes.iter().enumerate();
        let others = others.filter(|(number, _)| *number != here);
        core.reactor
            .publish(others.map(|(_, mailbox)| mailbox), &burst);
        Some(burst)
    }

    #[inline]
    fn has_publications(&self, core: &Core) -> bool {
        !core.burst.is_empty() || !self.arrived.is_empty()
    }

    /// Returns how many bytes of memory the publications use.
    fn bytes(&self, core: &Core) -> usize {
        core.burst.bytes() + self.arrived_bytes
    }

    /// Returns the minimum number of writes for a delivery, estimated from the first publications.
    fn writes(&self, core: &Core) -> usize {
        let arrived = self.arrived.iter().map(Arc::as_ref);
        let bursts = arrived.chain([&core.burst]);
        let subscribers = bursts
            .flat_map(Burst::iter)
            .take(SAMPLE)
            .map(|publications| core.topics.subscribers(publications.topic).1.len());
        subscribers.max().unwrap_or(0)
    }

    /// Delivers to the subscribers of this worker, with one write for each of them.
    fn deliver(&mut self, service: &mut Service, bursts: &[Arc<Burst>]) {
        let mut stretches = publications(bursts);
        let Some((_, first)) = stretches.next() else {
            return;
        };
        let mut count = 1;
        let alike = stretches.all(|(_, other)| {
            count += 1;
            other.topic == first.topic
        });
        if alike && count <= SLICES_MAX {
            self.deliver_topic(service, first.topic, bursts);
        } else {
            self.deliver_topics(service, bursts);
        }
    }

    /// Delivers publications that all go to one topic: writes the frames to each subscriber without
    /// a copy.
    fn deliver_topic(&mut self, service: &mut Service, topic: &str, bursts: &[Arc<Burst>]) {
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let (mut count, mut total) = (0, 0);
        for (place, (burst, stretch)) in slices.iter_mut().zip(publications(bursts)) {
            *place = IoSlice::new(burst.slice(stretch.frames));
            count += 1;
            total += stretch.count;
        }
        let (TopicOptions { overflow, .. }, keys) = service.parts.core.topics.subscribers(topic);
        self.subscribers.extend(keys);
        for key in self.subscribers.drain(..) {
            let core = &mut service.parts.core;
            let Some(connection) = service.connections.get_mut(key as usize) else {
                continue;
            };
            let is_done = if !connection.is_open() {
                true
            } else if takes(connection, overflow) {
                let slices = &slices[..count];
                subscriber::write(&mut core.io, connection, overflow, bursts, slices)
            } else {
                subscriber::refuse(core, connection, overflow, total)
            };
            if !is_done {
                service.settle(key as usize);
            }
        }
    }

    /// Collects what each subscriber receives from several topics, and writes it. The backlog of a
    /// connection may therefore exceed its limit by one burst.
    fn deliver_topics(&mut self, service: &mut Service, bursts: &[Arc<Burst>]) {
        let Self {
            subscribers,
            gathering,
            ..
        } = self;
        for (burst, publications) in publications(bursts) {
            let topics = &service.parts.core.topics;
            let (options, keys) = topics.subscribers(publications.topic);
            subscribers.extend(keys);
            for key in subscribers.drain(..) {
                let gathers = gather(service, key, options.overflow, burst, &publications);
                if gathers {
                    gathering.push(key);
                }
            }
        }
        for key in gathering.drain(..) {
            let io = &mut service.parts.core.io;
            let Some(connection) = service.connections.get_mut(key as usize) else {
                continue;
            };
            if std::mem::take(&mut connection.gathering) {
                io.write_backlog(connection);
                io.limit_backlog(connection);
            }
            service.settle(key as usize);
        }
    }
}

/// Adds publications to what will be written to a subscriber; returns whether it has to be settled
/// afterwards and is not going to be already.
fn gather(
    service: &mut Service,
    key: u32,
    overflow: Overflow,
    burst: &Arc<Burst>,
    publications: &Publications<'_>,
) -> bool {
    let core = &mut service.parts.core;
    let Some(connection) = service.connections.get_mut(key as usize) else {
        return false;
    };
    if !connection.is_open() {
        return false;
    }
    if !takes(connection, overflow) {
        return !subscriber::refuse(core, connection, overflow, publications.count);
    }
    let waits_already = !connection.backlog.is_empty();
    let frames = publications.frames.clone();
    subscriber::append(&mut core.io, connection, overflow, burst, frames);
    if waits_already && !connection.gathering {
        core.io.limit_backlog(connection);
    } else if !waits_already {
        connection.gathering = true;
    }
    !waits_already
}
