//! From publications to subscribers.

use std::{io::IoSlice, ops::Range, sync::Arc, time::Duration};

use linerate_proto::Role;

use super::{Core, Worker, linger::Linger};
use crate::{
    CloseCode, Overflow, TopicOptions,
    backlog::SLICES_MAX,
    burst::{Burst, Publications},
    connection::Connection,
    driver::Outlet,
    side,
    socket::{self, Lost},
};

/// Publications are delivered before the end of a turn once they take so many bytes,
const BURST_BYTES_MAX: usize = 256 << 10;

/// or once the turn has lasted so long.
const TURN_MAX: Duration = Duration::from_millis(1);

/// So many stretches of publications tell how much work it is to deliver them.
const SAMPLE: usize = 8;

/// The list of bursts keeps room for so many.
const ARRIVED_KEPT_MAX: usize = 1_024;

/// What is to be delivered besides what this worker's connections publish, and when.
#[derive(Debug, Default)]
pub(super) struct Delivery {
    /// Bursts from other threads.
    arrived: Vec<Arc<Burst>>,
    /// The memory that they use.
    arrived_bytes: usize,
    /// The delivery waits for more to go with it.
    linger: Option<Linger>,
    /// The subscribers of the topic that is being delivered.
    subscribers: Vec<u32>,
    /// The subscribers to whom something is to be written.
    gathering: Vec<u32>,
}

impl Delivery {
    /// Adds bursts from other threads.
    pub(super) fn add(&mut self, bursts: &mut Vec<Arc<Burst>>) {
        self.arrived_bytes += bursts.iter().map(|burst| burst.bytes()).sum::<usize>();
        self.arrived.append(bursts);
    }

    /// Returns whether the worker should come back at once.
    pub(super) const fn lingers(&self) -> bool {
        self.linger.is_some()
    }
}

impl Worker {
    /// Delivers at the end of a turn, unless it seems to pay to wait for more publications.
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

    /// Delivers in the middle of a turn if publications have waited for long or are many.
    #[inline]
    pub(super) fn deliver_if_urgent(&mut self) {
        if self.has_publications()
            && (self.publication_bytes() > BURST_BYTES_MAX
                || self.started.elapsed() - self.core.now > TURN_MAX)
        {
            self.deliver();
        }
    }

