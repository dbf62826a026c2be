//! The path of output to the socket.

mod sealed;

use std::{io::IoSlice, ops::Range, os::fd::OwnedFd};

use crate::{
    connection::{Connection, backlog::SLICES_MAX},
    driver::{
        Driver, Outlet,
        socket::{self, Lost},
    },
    memory::pool::Pool,
    tls::Sealed,
    worker::wheel::Tick,
};

/// Capacity in bytes that the cork buffer keeps; it may have held a message of any size.
const CORK_KEPT_BYTES_MAX: usize = 1 << 20;

/// The output of the callbacks that result from one read: corked bytes, and parts of the input that
/// are sent without a copy.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pub(crate) cork: Vec<u8>,
    splices: Vec<Splice>,
    splice_bytes: usize,
    /// TLS records, which are sent before everything else.
    pub(crate) sealed: Sealed,
}

/// A part of the input that is sent after the first `at` bytes of the cork.
#[derive(Clone, Debug)]
struct Splice {
    at: usize,
    input: Range<usize>,
}

impl Output {
    /// Adds a part of the input, which must stay in place until the next flush.
    pub(crate) fn splice(&mut self, input: Range<usize>) {
        self.splice_bytes += input.len();
        let at = self.cork.len();
        self.splices.push(Splice { at, input });
    }

    /// Returns whether the output contains parts of the input.
    pub(crate) fn has_splices(&self) -> bool {
        !self.splices.is_empty()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.cork.is_empty() && self.splices.is_empty() && self.sealed.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.cork.len() + self.splice_bytes
    }

    /// Writes the output followed by `tail`. Bytes that the kernel does not accept are copied to
    /// the backlog.
    #[inline]
    pub(crate) fn flush(
        &mut self,
        connection: &mut Connection,
        input: &[u8],
        tail: &[u8],
        driver: &mut Driver,
        pool: &mut Pool,
        stall_due: Tick,
    ) {
        if connection.tls.is_some() {
            return self.flush_sealed(connection, input, tail, driver, pool, stall_due);
        }
        let bytes = self.len() + tail.len();
        let sent = self.write(connection, input, tail, driver);
        if sent < bytes && !connection.lost {
            self.keep(connection, input, tail, sent, pool, stall_due);
        }
        self.clear();
    }

    /// Writes the output followed by `tail`. Bytes of the tail that the kernel does not accept stay
    /// in their memory, which becomes part of the backlog.
    pub(crate) fn flush_owned(
        &mut self,
        connection: &mut Connection,
        input: &[u8],
        tail: Vec<u8>,
        driver: &mut Driver,
        pool: &mut Pool,
        stall_due: Tick,
    ) {
        if connection.tls.is_some() {
            self.flush_sealed(connection, input, &tail, driver, pool, stall_due);
            return pool.give(tail);
        }
        let before = self.len();
        let sent = self.write(connection, input, &tail, driver);
        if connection.lost || sent == before + tail.len() {
            pool.give(tail);
        } else if sent >= before && connection.backlog.is_empty() {
            connection.stall_due = stall_due;
            connection.backlog.append_owned(tail, sent - before, pool);
        } else {
            self.keep(connection, input, &tail, sent, pool, stall_due);
            pool.give(tail);
        }
        self.clear();
    }

    fn clear(&mut self) {
        self.cork.clear();
        self.cork.shrink_to(CORK_KEPT_BYTES_MAX);
        self.splices.clear();
        self.splice_bytes = 0;
    }

    /// Writes or queues as much as possible; returns how many bytes that was.
    #[inline]
    fn write(
        &self,
        connection: &mut Connection,
        input: &[u8],
        tail: &[u8],
        driver: &mut Driver,
    ) -> usize {
        if connection.lost || !connection.backlog.is_empty() {
            return 0;
        }
        let bytes = self.len() + tail.len();
        match connection.outlet(driver, bytes) {
            Outlet::Backlog => return 0,
            Outlet::Queue(queue) => {
                let slices = self.slices(input, tail);
                slices.for_each(|slice| queue.extend_from_slice(slice));
                return bytes;
            }
            Outlet::Socket => {}
        }
        let written = if self.splices.is_empty() && tail.is_empty() {
            socket::write(&connection.socket, &self.cork)
        } else {
            write_slices(&connection.socket, self.slices(input, tail))
        };
        written.unwrap_or_else(|Lost| {
            connection.lost = true;
            0
        })
    }

    /// Moves everything except the first `sent` bytes to the backlog.
    #[cold]
    fn keep(
        &self,
        connection: &mut Connection,
        input: &[u8],
        tail: &[u8],
        mut sent: usize,
        pool: &mut Pool,
        stall_due: Tick,
    ) {
        if connection.backlog.is_empty() {
            connection.stall_due = stall_due;
        }
        for slice in self.slices(input, tail) {
            let skipped = sent.min(slice.len());
            sent -= skipped;
            connection.backlog.append(&slice[skipped..], pool);
        }
    }

    /// Returns the non-empty pieces of the output in order.
    fn slices<'a>(&'a self, input: &'a [u8], tail: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let mut from = 0;
        let spliced = self.splices.iter().flat_map(move |splice| {
            let corked = &self.cork[from..splice.at];
            from = splice.at;
            [corked, &input[splice.input.clone()]]
        });
        let last = self.splices.last().map_or(0, |splice| splice.at);
        let end = [&self.cork[last..], tail];
        spliced.chain(end).filter(|slice| !slice.is_empty())
    }
}

/// Writes the slices until the kernel accepts only a part; returns how many bytes it accepted.
fn write_slices<'a>(
    socket: &OwnedFd,
    mut slices: impl Iterator<Item = &'a [u8]>,
) -> Result<usize, Lost> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_in_the_order_in_which_it_was_added() {
        let mut output = Output::default();
        output.cork.extend_from_slice(b"ab");
        output.splice(2..4);
        output.splice(0..1);
        output.cork.extend_from_slice(b"c");
        let all: Vec<u8> = output.slices(b"WXYZ", b"!").flatten().copied().collect();
        assert_eq!(all, b"abYZWc!");
        assert_eq!(output.len() + 1, all.len());
    }
}
