//! From publications to subscribers.

use std::{io::IoSlice, sync::Arc};

use super::{Core, Worker};
use crate::{
    backlog::SLICES_MAX,
    burst::{Burst, Publications},
    connection::Connection,
    socket::{self, Lost},
};

impl Worker {
    /// Delivers what this worker's connections have published: to the other workers, and to its own
    /// subscribers.
    pub(super) fn deliver(&mut self) {
        // The handlers that learn of lost connections meanwhile may publish.
        while !self.core.burst.is_empty() {
            let core = &mut self.core;
            let burst = core.delivered.freeze(&mut core.burst);
            let here = usize::from(self.number);
            let others = core.shared.mailboxes.iter().enumerate();
            let others = others.filter(|(number, _)| *number != here);
            core.shared
                .publish(others.map(|(_, mailbox)| mailbox), &burst);
            self.deliver_here(std::slice::from_ref(&burst));
            self.core.delivered.give(burst);
        }
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
        let mut keys = std::mem::take(&mut self.subscribers);
        keys.extend(self.core.topics.subscribers(topic));
        for key in keys.drain(..) {
            let Some(connection) = self.connections.get_mut(key as usize) else {
                continue;
            };
            if connection.congested || connection.engine.is_message_in_progress() {
                self.core.shared.count_dropped(publications);
            } else if connection.is_open()
                && !self.core.write_shared(connection, bursts, &slices[..count])
            {
                self.settle(key as usize);
            }
        }
        self.subscribers = keys;
    }

    /// Puts together what each subscriber gets of several topics, and writes that. A connection may
    /// so have a burst more than its limit waiting.
    fn deliver_topics(&mut self, bursts: &[Arc<Burst>]) {
        let mut keys = std::mem::take(&mut self.subscribers);
        for (burst, publications) in stretches(bursts) {
            for key in self.core.topics.subscribers(publications.topic) {
                let Some(connection) = self.connections.get_mut(key as usize) else {
                    continue;
                };
                if connection.congested || connection.engine.is_message_in_progress() {
                    self.core.shared.count_dropped(publications.count);
                } else if connection.is_open() {
                    let waits_already = !connection.backlog.is_empty();
                    let pool = &mut self.core.pool;
                    let frames = publications.frames.clone();
                    connection.backlog.append_shared(burst, frames, pool);
                    if waits_already && !connection.gathering {
                        self.core.limit_backlog(connection);
                    } else if !waits_already {
                        connection.gathering = true;
                        keys.push(key);
                    }
                }
            }
        }
        let stall_due = self.core.stall_due();
        for key in keys.drain(..) {
            let connection = &mut self.connections[key as usize];
            connection.gathering = false;
            connection.stall_due = stall_due;
            connection.write_backlog(&mut self.core.pool, stall_due);
            self.core.limit_backlog(connection);
            self.settle(key as usize);
        }
        self.subscribers = keys;
    }
}

impl Core {
    /// Writes publications, which are the `slices`; what the kernel does not take waits, by reference
    /// where that pays. Returns whether all was taken, so that nothing has changed.
    #[inline]
    fn write_shared(
        &mut self,
        connection: &mut Connection,
        bursts: &[Arc<Burst>],
        slices: &[IoSlice<'_>],
    ) -> bool {
        let bytes: usize = slices.iter().map(|slice| slice.len()).sum();
        let written = match slices {
            _ if !connection.backlog.is_empty() => Ok(0),
            [only] => socket::write(&connection.socket, only),
            all => socket::write_slices(&connection.socket, all),
        };
        match written {
            Ok(written) if written == bytes => return true,
            Ok(written) => self.keep_shared(connection, bursts, written),
            Err(Lost) => connection.lost = true,
        }
        false
    }

    /// Adds publications but for the first `written` bytes to the backlog.
    #[cold]
    fn keep_shared(
        &mut self,
        connection: &mut Connection,
        bursts: &[Arc<Burst>],
        mut written: usize,
    ) {
        if connection.backlog.is_empty() {
            connection.stall_due = self.stall_due();
        }
        for (burst, Publications { mut frames, .. }) in stretches(bursts) {
            let skipped = written.min(frames.len());
            written -= skipped;
            frames.start += skipped;
            let pool = &mut self.pool;
            connection.backlog.append_shared(burst, frames, pool);
        }
        self.limit_backlog(connection);
    }
}

/// Returns the publications of all bursts, each with the burst that it is of.
fn stretches(bursts: &[Arc<Burst>]) -> impl Iterator<Item = (&Arc<Burst>, Publications<'_>)> {
    bursts
        .iter()
        .flat_map(|burst| burst.iter().map(move |publications| (burst, publications)))
}
