//! The delivery of publications to one subscriber.

use std::{io::IoSlice, ops::Range, sync::Arc};

use linerate_proto::{CloseCode, Role};

use crate::{
    connection::{Connection, endpoint, memory::Memory},
    core::{
        Core,
        io::{Io, outlet},
    },
    driver::{event::Outlet, socket},
    topics::{
        burst::{Burst, Publications, publications},
        options::Overflow,
    },
};

/// Writes the publications in `slices`. Bytes that the kernel does not accept are added to the
/// backlog, by reference where that pays. Returns true if the state of the connection has not
/// changed, because everything was written.
#[inline]
pub(super) fn write(
    io: &mut Io,
    connection: &mut Connection,
    overflow: Overflow,
    bursts: &[Arc<Burst>],
    slices: &[IoSlice<'_>],
) -> bool {
    if connection.role() == Role::Client {
        return write_masked(io, connection, slices);
    }
    if connection.tls.is_some() {
        io.seal(connection, slices.iter().map(|slice| &**slice));
        io.flush(connection, &[], &[]);
        return connection.backlog.is_empty() && !connection.lost;
    }
    let bytes: usize = slices.iter().map(|slice| slice.len()).sum();
    let outlet = match connection.backlog.is_empty() {
        true => outlet(&mut io.driver, connection, bytes),
        false => Outlet::Backlog,
    };
    let written = match (outlet, slices) {
        (Outlet::Queue(queue), slices) => {
            slices
                .iter()
                .for_each(|slice| queue.extend_from_slice(slice));
            io.traffic.count_sent(bytes);
            return true;
        }
        (Outlet::Backlog, _) => Ok(0),
        (Outlet::Socket, [only]) => socket::write(&connection.socket, only),
        (Outlet::Socket, all) => socket::write_slices(&connection.socket, all),
    };
    let Ok(written) = written else {
        connection.lost = true;
        return false;
    };
    io.traffic.count_sent(written);
    if written < bytes {
        keep(io, connection, overflow, bursts, written);
    }
    written == bytes
}

/// Adds publications to the backlog: by reference where that pays. For connections that mask or
/// encrypt, they are masked or encrypted individually.
pub(super) fn append(
    io: &mut Io,
    connection: &mut Connection,
    overflow: Overflow,
    burst: &Arc<Burst>,
    frames: Range<usize>,
) {
    let is_encrypted = connection.tls.is_some();
    match connection.role() {
        Role::Client => {
            let mut masked = io.memory.pool.take(frames.len());
            endpoint::append_masked(burst.slice(frames), &mut masked);
            if is_encrypted {
                io.seal_to_backlog(connection, &masked);
                io.memory.pool.give(masked);
            } else {
                let queues = &mut io.memory.queues;
                connection.backlog.append_owned(masked, 0, queues);
            }
        }
        Role::Server if is_encrypted => {
            io.seal_to_backlog(connection, burst.slice(frames));
        }
        Role::Server => {
            let droppable = overflow == Overflow::DropOldest;
            let Memory { pool, queues, .. } = &mut io.memory;
            let backlog = &mut connection.backlog;
            backlog.append_shared(burst, frames, 0, droppable, pool, queues);
        }
    }
}

/// Drops publications that a subscriber cannot take, or closes the subscriber. Returns true if the
/// state of the connection has not changed.
#[cold]
pub(super) fn refuse(
    core: &mut Core,
    connection: &mut Connection,
    overflow: Overflow,
    publications: u64,
) -> bool {
    let counters = &core.reactor.counters;
    if overflow == Overflow::Close && connection.congested {
        counters.subscribers_closed.add(1);
        // The reason is within the length limit, and there is no other error.
        let (code, reason) = (CloseCode::POLICY_VIOLATION, "too slow");
        _ = connection.engine.close(code, reason, core.now);
        return false;
    }
    counters.dropped_newest.add(publications);
    true
}

/// Returns whether publications can be written or queued. They cannot while a message is being sent
/// in pieces. If the backlog has reached its limit, they can only if older publications can be
/// dropped, which excludes encrypted output.
#[inline]
pub(super) fn takes(connection: &Connection, overflow: Overflow) -> bool {
    let others_give_way = overflow == Overflow::DropOldest
        && connection.role() == Role::Server
        && connection.tls.is_none();
    !connection.engine.is_message_in_progress() && (!connection.congested || others_give_way)
}

/// Writes publications in a client's role. Always returns false: the state of the connection may
/// have changed.
fn write_masked(io: &mut Io, connection: &mut Connection, slices: &[IoSlice<'_>]) -> bool {
    for slice in slices {
        endpoint::append_masked(slice, &mut io.cork.bytes);
    }
    io.flush(connection, &[], &[]);
    false
}

/// Adds publications to the backlog, except the first `written` bytes.
#[cold]
fn keep(
    io: &mut Io,
    connection: &mut Connection,
    overflow: Overflow,
    bursts: &[Arc<Burst>],
    mut written: usize,
) {
    let droppable = overflow == Overflow::DropOldest;
    let Memory { pool, queues, .. } = &mut io.memory;
    for (burst, Publications { frames, .. }) in publications(bursts) {
        let done = written.min(frames.len());
        written -= done;
        let backlog = &mut connection.backlog;
        backlog.append_shared(burst, frames, done, droppable, pool, queues);
    }
    io.write_after_queued(connection);
    io.limit_backlog(connection);
}
