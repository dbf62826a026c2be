//! The path of output to the kernel through TLS.

use super::{Io, outlet, write_slices};
use crate::{
    connection::{Connection, memory::Memory},
    driver::{event::Outlet, socket::ConnectionLost},
    tls::outcome::{Alert, Failed},
};

/// Maximum number of records whose slots are kept; the list may have held a message of any size.
const RECORDS_KEPT_MAX: usize = 64;

/// A shorter remainder of a record is copied, because that costs less than one more slice for the
/// kernel. A longer one waits in its own memory.
const COPIED_BYTES_MAX: usize = 4 << 10;

impl Io {
    /// Encrypts publications. The next [`flush`](Self::flush) writes them.
    pub(crate) fn seal<'a>(
        &mut self,
        connection: &mut Connection,
        publications: impl Iterator<Item = &'a [u8]>,
    ) {
        if let Some(tls) = &mut connection.tls
            && tls.seal(publications, &mut self.sealed).is_err()
        {
            connection.lost = true;
        }
    }

    /// Encrypts publications and appends them to the backlog.
    pub(crate) fn seal_to_backlog(&mut self, connection: &mut Connection, publications: &[u8]) {
        self.seal(connection, std::iter::once(publications));
        self.keep_sealed(connection, 0);
    }

    /// Ends an encrypted stream to the peer with `alert`, or with close_notify if there is none.
    pub(crate) fn end_tls(&mut self, connection: &mut Connection, alert: Option<Alert>) {
        if let Some(tls) = &mut connection.tls {
            tls.close(alert.unwrap_or(Alert::CLOSE_NOTIFY), &mut self.sealed);
            self.flush(connection, &[], &[]);
        }
    }

    /// Encrypts the output followed by `tail`, and writes the records. Records that the kernel does
    /// not accept wait in encrypted form; nothing is encrypted twice.
    pub(super) fn flush_sealed(&mut self, connection: &mut Connection, input: &[u8], tail: &[u8]) {
        let Self { cork, sealed, .. } = self;
        let mut is_lost = connection.lost;
        if let Some(tls) = &mut connection.tls
            && cork.len() + tail.len() > 0
            && let Err(Failed { alert, .. }) = tls.seal(cork.slices(input, tail), sealed)
        {
            tls.close(alert.unwrap_or(Alert::CLOSE_NOTIFY), sealed);
            is_lost = true;
        }
        cork.clear();
        self.write_sealed(connection);
        connection.lost |= is_lost;
    }

    /// Writes or queues the records, or appends them to the backlog.
    fn write_sealed(&mut self, connection: &mut Connection) {
        let mut written = 0;
        if !connection.lost && connection.backlog.is_empty() {
            let records = self.sealed.iter().map(Vec::as_slice);
            let bytes = records.clone().map(<[u8]>::len).sum();
            written = match outlet(&mut self.driver, connection, bytes) {
                Outlet::Backlog => 0,
                Outlet::Queue(queue) => {
                    records.for_each(|record| queue.extend_from_slice(record));
                    bytes
                }
                Outlet::Socket => {
                    write_slices(&connection.socket, records).unwrap_or_else(|ConnectionLost| {
                        connection.lost = true;
                        0
                    })
                }
            };
        }
        self.traffic.count_sent(written);
        self.keep_sealed(connection, written);
    }

    /// Appends the records without the first `written` bytes to the backlog.
    fn keep_sealed(&mut self, connection: &mut Connection, mut written: usize) {
        let Memory { pool, queues, .. } = &mut self.memory;
        for record in self.sealed.drain(..) {
            let skipped = written.min(record.len());
            written -= skipped;
            let left = record.len() - skipped;
            if left == 0 || connection.lost {
                continue;
            }
            if left < COPIED_BYTES_MAX {
                connection.backlog.append(&record[skipped..], pool, queues);
            } else {
                connection.backlog.append_owned(record, skipped, queues);
            }
        }
        self.sealed.shrink_to(RECORDS_KEPT_MAX);
    }
}
