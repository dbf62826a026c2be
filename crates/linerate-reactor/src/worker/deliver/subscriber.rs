//! From publications to one subscriber.

use std::{io::IoSlice, ops::Range, sync::Arc};

use linerate_proto::Role;

use super::stretches;
use crate::{
    CloseCode, Overflow,
    connection::{Connection, side},
    driver::{
        Outlet,
        socket::{self, Lost},
    },
    topics::burst::{Burst, Publications},
    worker::Core,
};

impl Core {
    /// Writes publications, which are the `slices`; what the kernel does not take waits, by reference
    /// where that pays. Returns whether all was taken, so that nothing has changed.
    #[inline]
    pub(super) fn write_shared(
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
    pub(super) fn append_shared(
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
    pub(super) fn refuse(
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
pub(super) fn takes(connection: &Connection, overflow: Overflow) -> bool {
    let others_give_way = overflow == Overflow::DropOldest
        && connection.role() == Role::Server
        && connection.tls.is_none();
    !connection.engine.is_message_in_progress() && (!connection.congested || others_give_way)
}
