//! The sockets of a worker: its driver, and the path of output to the kernel.
//!
//! Output is first collected in the cork. A flush writes it to the socket, queues it in the driver,
//! or adds what the kernel does not accept to the connection's backlog.

pub(crate) mod cork;
mod sealed;
pub(crate) mod traffic;

use std::{
    io::{self, IoSlice},
    sync::Arc,
};

use bytes::Bytes;

use self::{cork::Cork, traffic::Traffic};
use crate::{
    connection::{Connection, Stage, backlog::SLICES_MAX, memory::Memory},
    driver::{
        Driver,
        event::{InFlight, Outlet},
        socket::{self, ConnectionLost},
    },
    platform::Socket,
    reactor::Reactor,
    tls::outcome::Sealed,
};

/// What reading and writing the sockets of a worker need.
///
/// Its methods are, in the order of use: flushing the cork, writing a backlog, and writing queued
/// output before the end of the turn. [`sealed`] adds the way through TLS.
pub(crate) struct Io {
    pub(crate) driver: Driver,
    pub(crate) memory: Memory,
    pub(crate) cork: Cork,
    /// TLS records, which are sent before everything else.
    pub(crate) sealed: Sealed,
    pub(crate) traffic: Traffic,
    reactor: Arc<Reactor>,
}

impl Io {
    pub(super) fn new(reactor: Arc<Reactor>) -> io::Result<Self> {
        Ok(Self {
            driver: Driver::new(reactor.options.driver)?,
            memory: Memory::default(),
            cork: Cork::default(),
            sealed: Sealed::default(),
            traffic: Traffic::default(),
            reactor,
        })
    }

    /// Returns whether nothing has to be flushed.
    #[inline]
    pub(crate) fn is_flushed(&self) -> bool {
        self.cork.is_empty() && self.sealed.is_empty()
    }

    /// Writes the output followed by `tail`. Bytes that the kernel does not accept are copied to
    /// the backlog.
    #[inline]
    pub(crate) fn flush(&mut self, connection: &mut Connection, input: &[u8], tail: &[u8]) {
        if connection.tls.is_some() {
            self.flush_sealed(connection, input, tail);
        } else {
            let bytes = self.cork.len() + tail.len();
            let sent = self.write(connection, input, tail);
            if sent < bytes && !connection.lost {
                self.keep(connection, input, tail, sent);
            }
            self.cork.clear();
        }
        self.write_after_queued(connection);
        self.limit_backlog(connection);
    }

    /// Writes the output followed by `tail`. Bytes of the tail that the kernel does not accept stay
    /// in their memory, which becomes part of the backlog.
    pub(crate) fn flush_owned(&mut self, connection: &mut Connection, input: &[u8], tail: Vec<u8>) {
        if connection.tls.is_some() {
            self.flush_sealed(connection, input, &tail);
            self.memory.pool.give(tail);
        } else {
            let before = self.cork.len();
            let sent = self.write(connection, input, &tail);
            if connection.lost || sent == before + tail.len() {
                self.memory.pool.give(tail);
            } else if sent >= before && connection.backlog.is_empty() {
                let queues = &mut self.memory.queues;
                connection.backlog.append_owned(tail, sent - before, queues);
            } else {
                self.keep(connection, input, &tail, sent);
                self.memory.pool.give(tail);
            }
            self.cork.clear();
        }
        self.write_after_queued(connection);
        self.limit_backlog(connection);
    }

    /// Writes the output followed by `bytes`, which are whole frames unless the connection is a
    /// stream. What the kernel does not accept of them waits in the shared memory.
    pub(crate) fn flush_shared(&mut self, connection: &mut Connection, bytes: &Bytes) {
        if connection.tls.is_some() {
            self.flush_sealed(connection, &[], bytes);
        } else {
            let before = self.cork.len();
            let sent = self.write(connection, &[], bytes);
            if sent < before + bytes.len() && !connection.lost {
                self.keep(connection, &[], &[], sent.min(before));
                let done = sent.saturating_sub(before);
                let is_unit = connection.is_stream();
                let Memory { pool, queues, .. } = &mut self.memory;
                let backlog = &mut connection.backlog;
                backlog.append_bytes(bytes, done, is_unit, pool, queues);
            }
            self.cork.clear();
        }
        self.write_after_queued(connection);
        self.limit_backlog(connection);
    }