    /// Delivers what was published: on this worker to the other workers, and all to its own
    /// subscribers.
    pub(super) fn deliver(&mut self) {
        self.delivery.linger = None;
        // The handlers that learn of lost connections meanwhile may publish.
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

    /// Freezes what this worker's connections have published, and leaves it for the other workers.
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

    /// Returns how many writes a delivery takes at least, as the first publications tell.
    fn writes(&self) -> usize {
        let arrived = self.delivery.arrived.iter().map(Arc::as_ref);
        let bursts = arrived.chain([&self.core.burst]);
        let subscribers = bursts
            .flat_map(Burst::iter)
            .take(SAMPLE)
            .map(|publications| self.core.topics.audience(publications.topic).1.len());
        subscribers.max().unwrap_or(0)
    }

    /// Delivers to the subscribers of this worker: one write for each of them.
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

    /// Writes the frames to each subscriber of the only topic from where they lie.
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

    /// Puts together what each subscriber gets of several topics, and writes that. A connection may
    /// so have a burst more than its limit waiting.
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

    /// Adds publications to what is to be written to a subscriber.
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

impl Core {
    /// Writes publications, which are the `slices`; what the kernel does not take waits, by reference
    /// where that pays. Returns whether all was taken, so that nothing has changed.
    #[inline]
    fn write_shared(
        &mut self,
        connection: &mut Connection,
        overflow: Overflow,
        bursts: &[Arc<Burst>],
        slices: &[IoSlice<'_>],
    ) -> bool {
        if connection.role() == Role::Client {
            return self.write_masked(connection, slices);
        }
        if connection.tls.is_some() {
            self.output
                .seal(connection, slices.iter().map(|slice| &**slice));
            self.flush(connection, &[], &[]);
            return connection.backlog.is_empty() && !connection.lost;
        }
        let bytes: usize = slices.iter().map(|slice| slice.len()).sum();
        let outlet = match connection.backlog.is_empty() {
            true => connection.outlet(&mut self.driver, bytes),
            false => Outlet::Backlog,
        };
        let written = match (outlet, slices) {
            (Outlet::Queue(queue), slices) => {
                slices
                    .iter()
                    .for_each(|slice| queue.extend_from_slice(slice));
                return true;
            }
            (Outlet::Backlog, _) => Ok(0),
            (Outlet::Socket, [only]) => socket::write(&connection.socket, only),
            (Outlet::Socket, all) => socket::write_slices(&connection.socket, all),
        };
        match written {
            Ok(written) if written == bytes => return true,
            Ok(written) => self.keep_shared(connection, overflow, bursts, written),
            Err(Lost) => connection.lost = true,
        }
        false
    }

    /// Adds publications to the backlog: by reference where that pays, but masked and encrypted for
    /// each connection that masks or encrypts.
    fn append_shared(
        &mut self,
        connection: &mut Connection,
        overflow: Overflow,
        burst: &Arc<Burst>,
        frames: Range<usize>,
    ) {
        let Self { output, pool, .. } = self;
        let is_encrypted = connection.tls.is_some();
        match connection.role() {
            Role::Client => {
                let mut masked = pool.take(frames.len());
                side::append_masked(burst.slice(frames), &mut masked);
                if is_encrypted {
                    output.seal_behind(connection, &masked, pool);
                    pool.give(masked);
                } else {
                    connection.backlog.append_owned(masked, 0, pool);
                }
            }
            Role::Server if is_encrypted => {
                output.seal_behind(connection, burst.slice(frames), pool);
            }
            Role::Server => {
                let droppable = overflow == Overflow::DropOldest;
                let backlog = &mut connection.backlog;
                backlog.append_shared(burst, frames, 0, droppable, pool);
            }
        }
    }

    /// Writes publications as a client does; returns that more may have changed.
    fn write_masked(&mut self, connection: &mut Connection, slices: &[IoSlice<'_>]) -> bool {
        for slice in slices {
            side::append_masked(slice, &mut self.output.cork);
        }
        self.flush(connection, &[], &[]);
        false
    }

    /// Adds publications but for the first `written` bytes to the backlog.
    #[cold]
    fn keep_shared(
        &mut self,
        connection: &mut Connection,
        overflow: Overflow,
        bursts: &[Arc<Burst>],
        mut written: usize,
    ) {
        if connection.backlog.is_empty() {
            connection.stall_due = self.stall_due();
        }
        let droppable = overflow == Overflow::DropOldest;
        for (burst, Publications { frames, .. }) in stretches(bursts) {
            let done = written.min(frames.len());
            written -= done;
            let pool = &mut self.pool;
            connection
                .backlog
                .append_shared(burst, frames, done, droppable, pool);
        }
        self.write_behind(connection, connection.stall_due);
        self.limit_backlog(connection);
    }

    /// Does what is to be done about publications that a subscriber can't take; returns whether
    /// nothing has changed for the connection.
    #[cold]
    fn refuse(
        &mut self,
        connection: &mut Connection,
        overflow: Overflow,
        publications: u64,
    ) -> bool {
        let counters = &self.shared.counters;
        if overflow == Overflow::Close && connection.congested {
            counters.subscribers_closed.add(1);
            // The reason is short enough, and nothing else can fail.
            let (code, reason) = (CloseCode::POLICY_VIOLATION, "too slow");
            _ = connection.engine.close(code, reason, self.now);
            return false;
        }
        counters.dropped_newest.add(publications);
        true
    }
}

/// Returns whether publications can be written or queued: not while a message goes out in pieces,
/// and at the limit of the backlog only if others give way, which ciphertext can't.
#[inline]
fn takes(connection: &Connection, overflow: Overflow) -> bool {
    let others_give_way = overflow == Overflow::DropOldest
        && connection.role() == Role::Server
        && connection.tls.is_none();
    !connection.engine.is_message_in_progress() && (!connection.congested || others_give_way)
}

/// Returns the publications of all bursts, each with the burst that it is of.
fn stretches(bursts: &[Arc<Burst>]) -> impl Iterator<Item = (&Arc<Burst>, Publications<'_>)> {
    bursts
        .iter()
        .flat_map(|burst| burst.iter().map(move |publications| (burst, publications)))
}
