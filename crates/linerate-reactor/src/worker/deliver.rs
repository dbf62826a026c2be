//! From publications to subscribers.

use super::Worker;
use crate::burst::Burst;

/// Memory that a burst keeps while it is empty, in bytes.
const KEPT_BYTES_MAX: usize = 1 << 20;

impl Worker {
    /// Delivers what this worker's connections have published: to its own subscribers, and to the
    /// other workers.
    pub(super) fn deliver(&mut self) {
        // The handlers that learn of lost connections meanwhile may publish.
        while !self.core.burst.is_empty() {
            let mut burst = std::mem::take(&mut self.core.burst);
            self.share(&burst);
            self.deliver_here(&burst);
            burst.clear(KEPT_BYTES_MAX);
            if self.core.burst.is_empty() {
                self.core.burst = burst;
            }
        }
    }

    fn share(&self, burst: &Burst) {
        let shared = &self.core.shared;
        let others = shared.mailboxes.iter().enumerate();
        for (_, mailbox) in others.filter(|(number, _)| *number != usize::from(self.number)) {
            let dropped = mailbox.publish(burst.iter(), shared.options.mailbox_bytes_max);
            shared.count_dropped(dropped);
        }
    }

    /// Delivers to the subscribers of this worker: one write for each of them.
    pub(super) fn deliver_here(&mut self, burst: &Burst) {
        if burst.stretches() == 1 {
            self.deliver_stretch(burst);
        } else {
            self.deliver_stretches(burst);
        }
    }

    /// Writes the frames of the only stretch to each subscriber from where they lie.
    fn deliver_stretch(&mut self, burst: &Burst) {
        let mut keys = std::mem::take(&mut self.subscribers);
        for publications in burst.iter() {
            keys.extend(self.core.topics.subscribers(publications.topic));
            for key in keys.drain(..) {
                let Some(connection) = self.connections.get_mut(key as usize) else {
                    continue;
                };
                if connection.congested {
                    self.core.shared.count_dropped(publications.count);
                } else if connection.is_open() {
                    self.core.flush(connection, &[], publications.frames);
                    self.settle(key as usize);
                }
            }
        }
        self.subscribers = keys;
    }

    /// Puts together what each subscriber gets of several stretches, and writes that. A connection
    /// may so have a burst more than its limit waiting.
    fn deliver_stretches(&mut self, burst: &Burst) {
        let mut keys = std::mem::take(&mut self.subscribers);
        let stall_due = self.core.stall_due();
        for publications in burst.iter() {
            for key in self.core.topics.subscribers(publications.topic) {
                let Some(connection) = self.connections.get_mut(key as usize) else {
                    continue;
                };
                if connection.congested {
                    self.core.shared.count_dropped(publications.count);
                } else if connection.is_open() {
                    let waits_already = !connection.backlog.is_empty();
                    connection
                        .backlog
                        .append(publications.frames, &mut self.core.pool);
                    if !waits_already {
                        keys.push(key);
                    }
                }
            }
        }
        for key in keys.drain(..) {
            let connection = &mut self.connections[key as usize];
            connection.stall_due = stall_due;
            connection.write_backlog(&mut self.core.pool, stall_due);
            self.core.limit_backlog(connection);
            self.settle(key as usize);
        }
        self.subscribers = keys;
    }
}