    /// Writes as much of the backlog as the kernel accepts, after any queued output.
    pub(crate) fn write_backlog(&mut self, connection: &mut Connection) {
        let Memory { pool, queues, .. } = &mut self.memory;
        let token = connection.slot.token();
        match self.driver.withdraw(token, &mut connection.watch) {
            Ok(Some(bytes)) => {
                self.traffic.discount_unsent(bytes.len());
                connection.backlog.prepend(bytes, 0, pool, queues);
            }
            Ok(None) => {}
            // Output that the kernel is sending goes first.
            Err(InFlight) => return,
        }
        while !connection.backlog.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let count = connection.backlog.slices(&mut slices);
            let slices = &slices[..count];
            let written = match slices {
                [only] => socket::write(&connection.socket, only),
                all => socket::write_slices(&connection.socket, all),
            };
            let Ok(bytes) = written else {
                connection.lost = true;
                return;
            };
            let all = bytes == slices.iter().map(|slice| slice.len()).sum();
            self.traffic.count_sent(bytes);
            if bytes > 0 {
                connection.backlog.skip(bytes, pool, queues);
            }
            if !all {
                return;
            }
        }
    }

    /// Writes a backlog that exists only because output was queued before it.
    #[inline]
    pub(crate) fn write_after_queued(&mut self, connection: &mut Connection) {
        if connection.watch.may_be_sending() && !connection.backlog.is_empty() {
            self.write_backlog(connection);
        }
    }

    /// Keeps the backlog below its limit by dropping the oldest publications. If none may be
    /// dropped, marks the connection as congested.
    #[inline]
    pub(crate) fn limit_backlog(&mut self, connection: &mut Connection) {
        if !connection.backlog.is_empty() {
            self.drop_excess(connection);
        }
    }

    /// Writes queued output now, so that nothing else is written together with it. Returns whether
    /// all output has been written.
    pub(crate) fn write_queued(&mut self, connection: &mut Connection) -> bool {
        if !connection.backlog.is_empty() {
            return false;
        }
        if !connection.watch.may_be_sending() {
            return true;
        }
        let token = connection.slot.token();
        let bytes = match self.driver.withdraw(token, &mut connection.watch) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return true,
            Err(InFlight) => return false,
        };
        match socket::write(&connection.socket, &bytes) {
            Ok(written) if written == bytes.len() => self.driver.give_back(bytes),
            Ok(written) => self.keep_unsent(connection, bytes, written),
            Err(ConnectionLost) => connection.lost = true,
        }
        connection.backlog.is_empty()
    }

    /// Adds queued output to the backlog, except the first `sent` bytes, which the kernel accepted.
    pub(crate) fn keep_unsent(&mut self, connection: &mut Connection, bytes: Vec<u8>, sent: usize) {
        let Memory { pool, queues, .. } = &mut self.memory;
        self.traffic.discount_unsent(bytes.len() - sent);
        connection.backlog.prepend(bytes, sent, pool, queues);
        self.limit_backlog(connection);
    }

    /// Closes the socket of a connection after all queued output, and takes its memory back.
    /// Returns the stage that the connection had reached.
    pub(crate) fn close(&mut self, mut connection: Connection) -> Stage {
        connection.free(&mut self.memory);
        let token = connection.slot.token();
        self.driver
            .close(connection.socket, token, &connection.watch);
        connection.stage
    }

    /// Writes or queues as much as possible; returns how many bytes that was.
    #[inline]
    fn write(&mut self, connection: &mut Connection, input: &[u8], tail: &[u8]) -> usize {
        if connection.lost || !connection.backlog.is_empty() {
            return 0;
        }
        let Self {
            driver,
            cork,
            traffic,
            ..
        } = self;
        let bytes = cork.len() + tail.len();
        match outlet(driver, connection, bytes) {
            Outlet::Backlog => return 0,
            Outlet::Queue(queue) => {
                let slices = cork.slices(input, tail);
                slices.for_each(|slice| queue.extend_from_slice(slice));
                traffic.count_sent(bytes);
                return bytes;
            }
            Outlet::Socket => {}
        }
        let written = if !cork.has_splices() && tail.is_empty() {
            socket::write(&connection.socket, &cork.bytes)
        } else {
            write_slices(&connection.socket, cork.slices(input, tail))
        };
        let written = written.unwrap_or_else(|ConnectionLost| {
            connection.lost = true;
            0
        });
        traffic.count_sent(written);
        written
    }

    /// Moves everything except the first `sent` bytes to the backlog.
    #[cold]
    fn keep(&mut self, connection: &mut Connection, input: &[u8], tail: &[u8], mut sent: usize) {
        let Memory { pool, queues, .. } = &mut self.memory;
        for slice in self.cork.slices(input, tail) {
            let skipped = sent.min(slice.len());
            sent -= skipped;
            connection.backlog.append(&slice[skipped..], pool, queues);
        }
    }

    #[cold]
    fn drop_excess(&mut self, connection: &mut Connection) {
        let bytes_max = self.reactor.options.backlog_bytes_max.max(1);
        if connection.backlog.charge() >= bytes_max {
            let pool = &mut self.memory.pool;
            let dropped = connection.backlog.drop_oldest(bytes_max, pool);
            self.reactor.counters.dropped_oldest.add(dropped);
            connection.congested = connection.backlog.charge() >= bytes_max;
        }
    }
}

/// Returns where the next `bytes` bytes of output go. The backlog must be empty.
#[inline]
pub(crate) fn outlet<'d>(
    driver: &'d mut Driver,
    connection: &mut Connection,
    bytes: usize,
) -> Outlet<'d> {
    let token = connection.slot.token();
    driver.outlet(&connection.socket, token, &mut connection.watch, bytes)
}

/// Writes the slices until the kernel accepts only a part; returns how many bytes it accepted.
fn write_slices<'a>(
    socket: &Socket,
    mut slices: impl Iterator<Item = &'a [u8]>,
) -> Result<usize, ConnectionLost> {
    let mut sent = 0;
    loop {
        let mut some = [IoSlice::new(&[]); SLICES_MAX];
        let (mut count, mut bytes) = (0, 0);
        for (place, slice) in some.iter_mut().zip(&mut slices) {
            *place = IoSlice::new(slice);
            count += 1;
            bytes += slice.len();
        }
        if count == 0 {
            return Ok(sent);
        }
        let written = socket::write_slices(socket, &some[..count])?;
        sent += written;
        if written < bytes {
            return Ok(sent);
        }
    }
}
